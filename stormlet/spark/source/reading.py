"""Reads a DataFrame, partition by partition, as chunks of values.

On the executors each record batch becomes one row (:func:`packer`), so that Spark's iterator moves batches, not rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias, cast

from stormlet.errors import SparkFailed
from stormlet.spark.arrow.conversion import Conversion

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import Column, DataFrame

PACKED = "partition int, first_row bigint, rows bigint, batch binary"
"""Schema of a packed batch: its place, and the batch as an Arrow stream."""

ALL = -1
"""Stands for every row of a partition, however many there are."""

ROWS_PER_CHUNK = 1000
"""Rows of a chunk of plain rows; a record batch is a chunk as it is."""
Done: TypeAlias = Mapping[int, int]
"""Partition -> number of its first rows that need not be read, or :data:`ALL`."""


def packer(done: Mapping[int, int]) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    """A function for ``mapInArrow``, which runs on the executors. ``done`` has the number of first rows to leave out
    by partition, or :data:`ALL`.

    No executor needs stormlet: cloudpickle sends the inner function by value, as no import finds it. So the inner
    function must not use any name of this module.
    """
    done, every = dict(done), ALL

    def pack(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        partition: int = TaskContext.get().partitionId()  # type: ignore[union-attr]  # a task runs this
        skipped, first_row = done.get(partition, 0), 0
        for batch in batches if skipped != every else ():
            left_out = min(max(skipped - first_row, 0), batch.num_rows)
            first_row += batch.num_rows
            if left_out == batch.num_rows:
                continue
            rest = batch.slice(left_out)
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, rest.schema) as writer:
                writer.write_batch(rest)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([partition], pa.int32()),
                    pa.array([first_row - rest.num_rows], pa.int64()),
                    pa.array([rest.num_rows], pa.int64()),
                    pa.array([stream.getvalue().to_pybytes()], pa.binary()),
                ],
                names=["partition", "first_row", "rows", "batch"],
            )

    return pack


def unpacked(packed: bytes) -> RecordBatch:
    """The batch that was packed."""
    import pyarrow as pa

    return pa.ipc.open_stream(packed).read_next_batch()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Values that follow each other in one partition."""

    partition: int
    first_row: int
    """Place of the first value in its partition, from 0."""
    rows: int
    """The number of rows."""
    values: list[object]
    """One for each row, or one batch of all rows."""


def rows_of(value: object) -> int:
    """The number of rows in a value of a read of record batches."""
    return cast("RecordBatch", value).num_rows


def divided(chunk: Chunk, rows: int) -> tuple[Chunk, Chunk | None]:
    """At most the first ``rows`` of a chunk, and the rest."""
    if chunk.rows <= rows:
        return chunk, None
    first, rest = _divided(chunk, rows)
    return (
        Chunk(chunk.partition, chunk.first_row, rows, first),
        Chunk(chunk.partition, chunk.first_row + rows, chunk.rows - rows, rest),
    )


def _divided(chunk: Chunk, rows: int) -> tuple[list[object], list[object]]:
    if len(chunk.values) == chunk.rows:
        return chunk.values[:rows], chunk.values[rows:]
    batch = cast("RecordBatch", chunk.values[0])
    return [batch.slice(0, rows)], [batch.slice(rows)]


Read: TypeAlias = Callable[[Done], Iterator[Chunk]]
"""Reads the rows that are not done."""


def batches_of(frame: DataFrame, conversion: Conversion) -> Read:
    """A read of whole record batches."""

    def values_of(batch: RecordBatch) -> list[object]:
        return [batch.rename_columns(conversion.names)]

    return _packed(frame, conversion, values_of)


def values_of_batches(frame: DataFrame, conversion: Conversion) -> Read:
    """A read of values, which travel in record batches."""
    return _packed(frame, conversion, conversion.of_batch)


def values_of_rows(frame: DataFrame, conversion: Conversion) -> Read:
    """A read of values, which travel as plain rows."""

    def read(done: Done) -> Iterator[Chunk]:
        from pyspark.sql import functions

        partition = functions.spark_partition_id().alias("partition")
        rows = pruned(frame, conversion, partition).toLocalIterator(prefetchPartitions=True)
        for number, of_partition in groupby(rows, key=itemgetter(-1)):
            yield from _chunks(number, done.get(number, 0), of_partition, conversion)

    return read


def _packed(
    frame: DataFrame, conversion: Conversion, values_of: Callable[[RecordBatch], list[object]]
) -> Read:
    def read(done: Done) -> Iterator[Chunk]:
        packed = pruned(frame, conversion).mapInArrow(packer(done), PACKED)
        for row in packed.toLocalIterator(prefetchPartitions=True):
            partition, first_row, rows, batch = cast("tuple[int, int, int, bytes]", row)
            with naming_rows(partition, first_row, rows):
                values = values_of(unpacked(batch))
            yield Chunk(partition, first_row, rows, values)

    return read


def _chunks(
    partition: int, done: int, rows: Iterator[Sequence[object]], conversion: Conversion
) -> Iterator[Chunk]:
    if done == ALL:
        return
    first_row = sum(1 for _ in islice(rows, done))
    while chunk := list(islice(rows, ROWS_PER_CHUNK)):
        with naming_rows(partition, first_row, len(chunk)):
            values = conversion.of_rows(chunk)
        yield Chunk(partition, first_row, len(chunk), values)
        first_row += len(chunk)


def pruned(frame: DataFrame, conversion: Conversion, *more: Column) -> DataFrame:
    """Only the columns that are read: Spark's scan leaves out the others."""
    read = (f"c{frame.columns.index(name)}" for name in conversion.names)
    return by_place(frame).select(*read, *more)


def by_place(frame: DataFrame) -> DataFrame:
    """The DataFrame with columns c0, c1, ...: no name needs quotes, and names that are not read may occur twice."""
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))


@contextmanager
def naming_rows(partition: int, first_row: int, rows: int) -> Generator[None]:
    """Name the rows in an error of their conversion."""
    try:
        yield
    except Exception as error:
        raise SparkFailed(
            f"rows {first_row} to {first_row + rows - 1} of partition {partition} cannot be converted: {error}"
        ) from error
