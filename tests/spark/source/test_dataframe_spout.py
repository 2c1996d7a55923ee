"""``DataFrameSpout`` with a real Spark: what it emits, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from stormlet import (
    BasicBolt,
    Collector,
    DeadLetter,
    InvalidTopology,
    Reject,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.spark import DataFrameSpout, Origin, SparkFailed
from tests.cast import ignore
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.asyncio


class Row(msgspec.Struct, frozen=True):
    id: int
    name: str


class Keep(BasicBolt[Any, None]):
    """Notes what comes, and where from; fails 7 once and rejects 8."""

    def __init__(self, kept: list[tuple[object, object]]) -> None:
        self.kept = kept

    def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        number = tup.value.id if isinstance(tup.value, Row) else None
        if number == 7 and tup.attempt == 1:
            raise ValueError("once")
        if number == 8:
            raise Reject("never")
        self.kept.append((tup.value, tup.origin))


def rows_of(spark: SparkSession, count: int = 10, partitions: int = 2) -> DataFrame:
    return spark.range(0, count, 1, partitions).selectExpr("concat('n', id) AS name", "2 AS unread", "id")


def topology_of(
    source: DataFrameSpout[Any], kept: list[tuple[object, object]], **options: object
) -> Topology:
    topology = Topology("source", **options)
    rows = topology.spout("rows", source)
    topology.bolt("keep", lambda: Keep(kept), rows.shuffle())
    return topology


async def emitted(source: DataFrameSpout[Any], **options: object) -> list[tuple[Any, Any]]:
    """What comes, in order, with where it is from."""
    kept: list[tuple[object, object]] = []
    await run_to_end(topology_of(source, kept, **options))
    return kept


async def test_rows_as_records(spark: SparkSession) -> None:
    """Each row comes once as a record, in order, and says where it is from; failed ones are replayed, and
    rejected ones go to the dead letters, with their place."""
    kept: list[tuple[object, object]] = []
    letters: list[DeadLetter] = []
    topology = topology_of(DataFrameSpout(rows_of(spark), Row), kept, replay_delay=0.01)
    running = await run_to_end(topology, dead_letters=letters.append)
    in_order = [0, 1, 2, 3, 4, 5, 6, 9, 7]
    assert kept == [(Row(id, f"n{id}"), Origin(id // 5, id % 5)) for id in in_order]
    assert [(each.value, each.origin) for each in letters] == [(Row(8, "n8"), Origin(1, 3))]
    statistics = running.statistics().components["rows"]
    assert (statistics.acked, statistics.dead_letters, statistics.pending) == (9, 1, 0)


async def test_rows_as_tuples(spark: SparkSession) -> None:
    """Without a record type, rows are tuples, whose fields have the columns' names."""
    topology = Topology("tuples")
    rows = topology.spout("rows", DataFrameSpout(rows_of(spark), columns=["id", "name"]))
    assert rows.output.schema.fields == ("id", "name")
    kept: list[tuple[object, object]] = []
    topology.bolt("keep", lambda: Keep(kept), rows.fields("name"))
    await run_to_end(topology)
    assert [value for value, _ in kept] == [(id, f"n{id}") for id in range(10)]


@pytest.mark.parametrize("transport", ["arrow", "rows"])
async def test_many_partitions(spark: SparkSession, transport: Any) -> None:
    """Of several partitions, empty ones among them, all rows come in order, with their places."""
    frame = rows_of(spark, 5000, 4).where("id < 1250 or id >= 2500")
    kept = await emitted(DataFrameSpout(frame, columns=["id"], transport=transport))
    expected = [*range(1250), *range(2500, 5000)]
    assert kept == [((id,), Origin(id // 1250, id % 1250)) for id in expected]


async def test_rows_as_batches(spark: SparkSession) -> None:
    """With ``batches=True`` each value is a record batch, under the DataFrame's names."""
    frame = rows_of(spark, 5000)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    try:
        kept = await emitted(DataFrameSpout(frame, columns=["id", "name"], batches=True))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    batches = [batch for batch, _ in kept]
    assert [id for batch in batches for id in batch.column("id").to_pylist()] == list(range(5000))
    assert {tuple(batch.schema.names) for batch in batches} == {("id", "name")}
    places = [(origin.partition, origin.row) for _, origin in kept]
    assert places == [(0, 0), (0, 1000), (0, 2000), (1, 0), (1, 1000), (1, 2000)]


@pytest.mark.parametrize("partitions", [0, 3])
async def test_an_empty_frame_ends(spark: SparkSession, partitions: int) -> None:
    """Without rows the spout ends at once."""
    empty = spark.createDataFrame([], "id long") if not partitions else spark.range(0, 0, 1, partitions)
    assert await emitted(DataFrameSpout(empty)) == []


async def test_a_second_run_reads_again(spark: SparkSession) -> None:
    """The factory makes a new reader for each run."""
    source = DataFrameSpout(rows_of(spark), columns=["id"])
    assert await emitted(source) == await emitted(source)


async def test_pending_messages_are_bounded(spark: SparkSession) -> None:
    """``max_spout_pending`` holds to the message (law S3)."""
    most = 0

    class Watch(BasicBolt[Any, None]):
        async def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
            nonlocal most
            most = max(most, running.statistics().components["rows"].pending)
            await asyncio.sleep(0)

    topology = Topology("bounded", max_spout_pending=5)
    rows = topology.spout("rows", DataFrameSpout(rows_of(spark, 100)))
    topology.bolt("watch", Watch, rows.shuffle())
    async with topology.run() as running:
        await running.finished()
    assert most == 5


async def test_shuffled_rows_come_too(spark: SparkSession) -> None:
    """A DataFrame that Spark must shuffle first, under adaptive execution, comes whole."""
    frame = rows_of(spark, 100).groupBy("unread").count()
    assert [value for value, _ in await emitted(DataFrameSpout(frame))] == [(2, 100)]


# What is refused.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"as_": Row, "columns": ["id"]}, "as_= names the columns"),
        ({"as_": Row, "batches": True}, "as_= names the columns"),
        ({"transport": "csv"}, 'transport must be "arrow" or "rows", not \'csv\''),
        ({"batches": True, "transport": "rows"}, 'batches=True needs transport="arrow"'),
        ({"columns": "id"}, "columns= is a list of names, such as ['id']"),
    ],
)
async def test_options_that_contradict(spark: SparkSession, options: dict[str, Any], said: str) -> None:
    """Options that do not go together are refused when the source is made."""
    with pytest.raises(InvalidTopology) as caught:
        DataFrameSpout(rows_of(spark), **options)
    assert said in str(caught.value)


async def test_what_is_no_frame(spark: SparkSession) -> None:
    """A list, a pandas DataFrame and a stream are refused by name."""
    with pytest.raises(InvalidTopology, match="list object given, but a source reads a Spark DataFrame"):
        DataFrameSpout([1, 2])  # type: ignore[call-overload]
    with pytest.raises(InvalidTopology, match="DataFrame object given, but a source reads a Spark DataFrame"):
        DataFrameSpout(rows_of(spark).toPandas())
    with pytest.raises(InvalidTopology, match="this DataFrame is a stream"):
        DataFrameSpout(spark.readStream.format("rate").load())


@pytest.mark.parametrize("options", [{"checkpoint": "here"}, {"order_by": "key"}])
async def test_a_frame_of_spark_connect_is_refused(options: dict[str, str]) -> None:
    """Spark Connect has no JVM here to ask for plans, and the message says what to do."""
    connect = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "isStreaming": False})
    with pytest.raises(
        InvalidTopology, match="only Spark itself can read its partitions: run the topology by"
    ):
        DataFrameSpout(connect(), **options)


async def test_parallelism_is_refused(spark: SparkSession) -> None:
    """Two tasks would emit every row twice (law S8)."""
    with pytest.raises(
        InvalidTopology, match="spout 'rows': with parallelism=2 every task would emit the same"
    ):
        Topology("twice").spout("rows", DataFrameSpout(rows_of(spark)), parallelism=2)


# Failures.


async def crash_of(frame: DataFrame, **options: Any) -> BaseException:
    """What the topology crashes with."""
    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("rows", DataFrameSpout(frame, **options)).shuffle())
    with pytest.raises(TopologyCrashed) as caught:
        await run_to_end(topology)
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


@pytest.mark.parametrize("transport", ["arrow", "rows"])
async def test_an_error_of_spark_is_the_cause(spark: SparkSession, transport: Any) -> None:
    """A query that fails crashes the topology at once, and Spark's own error is behind it."""
    frame = spark.range(10).selectExpr("if(id = 7, raise_error('seven'), id) AS id")
    cause = await crash_of(frame, transport=transport)
    assert isinstance(cause, SparkFailed)
    assert "seven" in str(cause.__cause__)


async def test_a_result_that_is_too_large(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """A partition above spark.driver.maxResultSize is reported with the way out, and not tried again."""
    limit = int(spark.sparkContext.getConf().get("spark.driver.maxResultSize", "0").removesuffix("m"))
    assert limit == 2, "the session for the tests has a small limit"
    cause = await crash_of(spark.range(0, 1_000_000, 1, 1).selectExpr("uuid() AS a"))
    assert "a partition is larger than spark.driver.maxResultSize; use more partitions" in str(cause)
    assert "is read again" not in caplog.text


async def test_a_null_in_a_record_crashes(spark: SparkSession) -> None:
    """A row that no record can be made of is no message, and crashes the topology with its place."""
    frame = spark.sql("SELECT 1 AS id, cast(null AS string) AS name")
    cause = await crash_of(frame, as_=Row)
    assert str(cause).startswith("rows 0 to 0 of partition 0 cannot be converted: column 'name' is null")


# What is left.


def jobs(spark: SparkSession) -> Sequence[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


def sockets() -> int:
    links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return sum(str(link.readlink()).startswith("socket:") for link in links)


async def until(holds: Callable[[], object]) -> None:
    """Wait for Spark, for which no event can be awaited."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.02)


async def leave(how: str) -> None:
    """Leave the block in which this is called."""
    if how == "exception":
        raise KeyError(how)
    if how == "cancelled":
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(10)


LONGEST_LEAVE = 30.0
"""Seconds, on a machine that has other things to do; a row of the job that blocks takes twice as long."""


@pytest.mark.parametrize("how", ["block", "exception", "cancelled", "blocked"])
async def test_leaving_early_leaves_nothing(spark: SparkSession, how: str) -> None:
    """However the block is left, in the middle of reading or while a job blocks: no thread, job or socket of ours
    stays, and it does not take long."""
    await emitted(DataFrameSpout(rows_of(spark)))  # the first one makes Spark's own connections
    gc.collect()
    threads, before = set(threading.enumerate()), sockets()
    frame, kept = rows_of(spark, 2_000_000, 50), list[tuple[object, object]]()
    if how == "blocked":
        frame = frame.where("reflect('java.lang.Thread', 'sleep', 60000L) IS NULL")
    began = 0.0
    with suppress(KeyError, asyncio.CancelledError):
        async with topology_of(DataFrameSpout(frame), kept, drain_timeout=0.1).run():
            await until(lambda: jobs(spark) if how == "blocked" else kept)
            began = time.monotonic()
            await leave(how)
    assert time.monotonic() - began < LONGEST_LEAVE
    await until(lambda: not jobs(spark))
    await until(lambda: set(threading.enumerate()) <= threads)
    await until(
        lambda: gc.collect() >= 0 and sockets() <= before
    )  # Py4J closes those of objects that are gone
    assert (kept == []) == (how == "blocked")
