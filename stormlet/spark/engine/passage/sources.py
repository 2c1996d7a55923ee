"""The messages of a batch: those of DataFrames are read by Spark, all others by the driver.

The driver reads an iterable or a generator once, in chunks, and gives them to Spark, which keeps them: however often
Spark repeats a stage, the messages are the same. Its chunks go round the partitions of their spout. What fits into one
segment stays in memory. Of a larger source the driver writes one segment after another into files, and never holds more
than one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from stormlet.core.shortened import shortened
from stormlet.errors import TopologyCrashed
from stormlet.model.components import TaskContext
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import SourceKind, takes_context
from stormlet.spark.engine.partition.rows import CHUNK, Kind, Row
from stormlet.spark.engine.passage.arrow_rows import batches_of, rows_in, schema
from stormlet.spark.engine.passage.chain import exchanged
from stormlet.spark.engine.passage.connect import default_parallelism, partitions_of
from stormlet.spark.engine.passage.messages import ValuesOf
from stormlet.spark.engine.planning.numbering import ClusterPlan
from stormlet.spark.source.dataframe_spout import DataFrameSpout
from stormlet.spark.stream.stream import StreamSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SEGMENT: Final = 64 << 20
"""Bytes of chunks that the driver holds at a time."""


class SourceFrames:
    """The messages of all spouts as DataFrames, for the first stage."""

    def __init__(
        self,
        session: SparkSession,
        spouts: Mapping[str, SpoutSpec],
        by_spark: Mapping[str, tuple[DataFrame, ValuesOf]] | None = None,
    ) -> None:
        """``by_spark`` are the DataFrames of this run, by spout; without it, those of the spouts themselves."""
        self._session = session
        self._spouts = spouts
        self._read: dict[str, DataFrame] = {}
        self._partitions = dict[str, int]()
        self.by_spark = self._distributed() if by_spark is None else by_spark
        """By spout, the DataFrames that Spark reads, and the functions that make values of their record batches. Those
        without a partition are left to the driver, which reads nothing."""
        self.messages_read = 0
        """The number of messages that the driver has read so far."""

    def partitions(self) -> Mapping[str, int]:
        """Return the number of partitions of each spout."""
        driver_reads = self._spouts.keys() - self.by_spark.keys()
        default = default_parallelism(self._session) if driver_reads else 0
        return {id: self._partitions.get(id) or default for id in self._spouts}

    def read(self, cluster: ClusterPlan, spout: str, folder: Path) -> DataFrame:
        """Return the messages of a spout that the driver reads, in its partitions. It reads them once. ``folder`` is
        for the files of those that are many."""
        if spout not in self._read:
            rows = self._counted(message_rows(cluster, self._spouts[spout]))
            tasks = cluster.plan.tasks[spout]
            messages = frame_of(self._session, rows, folder / f"{tasks[0].task}")
            first = cluster.places[tasks[0].task].partition
            self._read[spout] = exchanged(messages, 0, len(tasks), first)
        return self._read[spout]

    def _distributed(self) -> Mapping[str, tuple[DataFrame, ValuesOf]]:
        """The DataFrames of the spouts, and the functions that make values of them."""
        read = {id: each for id, spout in self._spouts.items() if (each := _distributed(spout))}
        self._partitions = {id: partitions_of(frame) for id, (frame, _) in read.items()}
        return {id: each for id, each in read.items() if self._partitions[id]}

    def _counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.messages_read += row.size
            yield row


def frame_of(session: SparkSession, rows: Iterable[Row], folder: Path) -> DataFrame:
    """Return the rows as a DataFrame, which keeps them in memory if they are few, and in this folder if not."""
    table = in_segments(rows, folder)
    return rows_in(session, str(folder)) if table is None else session.createDataFrame(table)


def in_segments(rows: Iterable[Row], folder: Path) -> pa.Table | None:
    """Return the rows as one table; or write them into files in a new folder if they are more than a segment."""
    import pyarrow as pa

    gathered, size, files = list[pa.RecordBatch](), 0, 0
    for batch in batches_of(rows):
        if gathered and size + batch.nbytes > SEGMENT:
            write(gathered, folder / f"{files:06}.parquet")
            gathered, size, files = [], 0, files + 1
        gathered.append(batch)
        size += batch.nbytes
    if not files:
        return pa.Table.from_batches(gathered, schema())
    write(gathered, folder / f"{files:06}.parquet")
    return None


def write(batches: Iterable[pa.RecordBatch], file: Path) -> None:
    """Write record batches of rows into a new file, whose folder is made if it is not there."""
    from pyarrow.parquet import ParquetWriter

    file.parent.mkdir(parents=True, exist_ok=True)
    # Dictionaries and statistics would hold each chunk's content once more.
    with ParquetWriter(file, schema(), use_dictionary=False, write_statistics=False) as writer:
        for batch in batches:
            writer.write_batch(batch)


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


def values_of(cluster: ClusterPlan, spout: SpoutSpec) -> Iterator[object]:
    """Iterate over the values of an iterable or generator. Raise :class:`~stormlet.errors.TopologyCrashed` for what it
    raises."""
    try:
        yield from _values(cluster, spout)
    except Exception as error:
        raise TopologyCrashed(cluster.plan.description.name, f"{spout.id}[0]", "next_tuple") from error


def _values(cluster: ClusterPlan, spout: SpoutSpec) -> Iterable[object]:
    if isinstance(spout.source, DataFrameSpout | StreamSource):
        return ()  # it has no partition
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


def _distributed(spout: SpoutSpec) -> tuple[DataFrame, ValuesOf] | None:
    """The DataFrame that a spout reads, and the function that makes values of it; None if it reads none."""
    source = spout.source
    return source.distributed() if isinstance(source, DataFrameSpout) else None
