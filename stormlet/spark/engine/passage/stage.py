"""A stage as Spark runs it: a function for ``mapInArrow``, called once for each partition, in a process of Spark's.

Rows come in the order of their producers. Those that are addressed to this stage are executed; all others pass by, to
a later stage or to the driver. The last row is the report of the partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from stormlet.core.tracebacks import raised_in
from stormlet.errors import SparkFailed, TopologyCrashed
from stormlet.spark.engine.partition.keyed.partition import partition_at
from stormlet.spark.engine.partition.partition import Partition
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.passage.arrow_rows import batches_of, rows_of
from stormlet.spark.engine.passage.messages import Messages, Reading, ValuesOf, partition_number, unpickled
from stormlet.spark.engine.passage.reports import pickled, report_of
from stormlet.spark.engine.planning.numbering import Place

if TYPE_CHECKING:
    import pyarrow as pa


class Stage(msgspec.Struct, frozen=True):
    """The function of one stage."""

    cluster: bytes
    """The plan, pickled: it is unpickled once in each process."""
    number: int
    seed: int
    by_root: bool = False
    """True if its partitions leave entries of the ledger by root."""
    again: Mapping[int, int] | None = None
    """By root, the next attempts of the messages to emit; None for the first attempts of all."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Execute one partition."""
        place = Place(self.number, partition_number())
        work = Work(self.cluster, place, self.seed, by_root=self.by_root, again=self.again)
        return batches_of(work.rows(row for batch in batches for row in rows_of(batch)))


class FrameStage(msgspec.Struct, frozen=True):
    """The function of the first stage where a spout reads a DataFrame: each of its rows is a message."""

    cluster: bytes
    values_of: ValuesOf
    seed: int
    by_root: bool = False
    again: Mapping[int, int] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Execute one partition."""
        place = Place(0, partition_number())
        work = Work(self.cluster, place, self.seed, by_root=self.by_root, again=self.again)
        return batches_of(work.emitted(map(self.values_of, batches)))


class Work:
    """The work on one partition."""

    def __init__(
        self, cluster: bytes, place: Place, seed: int, *, by_root: bool, again: Mapping[int, int] | None
    ) -> None:
        self._cluster = unpickled(cluster)
        self._place = place
        self._seed = seed
        self._by_root = by_root
        self._again = again
        self._partition: Partition | None = None
        self._reading = Reading(self._cluster, place)

    def rows(self, arriving: Iterator[Row | Messages]) -> Iterator[Row]:
        """Execute what arrives for this stage; iterate over what leaves, and what passes by. Raise
        :class:`~stormlet.errors.SparkFailed` for a crash."""
        try:
            yield from self._rows(arriving)
        except TopologyCrashed as crash:
            raise _told(crash) from crash.__cause__
        except SystemExit as ended:
            noted = None if self._partition is None else self._partition.crash
            if noted is None:
                raise
            raise _told(noted) from ended

    def _rows(self, arriving: Iterator[Row | Messages]) -> Iterator[Row]:
        with asyncio.Runner() as runner:
            partition = runner.run(self._started())
            try:
                for each in arriving:
                    if isinstance(each, Row) and each.stage != self._place.stage:
                        yield each
                    else:
                        yield from self._rows_of(runner, self._executed(partition, each))
                        yield from partition.ledger_rows()
                yield from self._rows_of(runner, partition.finish())
                yield from partition.ledger_rows(1)
                report = pickled(report_of(partition))
            finally:
                runner.run(partition.close())
        yield Row(Kind.REPORT, self._cluster.driver.stage, 0, payload=report)

    def emitted(self, values: Iterator[Sequence[object]]) -> Iterator[Row]:
        """Emit values that Spark has read here; iterate over what leaves."""
        return self.rows(map(self._reading.of_values, values))

    def _rows_of(self, runner: asyncio.Runner, step: Awaitable[Sequence[Row]]) -> Sequence[Row]:
        # Not what the runner returns: to look at the signal handler, it makes a text of its task, result and all.
        left: list[Row] = []
        runner.run(_into(left, step))
        return left

    async def _started(self) -> Partition:
        partition = partition_at(self._cluster, self._place, self._seed, by_root=self._by_root)
        self._partition = partition
        try:
            await partition.start()
        except BaseException:
            await partition.close()
            raise
        return partition

    async def _executed(self, partition: Partition, each: Row | Messages) -> Sequence[Row]:
        if isinstance(each, Messages):
            if self._again is None:
                return await partition.emit(each.task, each.values, each.first)
            return await partition.emit_again(each.task, each.attempts(self._again))
        if each.place != self._place:
            raise SparkFailed(f"Spark brought a row of {each.place} to {self._place}")
        if each.kind == Kind.MESSAGES:
            return await self._executed(partition, self._reading.of_row(each))
        return await partition.execute(each)


def _told(crash: TopologyCrashed) -> SparkFailed:
    """The crash in one sentence, as Spark shows no causes."""
    place = None if crash.__cause__ is None else raised_in(crash.__cause__)
    return SparkFailed(str(crash) if place is None else f"{crash} at {place}")


async def _into(left: list[Row], step: Awaitable[Sequence[Row]]) -> None:
    left += await step
