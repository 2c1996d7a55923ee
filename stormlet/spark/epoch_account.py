"""The account of one epoch (see :mod:`stormlet.spark.epochs`): the rows of an attempt, and those that are given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stormlet.core.outcomes import Failure, FailureKind, History
from stormlet.core.retries import ReplayPolicy
from stormlet.spark.frames import Origin


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A row that is left out of further attempts."""

    origin: Origin
    value: object
    attempts: int
    """The attempts that count (law S6)."""
    history: tuple[Failure, ...]
    """The failure of each attempt, in order, also of attempts that do not count. Of more than 100 these are the first
    10 and the last 90. Only the last one's exception has its traceback."""


class EpochAccount:
    """The rows to emit, the rows that are open, and the failures of the attempt. It has no clock and no event loop.

    An attempt counts only as a whole: bolts may join the tuples of one row with those of others, and may hold rows
    until the last one has come.
    """

    def __init__(self, number: int, policy: ReplayPolicy) -> None:
        self.number = number
        self.attempt = 0
        self.whole = False
        """True once every row of the epoch was added."""
        self.failed_rows = 0
        """Rows that have failed in this attempt."""
        self.fruitless = 0
        """Attempts in a row that have failed without a row being given up."""
        self._policy = policy
        self._origins: list[Origin] = []
        self._values: list[object] = []
        self._next = 0
        """Place of the next row to emit in this attempt."""
        self._again = deque[Origin]()
        """Rows that reached no task."""
        self._open = 0
        self._values_by_origin: dict[Origin, object] = {}
        """Of as many rows as were there when one failed: most epochs never need it."""
        self._histories: dict[Origin, History] = {}
        self._attempts: dict[Origin, int] = {}
        self._given_up: dict[Origin, GivenUp] = {}
        self._given_up_before = 0

    def __len__(self) -> int:
        return len(self._origins)

    def begin(self, attempt: int) -> None:
        """Begin another attempt, at all rows that were not given up."""
        fruitless = self.failed_rows and len(self._given_up) == self._given_up_before
        self.fruitless = self.fruitless + 1 if fruitless else 0
        self._given_up_before = len(self._given_up)
        self.attempt = attempt
        self.failed_rows = 0
        self._next = 0

    def add(self, origin: Origin, value: object) -> None:
        """Add a row that was read; it belongs to the attempt under way."""
        self.add_all((origin,), (value,))

    def add_all(self, origins: Sequence[Origin], values: Sequence[object]) -> None:
        """Add rows that were read together, as :meth:`add` does."""
        self._origins += origins
        self._values += values

    @property
    def has_waiting(self) -> bool:
        """True if there may be rows to emit."""
        return self._next < len(self._origins) or bool(self._again)

    def next(self, most: int) -> tuple[Sequence[Origin], Sequence[object]]:
        """The next rows to emit, in order, and their values; from now on they are open."""
        first, self._next = self._next, min(self._next + most, len(self._origins))
        origins, values = self._origins[first : self._next], self._values[first : self._next]
        if self._given_up:
            kept = [place for place, origin in enumerate(origins) if origin not in self._given_up]
            origins, values = [origins[place] for place in kept], [values[place] for place in kept]
        while self._again and len(origins) < most:
            origins.append(self._again.popleft())
            values.append(self._value(origins[-1]))
        self._open += len(origins)
        return origins, values

    def acked(self) -> None:
        """Note that a row is done in this attempt."""
        self._open -= 1

    def failed(self, origin: Origin, failure: Failure) -> None:
        """Note that a row has failed. A row that reached no task (OVERFLOW, law L13) waits again, and fails no
        attempt."""
        self._open -= 1
        if failure.kind is FailureKind.OVERFLOW:
            self._again.append(origin)
            return
        self.failed_rows += 1
        attempts = self._attempts[origin] = self._attempts.get(origin, 0) + self._policy.counts(failure)
        gives_up = failure.kind is not FailureKind.SHUTDOWN and self._policy.gives_up(failure, attempts)
        before = self._histories.get(origin, History())
        history = before.and_also(failure if gives_up else failure.without_frames())
        self._histories[origin] = history
        if gives_up:
            self._given_up[origin] = GivenUp(origin, self._value(origin), attempts, history)

    @property
    def emitted(self) -> bool:
        """True if every row of the epoch was emitted in this attempt."""
        return self.whole and not self.has_waiting

    @property
    def done(self) -> bool:
        """True if this attempt is over and no row has failed, so that it can be committed."""
        return self.emitted and not self._open and not self.failed_rows

    def given_up(self) -> Iterator[GivenUp]:
        """The rows that were given up."""
        return iter(self._given_up.values())

    def _value(self, origin: Origin) -> object:
        known = len(self._values_by_origin)
        self._values_by_origin.update(zip(self._origins[known:], self._values[known:], strict=True))
        return self._values_by_origin[origin]
