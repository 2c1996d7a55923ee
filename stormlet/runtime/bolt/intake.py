"""The work at hand of a bolt task: the inputs that it has taken from its inbox together, and the calls that are due
between two inputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from typing import Any

from stormlet.core.tuples import Tuple


class Intake:
    """A list of inputs and a cursor in it.

    The cursor is the list's own iterator, which workers go through. It says how many are left, exactly (PEP 424 asks
    that of lists), wherever a worker has stopped: at a pause, at an exception, or when the task is cancelled. To count
    each input beside it would cost several hundredths of an acked tuple.
    """

    __slots__ = ("all", "rest")

    # The task sets both by itself, for each batch: two calls of methods would be felt by a lone message. A cursor that
    # is used up stays where it is, as it has none left.
    def __init__(self) -> None:
        self.all: list[Tuple[Any]] = []
        self.rest: Iterator[Tuple[Any]] = iter(self.all)
        """The cursor; who advances it takes an input."""

    @property
    def left(self) -> int:
        """The number of inputs that user code has not been called with."""
        return length_hint(self.rest)

    @property
    def passed(self) -> int:
        """The number of the others."""
        return len(self.all) - length_hint(self.rest)

    @property
    def taken(self) -> Sequence[Tuple[Any]]:
        """The inputs that user code has been called with, in order."""
        return self.all[: self.passed]

    @property
    def queued(self) -> Sequence[Tuple[Any]]:
        """The inputs that user code has not been called with, in order."""
        return self.all[self.passed :]

    @property
    def last(self) -> Tuple[Any] | None:
        """The input that was taken last; None before the first."""
        passed = self.passed
        return self.all[passed - 1] if passed else None


class PendingCalls(deque[str]):
    """The calls of ``tick``, ``flush``, ``finish`` and ``due`` that a bolt task has to make between two inputs, in
    order; at most one of each (law B5)."""

    __slots__ = ("_wake",)

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._wake = wake

    def request(self, name: str) -> None:
        """Have this method called soon."""
        # One that is asked for again before it was called need not be called twice: it does all there is to do.
        if name not in self:
            self.append(name)
            self._wake()
