"""What the last stage has left, read by the driver if it is little, and by Spark if it is much."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from stormlet import Topology
from stormlet.spark import DataFrameSpout, run_on_spark
from stormlet.spark.engine.passage import staging
from stormlet.spark.engine.passage.staging import Kept
from tests.spark.engine import flows
from tests.spark.engine.flows import Number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Inner(msgspec.Struct, frozen=True):
    """A record in a record."""

    n: int
    moment: datetime | None = None


class Everything(msgspec.Struct, frozen=True):
    """A field of each type that has a column."""

    whole: int
    text: str | None
    yes: bool
    part: float
    raw: bytes
    day: date
    moment: datetime
    span: timedelta
    money: Decimal
    numbers: list[int]
    by_name: dict[str, int | None]
    inner: Inner | None
    inners: list[Inner]


NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
VALUES = [
    Everything(
        1 << 40, "text", True, 0.5, b"raw", date(2026, 11, 23), NOON, timedelta(days=1, microseconds=1),
        Decimal("1.25"), [1, 2], {"a": 1, "b": None}, Inner(1, NOON), [Inner(2)],
    ),
    Everything(
        -1, None, False, float("inf"), b"", date(1969, 1, 1), datetime(1960, 1, 1, tzinfo=UTC), timedelta(),
        Decimal(0), [], {}, None, [],
    ),
]  # fmt: skip


def everything(number: Number) -> Iterator[Everything]:
    """All values."""
    yield from VALUES


def test_a_stream_has_its_types_whoever_reads_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its values."""
    topology = Topology("types")
    each = topology.bolt("each", everything, topology.spout("n", [Number(0)], outputs=Number).shuffle())
    nothing = topology.bolt("nothing", flows.nothing, each.shuffle(), outputs=Everything)
    by_driver = run_on_spark(topology, spark, streams=[each, nothing])
    monkeypatch.setattr(staging, "LITTLE", 0)
    by_spark = run_on_spark(topology, spark, streams=[each, nothing])
    for stream in (each, nothing):
        one, other = by_driver.stream(stream), by_spark.stream(stream)
        assert one.schema == other.schema
        assert sorted(map(repr, one.collect())) == sorted(map(repr, other.collect()))
    assert by_driver.stream(each).count() == 2


def test_a_small_result_takes_no_job_of_its_own(spark: SparkSession) -> None:
    """Spark has one for each stage, and neither the ledger, nor the driver's bolts, nor a stream another."""
    frame = spark.range(10, 20).withColumnRenamed("id", "n")
    topology, doubled = flows.doubles(DataFrameSpout(frame, as_=Number), logic=flows.times)
    topology.bolt("keep", flows.Keep, doubled.global_())
    run_on_spark(topology, spark)  # Spark 4.0 is asked once which numbers reach which partition
    flows.Keep.kept = []
    context = spark.sparkContext
    context.setJobGroup("little", "")
    try:
        result = run_on_spark(topology, spark, streams=[doubled])
        assert len(result.stream(doubled).collect()) == len(flows.Keep.kept) == 10
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert len(context.statusTracker().getJobIdsForGroup("little")) == 2


@pytest.mark.parametrize("little", [0, staging.LITTLE])
def test_totals_and_dead_letters_whoever_reads_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, little: int
) -> None:
    """All messages of a total are given up with it, and the bolt in the driver has the others."""
    monkeypatch.setattr(staging, "LITTLE", little)
    frame = spark.range(0, 2000, 1, 1).withColumnRenamed("id", "n")
    topology = Topology("merged", max_attempts=1)
    numbers = topology.spout("numbers", DataFrameSpout(frame, as_=Number))
    parities = topology.bolt("parities", flows.parity, numbers.shuffle(), outputs=flows.Total)
    totals: Any = topology.bolt("add", flows.Add, parities.fields("word"), parallelism=2)
    topology.bolt("keep", flows.Keep, totals.global_())
    flows.Keep.kept = []
    result = run_on_spark(topology, spark)
    assert flows.Keep.kept == [flows.Total("even", 1000)]
    assert [each.value.n for each in result.dead_letters] == [*range(1, 2000, 2)]


def test_much_that_is_compressed_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """What counts is the memory that it takes."""
    large = f"{tmp_path}/large"
    spark.range(8).selectExpr("id AS number", "repeat(cast(id AS string), 1000000) AS payload").write.parquet(
        large
    )
    assert sum(each.stat().st_size for each in Path(large).glob("*.parquet")) < staging.LITTLE
    assert not Kept(spark, large).is_little
