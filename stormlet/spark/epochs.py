"""Epochs, the units of exactly-once: a source and its sinks agree on the attempt that counts, and on its rows.

Theory of operation.

An *epoch* is a fixed range of the source's rows: n rows of a DataFrame in the order of partitions and rows, or one
micro-batch of a stream. Its number and its rows are the same in every run. An *attempt* emits all rows of an epoch,
but for those that earlier attempts have given up. There is one attempt at a time, and :class:`Epochs`, which the
source and the sinks of a run share, knows its number. Epochs follow each other, and at most one is being written while
the next one runs.

1. The source begins an attempt and emits its rows; each tuple carries its epoch (``tup.origin``) and its attempt.
2. A sink keeps the rows of the attempt in memory, and acks them once they are kept. It writes nothing. A row of an
   older attempt is failed, not dropped: it may share a tree with a row of the present attempt.
3. When all rows are emitted the source pauses until everything is settled. Bolts that hold rows are flushed by that,
   so that no row is joined across the border of its epoch.
4. If a row has failed, the rows kept are forgotten, and the next attempt begins after a pause. An attempt is repeated
   as a whole, as a bolt may have joined or counted any of its rows with any other.
5. Otherwise the epoch is *sealed*: the rows kept, the rows given up and the source's position are set aside
   (:class:`SealedEpoch`), and nothing changes them any more. The next epoch begins at once.
6. The commit of a sealed epoch goes on beside that, strictly in this order: each sink replaces the directory of the
   epoch by the rows kept, durably; the rows given up go to the dead letters, durably; the source records that the epoch
   is done, in its checkpoint or by letting Spark commit the batch. An epoch is sealed only when the commit of the one
   before has ended, so commits are in the order of epochs. The source ends only when the last one has.

A process that is killed before the record does the same epoch again, and the one that ran beside it; the sinks replace
what they have written: the write is idempotent by its place, ``source=.../epoch=...``. After the record nothing of the
epoch is read again. So each row is there exactly once for a reader who waits for the end, and dead letters may come
twice. A commit that fails for good crashes the run, and no later epoch is sealed.

Two things break the bargain, and both crash the run (:class:`~stormlet.errors.NotExactlyOnce`) before anything false
is written: a tuple at a sink that comes from no row of the source, and an epoch whose attempts go on failing without
a row being given up. What must not change between runs (the rows, the size of an epoch, the sinks' places) is checked
at the start against the checkpoint and the directories.

This module has the state that the source and its sinks share (:class:`Epochs`). The account of the rows of one epoch is
in :mod:`stormlet.spark.epoch_account`; :mod:`stormlet.spark.epoch_emitter` runs the attempts and the commits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stormlet.errors import InvalidTopology, NotExactlyOnce, SparkFailed

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


@dataclass(frozen=True, slots=True)
class SealedEpoch:
    """The rows to write of an epoch that was settled without a failure."""

    number: int
    tables: Mapping[str, Sequence[Table]]
    """By sink, the rows kept; a sink without rows may be missing."""


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

    def seal(self) -> SealedEpoch:
        """Set aside the rows kept for the attempt, which has succeeded. Raises
        :class:`~stormlet.errors.NotExactlyOnce` if they are not all that have come."""
        epoch = self.attempt.epoch
        if self.spoilt:
            raise NotExactlyOnce(f"epoch {epoch} is not written, as a sink has refused a row")
        assert epoch is not None, "an epoch was begun"
        kept, self._kept = self._kept, {}
        return SealedEpoch(epoch, kept)

    async def write(self, source: SourceKey, epoch: SealedEpoch) -> None:
        """Write a sealed epoch, in each sink as a whole; a sink without rows writes that there are none.

        A write that fails is repeated after growing pauses. Raises :class:`~stormlet.errors.SparkFailed` after the
        last one.
        """
        for component in self._targets:
            await self._write(component, source, epoch)

    async def _write(self, component: str, source: SourceKey, epoch: SealedEpoch) -> None:
        number, tables = epoch.number, epoch.tables.get(component, ())
        for pause in PAUSES:
            try:
                return await self._targets[component].write(source, number, tables)
            except SparkFailed as error:
                logger.warning("%s: epoch %d is written again in %g s: %s", component, number, pause, error)
                await asyncio.sleep(pause)
        return await self._targets[component].write(source, number, tables)
