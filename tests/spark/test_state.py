"""State and Spark: DataFrames feed keyed state, and what comes of it is in the sink as Spark SQL says it must be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from stormlet import Collector, DeadLetter, KeyedBolt, Reject, Topology, TopologyCrashed, Tuple, Value
from stormlet.errors import NotExactlyOnce, SparkFailed
from stormlet.spark import DataFrameSink, DataFrameSpout
from stormlet.spark.sink.writer import EpochWriter
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.asyncio

ROWS = 1000


class Order(msgspec.Struct, frozen=True):
    id: int
    cents: int


class Entry(msgspec.Struct, frozen=True):
    id: int
    account: int
    total: int


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand orders in three files."""
    path = tmp_path_factory.mktemp("state") / "orders"
    spark.range(0, ROWS, 1, 3).selectExpr("id", "id * 7 % 1000 AS cents").write.parquet(str(path))
    return path


@pytest.fixture
def orders(spark: SparkSession, files: Path) -> DataFrame:
    """The orders of the files."""
    return spark.read.parquet(str(files))


class Accounts(KeyedBolt[int, Order, Entry]):
    """Running totals of seven accounts."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Order], out: Collector[Entry]) -> None:
        self.total += tup.value.cents
        out.emit(Entry(tup.value.id, self.key, self.total))


class Lines:
    """Passes entries on; some are rejected, and some fail the first time."""

    def __init__(self, seed: int = 0, failing: float = 0.0) -> None:
        self.random = Random(seed)
        self.failing = failing

    def __call__(self, entry: Entry) -> Iterator[Entry]:
        if entry.id % 100 == 14:
            raise Reject("unlucky")
        if self.random.random() < self.failing:
            raise OSError("flaky")
        yield entry


EXPECTED = """
    SELECT id, id % 7 AS account, sum(cents) OVER (PARTITION BY id % 7 ORDER BY id) AS total
    FROM (SELECT * FROM orders WHERE id % 100 <> 14)
"""
"""Of what is rejected nothing is left in the totals (law X7)."""


def expected(orders: DataFrame) -> list[tuple[Any, ...]]:
    """Spark SQL's own answer."""
    orders.createOrReplaceTempView("orders")
    return sorted(map(tuple, orders.sparkSession.sql(EXPECTED).collect()))


def entries(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.read.parquet(str(path)).select("id", "account", "total").collect()))


def topology(
    orders: DataFrame, path: Path, logic: Any = None, state: str = "orders.state", **sink: Any
) -> Topology:
    made = Topology("orders", state=path / state, epoch_messages=300, replay_delay=0.01)
    # In the order of the key, as running totals tell one order from another.
    source = made.spout("orders", DataFrameSpout(orders, as_=Order, order_by="id"))
    totals = made.bolt("accounts", Accounts, source.fields(lambda order: order.id % 7))
    lines = made.bolt("lines", logic or Lines(), totals.shuffle(), outputs=Entry)
    made.bolt("write", DataFrameSink(path / "out", exactly_once=True, **sink), lines.shuffle())
    return made


async def run(made: Topology) -> list[DeadLetter]:
    letters: list[DeadLetter] = []
    await asyncio.wait_for(run_to_end(made, dead_letters=letters.append), 120)
    return letters


async def test_rows_as_spark_sql_has_them(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """With failures and rejects after state was touched; each epoch in a directory of the line."""
    letters = await run(topology(orders, tmp_path, Lines(1, 0.003)))
    assert entries(spark, tmp_path / "out") == expected(orders)
    assert sorted(letter.value.id for letter in letters) == list(range(14, ROWS, 100))
    assert [each.name[:20] for each in (tmp_path / "out").iterdir() if each.is_dir()] == [
        "source=orders-write-"
    ]
    await run(topology(orders, tmp_path))
    assert entries(spark, tmp_path / "out") == expected(orders)


@pytest.mark.parametrize("state", ["orders.state", "orders.rocksdb"])
async def test_a_run_goes_on_where_the_last_one_stopped(
    spark: SparkSession, orders: DataFrame, tmp_path: Path, state: str
) -> None:
    """Runs that are left at any moment bring each row once together, with the totals of all of them."""

    async def slowly(entry: Entry) -> Entry:
        await asyncio.sleep(0.0005)
        return next(Lines()(entry))

    for seconds in (0.2, 0.8, 1.2):
        async with topology(orders, tmp_path, slowly, state).run(dead_letters=lambda _: None):
            await asyncio.sleep(seconds)
    await run(topology(orders, tmp_path, slowly, state))
    assert entries(spark, tmp_path / "out") == expected(orders)


async def test_a_write_that_fails_is_left_for_the_next_run(
    spark: SparkSession, orders: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topology crashes with Spark's error; the state has the rows, and the next run writes them."""
    with monkeypatch.context() as patch:
        patch.setattr("stormlet.spark.sink.committed.PAUSES", (0.01,))

        def failing(*arguments: object) -> None:
            raise SparkFailed("no space left on device")

        patch.setattr(EpochWriter, "write_epoch", failing)
        with pytest.raises(TopologyCrashed) as crashed:
            await run(topology(orders, tmp_path))
        assert isinstance(crashed.value.__cause__, SparkFailed)
    await run(topology(orders, tmp_path))
    assert entries(spark, tmp_path / "out") == expected(orders)


async def test_sources_of_all_kinds_and_two_sinks(
    spark: SparkSession, orders: DataFrame, tmp_path: Path
) -> None:
    """A DataFrame and a list feed the same sink; another sink has the rows of the DataFrame alone."""
    made = Topology("orders", state=tmp_path / "s", epoch_messages=300)
    frame = made.spout("orders", DataFrameSpout(orders, as_=Order))
    more = made.spout("more", [Order(ROWS + n, n) for n in range(50)], outputs=Order)
    made.bolt("all", DataFrameSink(tmp_path / "all", exactly_once=True), frame.shuffle(), more.shuffle())
    made.bolt("some", DataFrameSink(tmp_path / "some", exactly_once=True), frame.shuffle())
    await run(made)
    of_all = spark.read.parquet(str(tmp_path / "all"))
    assert sorted(row["id"] for row in of_all.collect()) == list(range(ROWS + 50))
    assert spark.read.parquet(str(tmp_path / "some")).count() == ROWS


async def test_a_state_that_began_anew_is_refused(orders: DataFrame, tmp_path: Path) -> None:
    """Its rows are there already, by the epochs of another line."""
    await run(topology(orders, tmp_path))
    (tmp_path / "orders.state").unlink()
    with pytest.raises(TopologyCrashed) as crashed:
        await run(topology(orders, tmp_path))
    assert isinstance(crashed.value.__cause__, NotExactlyOnce)
    assert "began anew: the sink has rows up to epoch" in str(crashed.value.__cause__)
