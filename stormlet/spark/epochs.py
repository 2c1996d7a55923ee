"""Epochs, the units of exactly-once: a source and its sinks agree on the attempt that counts, and on its rows.

Theory of operation.

An *epoch* is a fixed range of the source's rows: n rows of a DataFrame in the order of partitions and rows, or one
micro-batch of a stream. Its number and its rows are the same in every run. An *attempt* emits all rows of an epoch,
but for those that earlier attempts have given up. There is one attempt at a time, and :class:`Epochs`, which the
source and the sinks of a run share, knows its number.

1. The source begins an attempt and emits its rows; each tuple carries its epoch (``tup.origin``) and its attempt.
2. A sink keeps the rows of the attempt in memory, and acks them once they are kept. It writes nothing. A row of an
   older attempt is failed, not dropped: it may share a tree with a row of the present attempt.
3. When all rows are emitted the source pauses until everything is settled. Bolts that hold rows are flushed by that,
   so that no row is joined across the border of its epoch.
4. If a row has failed, the rows kept are forgotten, and the next attempt begins after a pause. An attempt is repeated
   as a whole, as a bolt may have joined or counted any of its rows with any other.
5. Otherwise the source commits, strictly in this order: each sink replaces the directory of the epoch by the rows kept,
   durably; the rows given up go to the dead letters, durably; the source records that the epoch is done, in its
   checkpoint or by letting Spark commit the batch.

A process that is killed before the record does the same epoch again, and the sinks replace what they have written of
it: the write is idempotent by its place, ``source=.../epoch=...``. After the record nothing of the epoch is read
again. So each row is there exactly once for a reader who waits for the end, and dead letters may come twice.

Two things break the bargain, and both crash the run (:class:`~stormlet.errors.NotExactlyOnce`) before anything false
is written: a tuple at a sink that comes from no row of the source, and an epoch whose attempts go on failing without
a row being given up. What must not change between runs (the rows, the size of an epoch, the sinks' places) is checked
at the start against the checkpoint and the directories.

This module has the state that the source and its sinks share (:class:`Epochs`), and the account of the rows of one
epoch (:class:`EpochAccount`). :mod:`stormlet.spark.epoch_emitter` runs the attempts and the commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stormlet.core.outcomes import Failure, FailureKind, History
from stormlet.core.retries import ReplayPolicy
from stormlet.errors import InvalidTopology, NotExactlyOnce, SparkFailed
from stormlet.spark.frames import Origin

if TYPE_CHECKING:
    from pyarrow import Table


logger = logging.getLogger(__name__)

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each new try of a write that failed."""


@dataclass(frozen=True, slots=True)
class SourceKey:
    """Name of a source's epochs, different from that of any other source, in every process."""

    name: str
    """Begins with a letter, so that Spark reads it as text."""
    cut: str = ""
    """The size of an epoch, where the same rows could be cut in another way."""

    def __str__(self) -> str:
        return f"{self.name}-{self.cut}" if self.cut else self.name


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one epoch."""

    epoch: int | None
    """None before the first epoch."""
    number: int
    """From 1."""


@dataclass(frozen=True, slots=True)
class EpochTarget:
    """The place that one sink writes to, and the calls by which it does."""

    destination: str
    """The place, in words, the same in every process."""
    check: Callable[[SourceKey], Awaitable[None]]
    """Raises :class:`~stormlet.errors.InvalidTopology` if the epochs of this source cannot be written here."""
    write: Callable[[SourceKey, int, Sequence[Table]], Awaitable[None]]
    """Replaces all rows of an epoch by these, durably. Raises :class:`~stormlet.errors.SparkFailed`."""


class Epochs:
    """The attempt under way and the rows kept for it. The tasks of a run share one, ``context.shared.one(Epochs)``,
    and use it on the loop's thread alone."""

    def __init__(self) -> None:
        self.attempt = Attempt(None, 0)
        """The one that is under way."""
        self.spoilt = False
        """True once a sink has refused a tuple that belongs to no epoch: the run is crashing, and nothing may be
        written any more."""
        self._targets: dict[str, EpochTarget] = {}
        self._kept: dict[str, list[Table]] = {}

    def register(self, component: str, target: EpochTarget) -> None:
        """Register a sink that will keep rows. The tasks of a sink share a target; the last task's is used.

        Raises :class:`~stormlet.errors.InvalidTopology` if another sink writes to the same place.
        """
        for other, its in self._targets.items():
            if other != component and its.destination == target.destination:
                raise InvalidTopology(
                    f"bolts {other!r} and {component!r} both write exactly once to {target.destination}, and would "
                    f"replace each other's rows; give each a path of its own, or let one bolt consume both streams"
                )
        self._targets[component] = target

    @property
    def destinations(self) -> tuple[str, ...]:
        """The places of all sinks."""
        return tuple(sorted(target.destination for target in self._targets.values()))

    async def check(self, source: SourceKey) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` if a sink cannot write the epochs of this source."""
        for target in self._targets.values():
            await target.check(source)

    def begin(self, epoch: int) -> int:
        """Begin the next attempt at an epoch and return its number, from 1; forget the rows kept for the last one."""
        self.attempt = Attempt(epoch, self.attempt.number + 1 if epoch == self.attempt.epoch else 1)
        self._kept.clear()
        return self.attempt.number

    def keep(self, component: str, table: Table) -> None:
        """Keep rows of the attempt under way."""
        self._kept.setdefault(component, []).append(table)

    async def commit(self, source: SourceKey) -> None:
        """Write the rows kept for the attempt, in each sink as a whole; a sink without rows writes that there are
        none.

        A write that fails is repeated after growing pauses; the rows stay kept meanwhile. Raises
        :class:`~stormlet.errors.SparkFailed` after the last one, and :class:`~stormlet.errors.NotExactlyOnce` if the
        rows kept are not all that have come.
        """
        if self.spoilt:
            raise NotExactlyOnce(f"epoch {self.attempt.epoch} is not written, as a sink has refused a row")
        for component in self._targets:
            await self._write(component, source)

    async def _write(self, component: str, source: SourceKey) -> None:
        epoch, tables = self.attempt.epoch, self._kept.get(component, ())
        assert epoch is not None, "an epoch was begun"
        for pause in PAUSES:
            try:
                return await self._targets[component].write(source, epoch, tables)
            except SparkFailed as error:
                logger.warning("%s: epoch %d is written again in %g s: %s", component, epoch, pause, error)
                await asyncio.sleep(pause)
        return await self._targets[component].write(source, epoch, tables)


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
        self._rows: dict[Origin, object] = {}
        self._waiting: deque[Origin] = deque()
        self._open = 0
        self._histories: dict[Origin, History] = {}
        self._attempts: dict[Origin, int] = {}
        self._given_up: dict[Origin, GivenUp] = {}
        self._given_up_before = 0

    def __len__(self) -> int:
        return len(self._rows)

    def begin(self, attempt: int) -> None:
        """Begin another attempt, at all rows that were not given up."""
        fruitless = self.failed_rows and len(self._given_up) == self._given_up_before
        self.fruitless = self.fruitless + 1 if fruitless else 0
        self._given_up_before = len(self._given_up)
        self.attempt = attempt
        self.failed_rows = 0
        self._waiting = deque(origin for origin in self._rows if origin not in self._given_up)

    def add(self, origin: Origin, value: object) -> None:
        """Add a row that was read; it belongs to the attempt under way."""
        self._rows[origin] = value
        self._waiting.append(origin)

    def add_all(self, origins: Sequence[Origin], values: Sequence[object]) -> None:
        """Add rows that were read together, as :meth:`add` does."""
        self._rows.update(zip(origins, values, strict=True))
        self._waiting.extend(origins)

    @property
    def has_waiting(self) -> bool:
        """True if there are rows to emit."""
        return bool(self._waiting)

    def next(self, most: int) -> dict[Origin, object]:
        """The next rows to emit, in order; from now on they are open."""
        origins = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._open += len(origins)
        return {origin: self._rows[origin] for origin in origins}

    def acked(self) -> None:
        """Note that a row is done in this attempt."""
        self._open -= 1

    def failed(self, origin: Origin, failure: Failure) -> None:
        """Note that a row has failed. A row that reached no task (OVERFLOW, law L13) waits again, and fails no
        attempt."""
        self._open -= 1
        if failure.kind is FailureKind.OVERFLOW:
            self._waiting.append(origin)
            return
        self.failed_rows += 1
        attempts = self._attempts[origin] = self._attempts.get(origin, 0) + self._policy.counts(failure)
        gives_up = failure.kind is not FailureKind.SHUTDOWN and self._policy.gives_up(failure, attempts)
        before = self._histories.get(origin, History())
        history = before.and_also(failure if gives_up else failure.without_frames())
        self._histories[origin] = history
        if gives_up:
            self._given_up[origin] = GivenUp(origin, self._rows[origin], attempts, history)

    @property
    def emitted(self) -> bool:
        """True if every row of the epoch was emitted in this attempt."""
        return self.whole and not self._waiting

    @property
    def done(self) -> bool:
        """True if this attempt is over and no row has failed, so that it can be committed."""
        return self.emitted and not self._open and not self.failed_rows

    def given_up(self) -> Iterator[GivenUp]:
        """The rows that were given up."""
        return iter(self._given_up.values())
