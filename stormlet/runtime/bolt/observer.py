"""The seam for those who want to know when user code is called with an input, such as a recorder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from stormlet.runtime.wire.collector import AnyTuple


class ExecutionObserver(Protocol):
    """Hears of executions."""

    @property
    def trees(self) -> Collection[int]:
        """The roots of the trees whose executions it wants to hear of: of the others it is told nothing."""
        ...

    def begin(self, tups: Sequence[AnyTuple]) -> None:
        """User code is called with these inputs together; with those of a batch again, when that is executed."""
        ...

    def end(self, tups: Sequence[AnyTuple], waited: float = 0.0) -> None:
        """The call is over, with so many seconds in which its outputs have waited for room."""
        ...


class Observed:
    """The observer of one task's executions, if there is one."""

    __slots__ = ("observer",)

    def __init__(self) -> None:
        self.observer: ExecutionObserver | None = None
