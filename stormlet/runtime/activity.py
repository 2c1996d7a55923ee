"""Counts what is under way, so that the moment when nothing moves any more is seen without polling (law S5,
B8)."""

from __future__ import annotations

from collections.abc import Callable


class Activity:
    """The number of tasks and calls that can still move something by themselves.

    A task counts from the moment it is woken, not from the moment it runs: in between nothing may look calm.
    """

    __slots__ = ("_on_calm", "busy")

    def __init__(self, on_calm: Callable[[], None]) -> None:
        self.busy = 0
        self._on_calm = on_calm

    def begin(self) -> None:
        """One more is under way."""
        self.busy += 1

    def end(self) -> None:
        """One less; when it was the last, the owner is told."""
        self.busy -= 1
        if not self.busy:
            self._on_calm()
