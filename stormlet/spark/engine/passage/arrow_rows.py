"""Rows as Spark moves them: columns of record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.passage.connect import frame_of_table
from stormlet.spark.files import literally

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

DDL: Final = (
    "kind int, stage int, partition int, target int, producer int, number bigint, size int, "
    "roots binary, counts binary, attempts binary, words binary, payload binary"
)
"""The schema of all rows, as Spark writes it."""

BATCH_BYTES: Final = 8 << 20
"""Bytes of rows that are gathered into one record batch."""


def rows_in(session: SparkSession, *folders: str) -> DataFrame:
    """Return the rows that were written into folders."""
    rows = session.read.schema(DDL).parquet(*map(literally, folders))
    return rows.select(*schema().names)  # the column that parts a folder left out


def frame_of(session: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Return rows of this process as a DataFrame."""
    import pyarrow as pa

    return frame_of_table(session, pa.Table.from_batches(batches_of(rows), schema()))


def schema() -> pa.Schema:
    """Return the same schema in Arrow's types."""
    import pyarrow as pa

    kinds = {"int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary()}
    return pa.schema([(name, kinds[kind]) for name, kind in (each.split() for each in DDL.split(", "))])


def batches_of(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Iterate over record batches of the rows, none much larger than :data:`BATCH_BYTES`."""
    gathered, size = list[Row](), 0
    for row in rows:
        gathered.append(row)
        size += len(row.payload) + len(row.roots) + len(row.words) + 100
        if size >= BATCH_BYTES:
            yield batch_of(gathered)
            gathered, size = [], 0
    if gathered:
        yield batch_of(gathered)


def batch_of(rows: Iterable[Row]) -> pa.RecordBatch:
    """Return one record batch of the rows."""
    import pyarrow as pa

    columns = list(zip(*map(msgspec.structs.astuple, rows), strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema(), strict=True)],
        schema=schema(),
    )


def rows_of(batch: pa.RecordBatch) -> Iterator[Row]:
    """Iterate over the rows of a record batch."""
    columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
    return starmap(Row, zip(*columns, strict=True))
