"""The switches of a spout task, which every emit and every call of ``next_tuple`` looks at."""

from __future__ import annotations


class Switches:
    """The switches of one spout task: set by the host and by the collector, read by the task and its feed."""

    __slots__ = ("active", "attentive", "pausing", "pausing_for_own", "sated", "stopping", "woken")

    def __init__(self) -> None:
        self.active = False
        """True while the topology is activated (law C1)."""
        self.attentive = False
        """True while the feed itself looks for outcomes as soon as the user's call has returned."""
        self.stopping = False
        """True from when the source shall end (law C3)."""
        self.pausing = False
        """True while it emits nothing more until everything is settled."""
        self.pausing_for_own = False
        """True if that ends when its own messages are settled."""
        self.sated = False
        """True if the spout was asked enough for this time, whatever room there was."""
        self.woken = False
        """True if the user has asked for ``next_tuple`` since it was last called (law S4)."""

    def pause(self, *, own: bool) -> None:
        """Emit nothing more until everything is settled, or until all of its ``own`` messages are."""
        self.pausing, self.pausing_for_own = True, own

    def resume(self) -> None:
        """Go on: everything is settled that it has paused for."""
        self.pausing = self.pausing_for_own = False
