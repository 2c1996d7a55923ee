"""The inputs that a bolt task has taken from its inbox together, and how far it has come with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import length_hint

from stormlet.runtime.wire.collector import AnyTuple


class Intake:
    """A list and a cursor in it.

    The cursor is the list's own iterator, which workers go through. It says how many are left, exactly (PEP 424 asks
    that of lists), wherever a worker has stopped: at a pause, at an exception, or when the task is cancelled. To count
    each input beside it would cost several hundredths of an acked tuple.
    """

    __slots__ = ("_rest", "all")

    def __init__(self) -> None:
        self.begin([])

    def begin(self, tuples: list[AnyTuple]) -> None:
        """Go through these from now on."""
        self.all = tuples
        self._rest = iter(tuples)

    @property
    def left(self) -> int:
        """The number of inputs that user code has not been called with."""
        return length_hint(self._rest)

    @property
    def passed(self) -> int:
        """The number of the others."""
        return len(self.all) - length_hint(self._rest)

    @property
    def taken(self) -> Sequence[AnyTuple]:
        """The inputs that user code has been called with, in order."""
        return self.all[: self.passed]

    @property
    def queued(self) -> Sequence[AnyTuple]:
        """The inputs that user code has not been called with, in order."""
        return self.all[self.passed :]

    @property
    def last(self) -> AnyTuple | None:
        """The input that was taken last; None before the first."""
        passed = self.passed
        return self.all[passed - 1] if passed else None

    def take(self, most: int) -> Iterator[AnyTuple]:
        """The next inputs, each taken when it is asked for."""
        return islice(self._rest, most)

    def take_one(self) -> AnyTuple:
        """The next input. Raises :class:`StopIteration` if none is left."""
        return next(self._rest)
