"""The messages of a batch in the first stage: their numbers, and those that are read again to become dead letters."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.errors import SparkFailed
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.partition import origin_of, root_of
from stormlet.spark.engine.partition.rows import CHUNK, Row
from stormlet.spark.engine.passage.arrow_rows import rows_of
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place
from stormlet.spark.frames import Origin

if TYPE_CHECKING:
    import pyarrow as pa

ValuesOf: TypeAlias = Callable[["pa.RecordBatch"], Sequence[object]]
"""Makes values of a record batch."""

FOUND: Final = "root bigint, value binary"
"""The schema of the messages that :class:`Finder` finds."""


class Messages(msgspec.Struct, frozen=True):
    """Messages that follow each other at one spout task."""

    task: int
    values: Sequence[object]
    first: int
    """The number of the first one there, from 1."""

    def roots(self) -> Iterator[int]:
        """Iterate over their roots."""
        return (root_of(self.task, number) for number in range(self.first, self.first + len(self.values)))

    def attempts(self, again: Mapping[int, int]) -> Iterator[tuple[int, object, int]]:
        """Iterate over those that are emitted again: number, value and attempt of each. ``again`` has the attempts by
        root."""
        for root, value in zip(self.roots(), self.values, strict=True):
            if root in again:
                yield origin_of(root)[1], value, again[root]


class Reading:
    """The messages of one partition, numbered as they are read."""

    def __init__(self, cluster: ClusterPlan, place: Place) -> None:
        self._cluster = cluster
        self._place = place
        self._next: dict[int, int] = {}

    def of_row(self, row: Row) -> Messages:
        """Return the messages of a row, which the driver has read."""
        return self._numbered(row.target, pickle.loads(row.payload))

    def of_values(self, values: Sequence[object]) -> Messages:
        """Return messages that Spark has read here."""
        spouts = self._cluster.plan.description.spouts
        here = self._cluster.tasks_at(self._place)
        task = next((each.task for each in here if each.component in spouts), None)
        if task is None:
            raise SparkFailed(
                f"partition {self._place.partition} was not there when the partitions of its DataFrame were counted; "
                f"write the DataFrame to files first, and read those"
            )
        return self._numbered(task, values)

    def _numbered(self, task: int, values: Sequence[object]) -> Messages:
        first = self._next.get(task, 1)
        self._next[task] = first + len(values)
        return Messages(task, values, first)


class Finder(msgspec.Struct, frozen=True):
    """A function in the place of the first stage, which gives back some of the messages."""

    cluster: bytes
    wanted: frozenset[int]
    """Their roots."""
    values_of: ValuesOf | None = None
    """Makes the values of messages that Spark reads."""
    first: int = 0
    """The first partition of their spout in the stage."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Find those of one partition."""
        import pyarrow as pa

        for messages in self._messages(batches):
            each = zip(messages.roots(), messages.values, strict=True)
            found = {root: pickle.dumps(value) for root, value in each if root in self.wanted}
            if found:
                yield pa.RecordBatch.from_pydict({"root": [*found], "value": [*found.values()]})

    def _messages(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Messages]:
        reading = Reading(unpickled(self.cluster), Place(0, self.first + partition_number()))
        if self.values_of is None:
            return (reading.of_row(row) for batch in batches for row in rows_of(batch))
        return map(reading.of_values, map(self.values_of, batches))


def letters_of(
    cluster: ClusterPlan,
    given_up: Mapping[int, GivenUp],
    found: Mapping[int, object],
    by_spark: Container[str],
) -> Iterator[DeadLetter]:
    """Iterate over the dead letters of messages that were ``found`` again, both by root, in the order of their roots;
    ``by_spark`` are the spouts that Spark reads."""
    for root in sorted(found):
        spout, message_id = named(cluster, root, by_spark)
        origin = message_id if isinstance(message_id, Origin) else None
        history, attempts = given_up[root].history, given_up[root].attempts
        yield DeadLetter(spout, found[root], message_id, attempts, history[-1], origin, history)


def by_message(given_up: Iterable[GivenUp]) -> Mapping[int, GivenUp]:
    """Return what was given up, by the root of its message: of a message that was given up in several places, what
    had the most attempts."""
    found = dict[int, GivenUp]()
    for each in given_up:
        for root in each.messages:
            if root not in found or found[root].attempts < each.attempts:
                found[root] = each
    return found


def named(cluster: ClusterPlan, root: int, by_spark: Container[str]) -> tuple[str, Origin | int]:
    """Return the spout of a message, and the place of its row; or its number in the source, from 0, if the driver has
    read it. ``by_spark`` are the spouts that Spark reads. Raise :class:`LookupError` if no spout has emitted it."""
    task, number = origin_of(root)
    spout = cluster.component_of(task) if task in cluster.places else ""
    if spout not in cluster.plan.description.spouts:
        raise LookupError(root)
    tasks = cluster.plan.tasks[spout]
    index = task - tasks[0].task
    if spout in by_spark:
        return spout, Origin(index, number - 1)
    turn, place = divmod(number - 1, CHUNK)  # chunks go round the tasks
    return spout, (turn * len(tasks) + index) * CHUNK + place


def partition_number() -> int:
    """Return the number of the partition that this task of Spark works on."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return int(context.partitionId())


@lru_cache(maxsize=4)
def unpickled(cluster: bytes) -> ClusterPlan:
    """Return the plan; it is unpickled once in each process."""
    plan: ClusterPlan = pickle.loads(cluster)
    return plan
