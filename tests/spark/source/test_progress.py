"""How far a DataFrame has been read, and of how much."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import Progress, Topology
from stormlet.spark import DataFrameSpout
from stormlet.spark.source import plans, progress
from stormlet.spark.source.plans import Extent, extent_of
from stormlet.spark.source.progress import FrameProgress
from stormlet.spark.source.reading import ALL, Chunk
from tests.cast import ignore
from tests.helpers import run_to_end
from tests.spark.source.test_dataframe_spout import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3000 rows in three files, in several formats."""
    path = tmp_path_factory.mktemp("extents")
    for kind in ("parquet", "orc", "csv"):
        spark.range(0, 3000, 1, 3).write.format(kind).save(str(path / kind))
    return path


def loaded(spark: SparkSession, files: Path, kind: str) -> DataFrame:
    return spark.read.format(kind).schema("id bigint").load(str(files / kind))


def test_files_tell_how_many_rows_they_have(spark: SparkSession, files: Path) -> None:
    """Those of Parquet and ORC do, as long as no row is left out or made more of; a range does, too."""
    parquet, orc = loaded(spark, files, "parquet"), loaded(spark, files, "orc")
    assert extent_of(parquet.selectExpr("id + 1 AS more")).rows == 3000
    assert extent_of(orc.union(parquet)).rows == 6000
    assert extent_of(spark.range(7)).rows == 7
    for frame in (
        parquet.where("id > 3"),
        parquet.selectExpr("explode(array(id))"),
        loaded(spark, files, "csv"),
    ):
        extent = extent_of(frame)
        assert extent.rows is None
        assert extent.partitions in (2, 3)
    assert extent_of(parquet.groupBy("id").count()) == Extent()


def test_many_partitions_are_not_looked_at(
    spark: SparkSession, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ends are many, and Spark would look at them before it reads on."""
    monkeypatch.setattr(plans, "MOST_PARTITIONS", 6)
    assert extent_of(spark.range(0, 100, 1, 6)) == Extent(100, 6)
    assert extent_of(spark.range(0, 100, 1, 7)) == Extent(None, 7)


class Thread:
    """In the place of the one that asks Spark."""

    def __init__(self, *told: object) -> None:
        self.running = False

    def start(self) -> None:
        assert not self.running, "Spark is asked once"
        self.running = True


class Told:
    """A context that keeps what is reported to it, and stands for the frame, too."""

    topology = component = "reading"

    def __init__(self) -> None:
        self.reports: list[tuple[int, int | None, str]] = []

    @property
    def sparkSession(self) -> Any:  # noqa: N802 Spark's name
        return self

    sparkContext = sparkSession  # noqa: N815 Spark's name

    def report_progress(self, progress: Progress) -> None:
        self.reports.append((progress.done, progress.known, progress.unit))


async def reported(
    monkeypatch: pytest.MonkeyPatch, extent: Extent, done: Mapping[int, int], *, in_order: bool = False
) -> list[tuple[int, int | None, str]]:
    """What is told of a chunk in partition 2, of the answer, and of the end."""
    monkeypatch.setattr(progress, "JobThread", Thread)
    told: Any = Told()
    rows = FrameProgress(told, done, told, in_order=in_order)
    rows.add(Chunk(2, 0, 10, []))
    rows.add(Chunk(2, 10, 20, []))
    rows._learn(extent)
    rows.end()
    assert [each[1] for each in told.reports[:2]] == [None, None]
    return told.reports[2:]


@pytest.mark.asyncio
async def test_rows_are_reported_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier run has done counts as read."""
    assert await reported(monkeypatch, Extent(90, 3), {}) == [(30, 90, "rows read")] * 2
    assert await reported(monkeypatch, Extent(90, 3), {0: 5, 2: 7}) == [(42, 90, "rows read")] * 2


@pytest.mark.asyncio
async def test_partitions_are_reported_where_rows_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in all, nor in partitions that an earlier run has done."""
    expected = [(2, 3, "partitions read"), (3, 3, "partitions read")]
    assert await reported(monkeypatch, Extent(None, 3), {}) == expected
    assert await reported(monkeypatch, Extent(90, 3), {0: ALL, 1: 5}) == expected


@pytest.mark.asyncio
async def test_rows_are_reported_of_nobody_knows_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a shuffle, or in the order of a key, where all rows count as one partition."""
    assert await reported(monkeypatch, Extent(), {}) == [(30, None, "rows read")] * 2
    assert await reported(monkeypatch, Extent(None, 3), {}, in_order=True) == [(30, None, "rows read")] * 2
    assert await reported(monkeypatch, Extent(90, 3), {}, in_order=True) == [(30, 90, "rows read")] * 2


async def run_until_known(frame: DataFrame, *, batches: bool) -> Progress | None:
    """The last report of a run whose end waits until Spark has said how many rows there are."""
    known = asyncio.Event()

    async def wait(value: object) -> None:
        await known.wait()

    topology = Topology("reading")
    source: Any = DataFrameSpout(frame, batches=True) if batches else DataFrameSpout(frame)
    topology.bolt("wait", wait, topology.spout("rows", source).shuffle())
    async with topology.run() as running:
        await until(lambda: (said := running.statistics().components["rows"].progress) and said.known)
        known.set()
        await running.finished()
    return running.statistics().components["rows"].progress


@pytest.mark.asyncio
@pytest.mark.parametrize("batches", [False, True])
async def test_a_run_reports_rows_of_rows(spark: SparkSession, files: Path, batches: bool) -> None:
    """Rows, whether they come one by one or in batches; the total comes from the files, beside the reading."""
    progress = await run_until_known(loaded(spark, files, "parquet"), batches=batches)
    assert progress == Progress(3000, 3000, "rows read")


@pytest.mark.asyncio
async def test_what_cannot_be_counted_is_no_fault(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run does not end for a total."""

    def refuse(frame: DataFrame) -> Extent:
        raise RuntimeError("no")

    monkeypatch.setattr(progress, "extent_of", refuse)
    topology = Topology("reading")
    topology.bolt("ignore", ignore, topology.spout("rows", DataFrameSpout(spark.range(30))).shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["rows"].progress == Progress(30, None, "rows read")
