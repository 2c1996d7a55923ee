"""How long messages take from their emit to their ack: one at a time is measured, so that it costs nothing."""

from __future__ import annotations

from collections.abc import Callable

from stormlet.core.open_tree import OpenTree

OLDEST = 60.0
"""Seconds after which another message is measured, while somebody asks for statistics."""


class CompleteLatency:
    """The complete latency of the messages of one spout task."""

    __slots__ = ("_began", "_clock", "samples", "seconds", "tree")

    def __init__(self, clock: Callable[[], float]) -> None:
        self.tree: OpenTree | None = None
        """The message that is being measured."""
        self.seconds = 0.0
        """How long all those took that were measured and acked."""
        self.samples = 0
        """How many these were."""
        self._clock = clock
        self._began = 0.0

    def begin(self, tree: OpenTree) -> None:
        """It was emitted."""
        self.tree = tree
        self._began = self._clock()

    def end(self) -> None:
        """It has its outcome."""
        if self.tree is not None and self.tree.failure is None:
            self.seconds += self._clock() - self._began
            self.samples += 1
        self.tree = None

    def forget_old(self) -> None:
        """A message that is never settled would be the last one that is measured."""
        if self.tree is not None and self._clock() - self._began > OLDEST:
            self.tree = None
