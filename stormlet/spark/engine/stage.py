"""A stage as Spark runs it: a function for ``mapInArrow``, called once for each partition, in a process of Spark's.

Rows come in the order of their producers. Those that are addressed to this stage are executed; all others pass by, to
a later stage or to the driver. The last row is the account of the partition.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from stormlet.core.outcomes import Failure, History
from stormlet.core.shortened import shown
from stormlet.errors import SparkFailed
from stormlet.runtime.run.kit import Kit
from stormlet.spark.engine.account import Account
from stormlet.spark.engine.arrow_rows import batches_of, rows_of
from stormlet.spark.engine.inputs import GivenUp
from stormlet.spark.engine.numbering import ClusterPlan, Place
from stormlet.spark.engine.partition import Partition, root_of
from stormlet.spark.engine.rows import Kind, Row

if TYPE_CHECKING:
    import pyarrow as pa

ValuesOf: TypeAlias = Callable[["pa.RecordBatch"], Sequence[object]]
"""Makes values of a record batch."""


class Stage(msgspec.Struct, frozen=True):
    """The function of one stage."""

    cluster: bytes
    """The plan, pickled: it is unpickled once in each process."""
    number: int
    seed: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Execute one partition."""
        work = Work(self.cluster, Place(self.number, _partition()), self.seed)
        return batches_of(work.rows(row for batch in batches for row in rows_of(batch)))


class FrameStage(msgspec.Struct, frozen=True):
    """The function of the first stage where a spout reads a DataFrame: each of its rows is a message."""

    cluster: bytes
    values_of: ValuesOf
    seed: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Execute one partition."""
        work = Work(self.cluster, Place(0, _partition()), self.seed)
        return batches_of(work.emitted(map(self.values_of, batches)))


FOUND: Final = "root bigint, value binary"
"""The schema of the messages that :class:`Finder` finds."""


class Finder(msgspec.Struct, frozen=True):
    """A function in the place of the first stage, which gives back some of the messages."""

    cluster: bytes
    wanted: frozenset[int]
    """Their roots."""
    values_of: ValuesOf | None = None
    """Makes the values of messages that Spark reads."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Find those of one partition."""
        import pyarrow as pa

        for root, value in self._messages(batches):
            if root in self.wanted:
                yield pa.RecordBatch.from_pydict({"root": [root], "value": [pickle.dumps(value)]})

    def _messages(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, object]]:
        if self.values_of is None:
            rows: Iterator[Row] = (row for batch in batches for row in rows_of(batch))
        else:
            place = Place(0, _partition())
            rows = messages_at(_unpickled(self.cluster), place, map(self.values_of, batches))
        numbers = Numbers()
        for row in rows:
            first = numbers.first_of(row)
            for number, value in enumerate(pickle.loads(row.payload), first):
                yield root_of(row.target, number), value


class Numbers:
    """The numbers of messages, counted by spout task."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}

    def first_of(self, row: Row) -> int:
        """Return the number of the first message of a row, from 1."""
        first = self._next.get(row.target, 1)
        self._next[row.target] = first + row.size
        return first


def messages_at(cluster: ClusterPlan, place: Place, values: Iterator[Sequence[object]]) -> Iterator[Row]:
    """Iterate over rows with these values for the spout task at this place."""
    spouts = cluster.plan.description.spouts
    task = next(each.task for each in cluster.tasks_at(place) if each.component in spouts)
    for each in values:
        yield Row(
            Kind.MESSAGES,
            place.stage,
            place.partition,
            target=task,
            size=len(each),
            payload=pickle.dumps(each, pickle.HIGHEST_PROTOCOL),
        )


class Work:
    """The work on one partition."""

    def __init__(self, cluster: bytes, place: Place, seed: int) -> None:
        self._cluster = _unpickled(cluster)
        self._place = place
        self._seed = seed

    def rows(self, arriving: Iterator[Row]) -> Iterator[Row]:
        """Execute what arrives for this stage; iterate over what leaves, and what passes by."""
        with asyncio.Runner() as runner:
            partition = runner.run(self._started())
            try:
                numbers = Numbers()
                for row in arriving:
                    if row.stage != self._place.stage:
                        yield row
                    elif row.place != self._place:
                        raise SparkFailed(f"Spark brought a row of {row.place} to {self._place}")
                    elif row.kind == Kind.MESSAGES:
                        values = pickle.loads(row.payload)
                        yield from runner.run(partition.emit(row.target, values, numbers.first_of(row)))
                    else:
                        yield from runner.run(partition.execute(row))
                yield from runner.run(partition.finish())
            finally:
                runner.run(partition.close())
            yield from self._accounts(partition)

    def emitted(self, values: Iterator[Sequence[object]]) -> Iterator[Row]:
        """Emit values that Spark has read; iterate over what leaves."""
        return self.rows(messages_at(self._cluster, self._place, values))

    async def _started(self) -> Partition:
        partition = Partition(self._cluster, self._place, self._seed, Kit())
        try:
            await partition.start()
        except BaseException:
            await partition.close()
            raise
        return partition

    def _accounts(self, partition: Partition) -> Iterator[Row]:
        for each in partition.given_up:
            yield self._row(Kind.GIVEN_UP, portable(each))
        if replayed := list(partition.replayed):
            yield self._row(Kind.REPLAYED, pickle.dumps(replayed))
        yield self._row(Kind.ACCOUNT, pickle.dumps(partition.line))

    def _row(self, kind: Kind, payload: bytes) -> Row:
        return Row(kind, self._cluster.driver.stage, 0, payload=payload)


def portable(given_up: GivenUp) -> bytes:
    """Return a pickled record, in which an exception that cannot be pickled is its text."""
    try:
        pickled = pickle.dumps(given_up)
        pickle.loads(pickled)  # an exception may be pickled, and not be made again
    except Exception:
        history = History(_in_words(each) for each in given_up.history)
        pickled = pickle.dumps(msgspec.structs.replace(given_up, history=history))
    return pickled


def _in_words(failure: Failure) -> Failure:
    from dataclasses import replace

    error = failure.exception
    return failure if error is None else replace(failure, exception=RuntimeError(shown(error)))


class Arrived(msgspec.Struct, frozen=True):
    """A function that adds up the chunks that have come to their end."""

    end: Place

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add up those of one partition."""
        import pyarrow as pa

        account = Account(self.end)
        for batch in batches:
            for row in rows_of(batch):
                account.arrived(row)
        yield pa.RecordBatch.from_pydict({"line": [pickle.dumps(account.line())]})


def _partition() -> int:
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return int(context.partitionId())


@lru_cache(maxsize=4)
def _unpickled(cluster: bytes) -> ClusterPlan:
    plan: ClusterPlan = pickle.loads(cluster)
    return plan
