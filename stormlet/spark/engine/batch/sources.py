"""The messages of a batch: those of DataFrames are read by Spark, all others by the driver.

The driver reads an iterable or a generator once, in chunks, and gives them to Spark, which keeps them: however often
Spark repeats a stage, the messages are the same. Its chunks go round the partitions of their spout.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Final, cast

import msgspec

from stormlet.core.shortened import shortened
from stormlet.errors import TopologyCrashed
from stormlet.model.components import TaskContext
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import SourceKind, takes_context
from stormlet.spark.engine.batch.arrow_rows import batches_of, schema
from stormlet.spark.engine.partition.rows import CHUNK, Kind, Row
from stormlet.spark.engine.planning.numbering import ClusterPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEGMENT: Final = 64 << 20
"""Bytes of chunks that the driver holds at a time."""


def message_rows(cluster: ClusterPlan, spout: SpoutSpec) -> Iterator[Row]:
    """Iterate over the messages of a spout that the driver reads, in chunks for its tasks. There is one chunk at least,
    as Spark leaves out the stages behind a DataFrame that it knows to be empty."""
    tasks = cluster.plan.tasks[spout.id]
    values = values_of(cluster, spout)
    for number in count(1):
        chunk = list(islice(values, CHUNK))
        if not chunk and number > 1:
            return
        task = tasks[(number - 1) % len(tasks)].task
        place = cluster.places[task]
        yield Row(
            Kind.MESSAGES,
            place.stage,
            place.partition,
            target=task,
            producer=task,
            number=number,
            size=len(chunk),
            payload=_pickled(cluster, spout, chunk),
        )


def _pickled(cluster: ClusterPlan, spout: SpoutSpec, values: Sequence[object]) -> bytes:
    try:
        return pickle.dumps(values, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        bad = next((each for each in values if not _is_picklable(each)), values)
        way_out = f"what goes to Spark is pickled, and {shortened(bad)} cannot be: give records"
        name = cluster.plan.description.name
        raise TopologyCrashed(name, f"{spout.id}[0]", "the emit", "", way_out) from error


def _is_picklable(value: object) -> bool:
    try:
        pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return False
    return True


def no_messages(cluster: ClusterPlan, spout: SpoutSpec) -> Iterator[Row]:
    """Iterate over the one chunk of a spout that has none."""
    return message_rows(cluster, msgspec.structs.replace(spout, kind=SourceKind.ITERABLE, source=()))


def values_of(cluster: ClusterPlan, spout: SpoutSpec) -> Iterator[object]:
    """Iterate over the values of an iterable or generator. Raise :class:`~stormlet.errors.TopologyCrashed` for what it
    raises."""
    try:
        yield from _values(cluster, spout)
    except Exception as error:
        raise TopologyCrashed(cluster.plan.description.name, f"{spout.id}[0]", "next_tuple") from error


def _values(cluster: ClusterPlan, spout: SpoutSpec) -> Iterable[object]:
    if spout.kind is SourceKind.ITERABLE:
        return cast("Iterable[object]", spout.source)
    function = cast("Callable[..., Iterable[object]]", spout.source)
    if not takes_context(function):
        return function()
    return (value for context in _contexts(cluster, spout) for value in function(context))


def _contexts(cluster: ClusterPlan, spout: SpoutSpec) -> Iterator[TaskContext]:
    description = cluster.plan.description
    for index in range(spout.parallelism):
        yield TaskContext(
            description.name,
            spout.id,
            cluster.plan.tasks[spout.id][0].task + index,
            index,
            spout.parallelism,
            cluster.configurations[spout.id],
        )


def frame_of(session: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Return the rows as a DataFrame."""
    import pyarrow as pa

    return session.createDataFrame(pa.Table.from_batches(batches_of(rows), schema()))
