"""Rows in the order of a unique key: their places, what is refused, and going on from any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import InvalidTopology, StartFailed, Topology, TopologyCrashed
from stormlet.spark import DataFrameSpout, Origin, SparkFailed
from stormlet.spark.source import reader
from stormlet.spark.source.ordering import OrderedRead
from stormlet.spark.source.plans import check_repeatable, fingerprint_in_order
from stormlet.spark.source.reading import ALL
from tests.helpers import run_to_end
from tests.spark.source.test_dataframe_spout import emitted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def totals(spark: SparkSession) -> DataFrame:
    """A DataFrame without an order of its own: 30 groups of 900 rows."""
    return spark.range(0, 900, 1, 3).selectExpr("id % 30 AS g", "id").groupBy("g").sum("id").toDF("g", "sum")


@pytest.fixture(autouse=True)
def small_batches(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Several batches for each partition, and checkpoints that come fast."""
    monkeypatch.setattr(reader, "SAVE_EVERY", 0.01)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "4")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def read_of(frame: DataFrame, *order_by: str) -> OrderedRead:
    source: Any = DataFrameSpout(frame, order_by=order_by)
    return source._new_read()


@pytest.mark.asyncio
async def test_rows_come_in_order(totals: DataFrame) -> None:
    """They come by the key, and their origin is their place in the whole; the key need not be emitted."""
    kept = await emitted(DataFrameSpout(totals, columns=["sum"], order_by="g"))
    expected = [sum(range(g, 900, 30)) for g in range(30)]
    assert kept == [((total,), Origin(0, place)) for place, total in enumerate(expected)]


@pytest.mark.asyncio
async def test_record_batches_come_in_order(totals: DataFrame) -> None:
    """A batch has the columns that were asked for, and begins at its origin."""
    kept = await emitted(DataFrameSpout(totals, batches=True, columns=["g"], order_by=["g"]))
    assert [number for batch, _ in kept for number in batch.column("g").to_pylist()] == list(range(30))
    assert all(batch.schema.names == ["g"] for batch, _ in kept)
    assert all(batch.column("g").to_pylist()[0] == origin.row for batch, origin in kept)


def test_reading_goes_on_after_any_row(totals: DataFrame) -> None:
    """After a loss, or in another run, the rows after the one reached come, with their places."""
    for rows in (1, 4, 17, 29):
        read = read_of(totals, "g")
        read.trail.begin(rows, (str(rows - 1),))
        chunks = list(read({0: rows}))
        assert [value for chunk in chunks for value in chunk.values] == [
            (g, sum(range(g, 900, 30))) for g in range(rows, 30)
        ]
        assert [chunk.first_row for chunk in chunks] == [chunk.values[0][0] for chunk in chunks]  # type: ignore[index]
    read.trail.begin(30, ("29",))
    assert list(read({0: 30})) == list(read({0: ALL})) == []


def test_the_row_reached_must_be_there(totals: DataFrame) -> None:
    """Where the row that was read last has gone, the places of the others mean nothing any more."""
    for changed in (totals.where("g != 7"), totals.where("g < 7")):
        read = read_of(changed, "g")
        read.trail.begin(8, ("7",))
        with pytest.raises(SparkFailed, match="has changed: it was read up to g=7, and has no such row now"):
            list(read({0: 8}))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id DIV 2 AS k FROM range(9)", "needs a unique key, and there are two rows with k=0"),
        ("SELECT if(id = 5, 4, id) AS k FROM range(9)", "two rows with k=4"),
        ("SELECT nullif(id, 5) AS k FROM range(9)", "a row's 'k' is null; leave such rows out"),
    ],
)
async def test_a_key_must_be_unique(spark: SparkSession, query: str, said: str) -> None:
    """Equal keys crash the topology, within a batch and between two, and so do nulls."""
    with pytest.raises(TopologyCrashed, match=said):
        await emitted(DataFrameSpout(spark.sql(query), order_by="k"))


def test_the_key_reached_must_be_unique(spark: SparkSession) -> None:
    """A second row with the key that another run ended with is noticed, too."""
    read = read_of(spark.sql("SELECT if(id = 5, 4, id) AS k FROM range(9)"), "k")
    read.trail.begin(5, ("4",))
    with pytest.raises(SparkFailed, match="two rows with k=4"):
        list(read({0: 5}))


@pytest.mark.asyncio
async def test_a_run_goes_on_with_a_frame_of_any_order(totals: DataFrame, tmp_path: Path) -> None:
    """With a checkpoint, each run does what the one before has not done, and in the end there is nothing to do."""
    from tests.spark.source.test_resuming import run

    ways: dict[str, Any] = {"order_by": "g"}
    runs = [await run(totals, tmp_path / "c", 10, **ways), await run(totals, tmp_path / "c", **ways)]
    assert {row for one in runs for row in one} == set(range(30)) - {13}
    assert len(runs[0]) >= 10
    assert len(runs[1]) < 25
    assert await run(totals, tmp_path / "c", **ways) == []


def files_of(spark: SparkSession, path: Path, rows: int) -> DataFrame:
    spark.range(0, rows, 1, 3).write.mode("overwrite").parquet(str(path))
    return spark.read.parquet(str(path))


def test_the_files_must_be_the_same_and_not_how_they_are_cut(spark: SparkSession, tmp_path: Path) -> None:
    """Another cut of the same files is the same DataFrame; another file or key is not."""
    frame = files_of(spark, tmp_path / "rows", 900)
    first, partitions = fingerprint_in_order(frame, ["id"], ["id"]), frame.rdd.getNumPartitions()
    spark.conf.set("spark.sql.files.maxPartitionBytes", "500")
    again = spark.read.parquet(str(tmp_path / "rows"))
    assert again.rdd.getNumPartitions() > partitions
    assert fingerprint_in_order(again, ["id"], ["id"]) == first
    spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert fingerprint_in_order(frame, ["id"], ["id", "x"]) != first
    assert (
        fingerprint_in_order(files_of(spark, tmp_path / "others", 900), ["id"], ["id"]).files != first.files
    )


@pytest.mark.asyncio
async def test_changed_files_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Files that were written anew are another DataFrame."""
    for rows in (900, 901):
        frame = files_of(spark, tmp_path / "rows", rows)
        topology = Topology("changed")
        source = DataFrameSpout(frame.distinct(), order_by="id", checkpoint=tmp_path / "c")
        topology.spout("rows", source)
        if rows == 900:
            await run_to_end(topology, dead_letters=lambda letter: None)
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology, dead_letters=lambda letter: None)
    assert "is the checkpoint of another DataFrame, in its files; read" in str(caught.value.__cause__)


def test_rows_that_are_chosen_anew_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """An order does not help a DataFrame that may have other rows each time."""
    frame = spark.range(9).selectExpr("id", "id % 3 AS k")
    for choosing, said in (
        (frame.limit(3), "limit or offset may take others"),
        (frame.sample(0.5, seed=1), "sample may take others"),
        (frame.dropDuplicates(["k"]), "first, last or dropDuplicates of some columns may take others"),
        (frame.where("rand() < 0.5"), "computes some anew"),
    ):
        with pytest.raises(InvalidTopology, match=said):
            DataFrameSpout(choosing, order_by="id", checkpoint=tmp_path / "c")
        DataFrameSpout(choosing, order_by="id")
    check_repeatable(frame.join(frame.groupBy("k").count(), "k").dropDuplicates())


def test_order_needs_arrow(spark: SparkSession) -> None:
    """Plain rows have no order by a key."""
    with pytest.raises(InvalidTopology, match='order_by= needs transport="arrow"'):
        DataFrameSpout(spark.range(3), order_by="id", transport="rows")
