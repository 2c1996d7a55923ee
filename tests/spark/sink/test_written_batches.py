"""Whole record batches on their way from Spark, through a bolt, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stormlet import DeadLetter, InvalidTopology, StartFailed, Topology
from stormlet.report.statistics import Progress
from stormlet.spark import DataFrameSink, DataFrameSpout
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")
simulated = pytest.mark.simulated_time


@pytest.fixture
def batches_of_1000(spark: SparkSession) -> Iterator[None]:
    """What a partition of more rows is cut into."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A bolt that works on many rows at once."""
    twice = pa.array([2 * number for number in batch.column("id").to_pylist()])  # type: ignore[operator]
    return pa.RecordBatch.from_arrays([twice, batch.column("name")], names=["id", "name"])


def writing(values: Any, sink: DataFrameSink, **options: Any) -> Topology:
    topology = Topology("batches", max_attempts=1)
    topology.bolt("write", sink, topology.spout("values", values, **options).shuffle())
    return topology


def batch(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.asyncio  # simulated time would jump to the end of ``seconds`` while Spark reads
@pytest.mark.usefixtures("batches_of_1000")
@pytest.mark.parametrize(("schema", "kind"), [(None, "bigint"), ("id int, name string", "int")])
async def test_many_are_written_together(
    spark: SparkSession, tmp_path: Path, schema: str | None, kind: str
) -> None:
    """``rows`` counts rows: of ten batches four are a file, and each is acked when it is committed."""
    frame = spark.range(0, 10_000, 1, 2).selectExpr("id", "concat('n', id) AS name")
    topology = Topology("batches")
    source = topology.spout("rows", DataFrameSpout(frame, batches=True))
    twice = topology.bolt("double", doubled, source.shuffle())
    topology.bolt(
        "write", DataFrameSink(tmp_path / "out", rows=4000, seconds=1000.0, schema=schema), twice.shuffle()
    )
    running = await run_to_end(topology)
    written = spark.read.parquet(str(tmp_path / "out"))
    assert written.dtypes == [("id", kind), ("name", "string")]
    assert sorted(tuple(row) for row in written.collect()) == sorted((2 * n, f"n{n}") for n in range(10_000))
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 3
    counts = running.statistics().components
    assert (counts["rows"].emitted, counts["rows"].acked) == (10, 10)
    assert counts["write"].progress == Progress(10_000, None, "rows written")


@simulated
async def test_a_batch_that_does_not_fit_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    """As a whole, with the column that is wrong, and the others are written."""
    letters: list[DeadLetter] = []
    values = [batch(a=[1, 2]), batch(b=[3]), batch(a=["4"]), batch(a=[5])]
    sink = DataFrameSink(tmp_path / "out", schema="a bigint")
    await run_to_end(writing(values, sink), dead_letters=letters.append)
    assert sorted(row["a"] for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [1, 2, 5]
    assert [letter.failure.reason for letter in letters] == [
        "the batch has no column 'a'; the columns are a",
        "a: expected int64, got string",
    ]


@simulated
async def test_a_column_to_partition_by_that_is_not_there(tmp_path: Path) -> None:
    """Where the columns come with the batches, these are rejected."""
    letters: list[DeadLetter] = []
    sink = DataFrameSink(tmp_path / "out", partition_by="day")
    topology = writing([batch(a=[1])], sink, outputs=pa.RecordBatch)
    await run_to_end(topology, dead_letters=letters.append)
    assert [each.failure.reason for each in letters] == ["partition_by: there is no column 'day', only a"]


@simulated
@pytest.mark.parametrize("arguments", [{"format": "parket"}, {"options": {"compression": "zap"}}])
async def test_writes_that_cannot_be_whatever_the_columns(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """They are refused at the start, although the columns come with the batches."""
    sink = DataFrameSink(tmp_path / "out", partition_by="a", **arguments)
    with pytest.raises(StartFailed) as caught:
        await run_to_end(writing([batch(a=[1], b=[2])], sink, outputs=pa.RecordBatch))
    assert isinstance(caught.value.__cause__, InvalidTopology)
    assert "can take no row" in str(caught.value.__cause__)


@simulated
@pytest.mark.parametrize("arguments", [{"mode": "overwrite"}, {"mode": "error"}])
async def test_what_must_know_the_columns_at_the_start(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """It says so, and the way out."""
    topology = writing([batch(a=[1])], DataFrameSink(tmp_path / "out", **arguments), outputs=pa.RecordBatch)
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology)
    assert isinstance(caught.value.__cause__, InvalidTopology)
    assert "this sink needs them at the start; give schema=" in str(caught.value.__cause__)
    assert not (tmp_path / "out").exists()


@pytest.mark.asyncio
async def test_exactly_once_with_whole_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Epochs hold as many rows of a batch as of single rows; the columns must be given."""
    frame = spark.range(0, 3000, 1, 2)
    frame.write.parquet(str(tmp_path / "in"))

    def topology(**arguments: Any) -> Topology:
        topology = Topology("once")
        source = DataFrameSpout(
            spark.read.parquet(str(tmp_path / "in")),
            batches=True,
            checkpoint=tmp_path / "checkpoint",
            epoch_rows=1000,
        )
        rows = topology.spout("rows", source)
        topology.bolt(
            "write", DataFrameSink(tmp_path / "out", exactly_once=True, **arguments), rows.shuffle()
        )
        return topology

    options = {"dead_letters": tmp_path / "letters.jsonl"}
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology(), **options)
    assert "give schema=" in str(caught.value.__cause__)
    await run_to_end(topology(schema="id bigint"), **options)
    assert sorted(row["id"] for row in spark.read.parquet(str(tmp_path / "out")).collect()) == list(
        range(3000)
    )


def test_few_of_a_source_of_batches_are_pending(spark: SparkSession) -> None:
    """As each is many rows; a sink of many rows does not change that (law S3)."""
    topology = writing(DataFrameSpout(spark.range(1), batches=True), DataFrameSink("out"))
    _, components = topology.describe().configured(Topology("defaults").configuration, "here")
    assert components["values"].max_spout_pending == 64
