"""The cost of a row on its way from Spark, through a topology, and back, beside Spark's own iterator."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from benchmarks.memory import peak_mib
from stormlet.bench.workload import Figures, expect
from stormlet.spark.session import active_session, spark_session
from stormlet.spark.sink.dataframe_sink import DataFrameSink
from stormlet.spark.source.dataframe_spout import DataFrameSpout
from stormlet.spark.source.reading import PACKED, packer, unpacked
from stormlet.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 8
WARM_UP = 10
"""A JVM is slow at first: everything runs once with this fraction of the rows, unmeasured."""
HEAP = {"spark.driver.memory": "4g"}
"""Spark keeps what each iterator has read, whoever reads, for as long as the session lasts: 60 bytes of a row. One run
reads once; here the default of 1 GB would be full before the last measurement."""
EPOCH_ROWS = 100_000
"""Rows of an epoch; nothing else of a source or a sink is set."""
LONG_EPOCH_ROWS = 400_000
"""The same where writes are as large as those of a sink without epochs grow."""


class Row(msgspec.Struct, frozen=True):
    """Three columns of common types."""

    id: int
    word: str
    ratio: float


def spark(size: int) -> Figures:
    """Rows per second, of one DataFrame: of Spark's iterator over packed batches, and over its own rows; of a source
    into a bolt that does nothing, as record batches and as records; of a source into a sink by way of a bolt that
    changes each batch, or each record, the latter without epochs, with short and long ones of the source and with
    those of a state. The last three need files, and have the iterator over these beside them."""
    with _session() as session:
        measurements: dict[str, Callable[[SparkSession, int], float]] = {
            "raw_rows_per_s": _raw,
            "plain_rows_per_s": _plain,
            "batched_rows_per_s": _batches,
            "single_rows_per_s": _records,
            "sunk_batches_rows_per_s": _batches_written,
            "sunk_rows_per_s": _written,
            "raw_files_rows_per_s": _raw_of_files,
            "exact_rows_per_s": partial(_written_exactly_once, epoch_rows=EPOCH_ROWS),
            "long_exact_rows_per_s": partial(_written_exactly_once, epoch_rows=LONG_EPOCH_ROWS),
            "kept_rows_per_s": _written_by_state,
        }
        for measured in measurements.values():
            measured(session, max(1, size // WARM_UP))
        return {name: measured(session, size) for name, measured in measurements.items()}


def spark_flat(size: int) -> Figures:
    """Peak memory of this process (the JVM is another), in MiB, after a tenth and after all of so many records
    from Spark."""
    peaks: list[float] = []

    def look(row: Row) -> None:
        if row.id in (size // 10, size - 1):
            peaks.append(peak_mib())

    with _session() as session:
        _run(DataFrameSpout(_rows(session, size), as_=Row), look)
    return {"peak_mib_early": peaks[0], "peak_mib": peaks[1]}


@contextmanager
def _session() -> Generator[SparkSession]:
    active = active_session()
    session = active or spark_session(**HEAP)
    try:
        yield session
    finally:
        if active is None:
            session.stop()


def _rows(session: SparkSession, count: int) -> DataFrame:
    numbers = session.range(0, count, 1, PARTITIONS)
    return numbers.selectExpr("id", "concat('word', id % 1000) AS word", "id / 7 AS ratio")


def _raw(session: SparkSession, count: int) -> float:
    return _iterated(_rows(session, count), count)


def _raw_of_files(session: SparkSession, count: int) -> float:
    with _files(session, count) as folder:
        return _iterated(session.read.parquet(f"{folder}/in"), count)


def _iterated(frame: DataFrame, count: int) -> float:
    packed = frame.mapInArrow(packer({}), PACKED)
    began = time.perf_counter()
    came = sum(unpacked(row.batch).num_rows for row in packed.toLocalIterator(prefetchPartitions=True))
    expect(came, count, "rows that came")
    return count / (time.perf_counter() - began)


def _plain(session: SparkSession, count: int) -> float:
    began = time.perf_counter()
    came = sum(1 for _ in _rows(session, count).toLocalIterator(prefetchPartitions=True))
    expect(came, count, "rows that came")
    return count / (time.perf_counter() - began)


def _batches(session: SparkSession, count: int) -> float:
    return count / _run(DataFrameSpout(_rows(session, count), batches=True), _ignore)


def _records(session: SparkSession, count: int) -> float:
    return count / _run(DataFrameSpout(_rows(session, count), as_=Row), _ignore)


def _written(session: SparkSession, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        source = DataFrameSpout(_rows(session, count), as_=Row)
        seconds = _run_to(DataFrameSink(folder), source)
        return _rate(session.read.parquet(folder), count, seconds)


def _batches_written(session: SparkSession, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        source = DataFrameSpout(_rows(session, count), batches=True)
        seconds = _run_to(DataFrameSink(folder), source, change=_halve_all)
        return _rate(session.read.parquet(folder), count, seconds)


def _written_exactly_once(session: SparkSession, count: int, epoch_rows: int) -> float:
    with _files(session, count) as folder:
        frame, checkpoint = session.read.parquet(f"{folder}/in"), f"{folder}/checkpoint"
        source = DataFrameSpout(frame, as_=Row, checkpoint=checkpoint, epoch_rows=epoch_rows)
        sink = DataFrameSink(f"{folder}/out", exactly_once=True)
        seconds = _run_to(sink, source, dead_letters=f"{folder}/letters.jsonl")
        return _rate(session.read.parquet(f"{folder}/out"), count, seconds)


def _written_by_state(session: SparkSession, count: int) -> float:
    with _files(session, count) as folder:
        source = DataFrameSpout(session.read.parquet(f"{folder}/in"), as_=Row)
        sink, state = DataFrameSink(f"{folder}/out", exactly_once=True), f"{folder}/bench.state"
        seconds = _run_to(sink, source, state=state, epoch_messages=EPOCH_ROWS, epoch_seconds=60.0)
        return _rate(session.read.parquet(f"{folder}/out"), count, seconds)


@contextmanager
def _files(session: SparkSession, count: int) -> Generator[str]:
    with tempfile.TemporaryDirectory() as folder:
        _rows(session, count).write.parquet(f"{folder}/in")
        yield folder


def _rate(written: DataFrame, count: int, seconds: float) -> float:
    expect(written.count(), count, "rows written")
    return count / seconds


def _run_to(
    sink: DataFrameSink,
    source: DataFrameSpout[Any],
    dead_letters: str | None = None,
    change: Callable[[Any], object] | None = None,
    **options: Any,
) -> float:
    topology = Topology("bench", **options)
    halved = topology.bolt("halve", change or _halve, topology.spout("rows", source).shuffle())
    topology.bolt("write", sink, halved.shuffle())
    return asyncio.run(_seconds(topology, dead_letters))


def _run(source: DataFrameSpout[Any], bolt: Callable[[Any], None]) -> float:
    topology = Topology("bench")
    topology.bolt("bolt", bolt, topology.spout("rows", source).shuffle())
    return asyncio.run(_seconds(topology))


async def _seconds(topology: Topology, dead_letters: str | None = None) -> float:
    async with topology.run(dead_letters=dead_letters) as running:
        began = time.perf_counter()
        await running.finished()
        seconds = time.perf_counter() - began
        counts = running.statistics().components["rows"]
    expect(counts.acked, counts.emitted, "rows acked")
    return seconds


def _ignore(value: object) -> None:
    """A null bolt."""


def _halve(row: Row) -> Row:
    return Row(row.id, row.word, row.ratio / 2)


def _halve_all(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return pa.RecordBatch.from_arrays(
        [batch["id"], batch["word"], pc.divide(batch["ratio"], 2.0)], schema=batch.schema
    )
