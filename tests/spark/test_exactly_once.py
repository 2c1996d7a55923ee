"""Exactly once with Spark: what a DataFrame's rows become is in the sink as Spark SQL says it must be."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from shutil import copytree, rmtree
from threading import Event
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from stormlet import (
    Bolt,
    Collector,
    DeadLetter,
    InvalidConfiguration,
    InvalidTopology,
    KeyedBolt,
    Reject,
    StartFailed,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.spark import DataFrameSink, DataFrameSpout, SparkFailed
from stormlet.spark.sink.writer import Destination, EpochWriter, SourceKey
from stormlet.spark.source.checkpoint import Checkpoint, encoded
from stormlet.spark.source.plans import Fingerprint
from stormlet.state.sqlite.reading import StateReader
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.asyncio

ROWS = 1000


class Order(msgspec.Struct, frozen=True):
    id: int
    cents: int


class Line(msgspec.Struct, frozen=True):
    id: int
    euros: float
    part: int


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand orders in three files."""
    path = tmp_path_factory.mktemp("exactly-once") / "orders"
    spark.range(0, ROWS, 1, 3).selectExpr("id", "id * 7 % 1000 AS cents").write.parquet(str(path))
    return path


@pytest.fixture
def orders(spark: SparkSession, files: Path) -> DataFrame:
    """The orders of the files."""
    return spark.read.parquet(str(files))


class Lines:
    """Two lines of an order; some orders have none, some are rejected, and some fail the first time."""

    def __init__(self, seed: int = 0, failing: float = 0.0) -> None:
        self.random = Random(seed)
        self.failing = failing

    def __call__(self, order: Order) -> Iterator[Line]:
        if order.cents % 10 == 3:
            return
        yield Line(order.id, order.cents / 100, 0)
        if order.cents % 100 == 14:
            raise Reject("unlucky")
        if self.random.random() < self.failing:
            raise OSError("flaky")
        yield Line(order.id, order.cents / 100, 1)


EXPECTED = """
    SELECT id, cents / 100 AS euros, part FROM orders LATERAL VIEW explode(array(0, 1)) AS part
    WHERE cents % 10 <> 3 AND cents % 100 <> 14
"""


def expected(orders: DataFrame) -> list[tuple[Any, ...]]:
    """Spark SQL's own answer."""
    orders.createOrReplaceTempView("orders")
    return sorted(map(tuple, orders.sparkSession.sql(EXPECTED).collect()))


def lines(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.read.parquet(str(path)).select("id", "euros", "part").collect()))


def topology(
    orders: DataFrame,
    path: Path,
    logic: Any = None,
    *,
    epoch_rows: int = 300,
    sink: dict[str, Any] | None = None,
    source: dict[str, Any] | None = None,
) -> Topology:
    made = Topology("orders", replay_delay=0.01, replay_delay_max=0.05)
    spout = DataFrameSpout(
        orders, as_=Order, checkpoint=path / "checkpoint", epoch_rows=epoch_rows, **(source or {})
    )
    rows = made.bolt("lines", logic or Lines(), made.spout("orders", spout).shuffle(), outputs=Line)
    write = DataFrameSink(path / "out", exactly_once=True, **(sink or {}))
    made.bolt("write", write, rows.shuffle())
    return made


async def run(made: Topology, path: Path) -> list[DeadLetter]:
    letters: list[DeadLetter] = []
    await asyncio.wait_for(run_to_end(made, dead_letters=letters.append), 120)
    return letters


def folders(path: Path) -> list[str]:
    return sorted(each.name for each in (path / "out").glob("source=*/epoch=*"))


def line_of(path: Path) -> str:
    """The line of epochs of a checkpoint, which is a state file."""
    with closing(StateReader(path / "checkpoint")) as reader:
        return reader.load().line


async def test_rows_as_spark_sql_has_them(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """With failures and rejects, from three partitions."""
    letters = await run(topology(orders, tmp_path, Lines(1, 0.003)), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)
    assert sorted(letter.value.id for letter in letters) == [id for id in range(ROWS) if id * 7 % 100 == 14]


async def test_an_epoch_is_a_directory(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """Of so many rows, in the order of partitions and rows, below the line of the checkpoint."""
    await run(topology(orders, tmp_path), tmp_path)
    assert folders(tmp_path) == ["epoch=1", "epoch=2", "epoch=3", "epoch=4"]
    read = spark.read.parquet(str(tmp_path / "out"))
    by_epoch = {row["id"]: row["epoch"] for row in read.collect()}
    ids = [row["id"] for row in orders.collect()]
    assert by_epoch == {id: 1 + place // 300 for place, id in enumerate(ids) if id in by_epoch}
    (source,) = {row["source"] for row in read.collect()}
    assert source == f"orders-write-{line_of(tmp_path)}"


async def test_a_run_goes_on_where_the_last_one_stopped(
    spark: SparkSession, orders: DataFrame, tmp_path: Path
) -> None:
    """Runs that are left in the middle of an epoch, whenever that is, bring each row once together."""
    seen = Counter[int]()

    async def slowly(order: Order) -> AsyncIterator[Line]:
        seen[order.id] += 1
        await asyncio.sleep(0.0005)
        for line in Lines()(order):
            yield line

    for seconds in (0.3, 0.6, 0.9):
        async with topology(orders, tmp_path, slowly).run(dead_letters=lambda _: None) as running:
            await asyncio.sleep(seconds)
            running.stop()
    await run(topology(orders, tmp_path, slowly), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)
    assert sum(seen.values()) < 4 * ROWS


async def test_a_second_run_has_nothing_to_do(orders: DataFrame, tmp_path: Path) -> None:
    """It reads no row and writes nothing."""
    await run(topology(orders, tmp_path), tmp_path)
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").rglob("*")}
    assert await run(topology(orders, tmp_path), tmp_path) == []
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "out").rglob("*")} == before


async def test_what_a_killed_write_has_left(
    spark: SparkSession, orders: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of an epoch that was not written to its end are replaced, whatever the session says of partitions."""
    sink = {"partition_by": "part"}
    with monkeypatch.context() as patch:
        patch.setattr("stormlet.spark.sink.committed.PAUSES", ())
        patch.setattr(Destination, "replace", lambda self, rows: 1 / 0)
        with pytest.raises(TopologyCrashed):
            await run(topology(orders, tmp_path, sink=sink), tmp_path)
    left = tmp_path / "out" / f"source=orders-write-{line_of(tmp_path)}" / "epoch=1"
    spark.sql("SELECT 7L AS id, 7.0D AS euros, 7L AS part").write.partitionBy("part").parquet(str(left))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        await run(topology(orders, tmp_path, sink=sink), tmp_path)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert lines(spark, tmp_path / "out") == expected(orders)


async def test_partitions_of_the_user(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """They are below those of the epochs."""
    await run(topology(orders, tmp_path, sink={"partition_by": ["part"]}), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)
    assert {each.name for each in (tmp_path / "out").glob("source=*/epoch=1/*=*")} == {"part=0", "part=1"}


@pytest.mark.parametrize("kind", ["json", "orc"])
async def test_other_formats(spark: SparkSession, orders: DataFrame, tmp_path: Path, kind: str) -> None:
    """Whatever Spark writes as files."""
    await run(topology(orders, tmp_path, sink={"format": kind}), tmp_path)
    assert spark.read.format(kind).load(str(tmp_path / "out")).count() == len(expected(orders))


async def test_no_rows(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """The result of nothing can be read, too."""
    nothing = orders.where("cents < 0")
    for _ in range(2):
        await run(topology(nothing, tmp_path), tmp_path)
    assert folders(tmp_path) == ["epoch=0"]
    read = spark.read.parquet(str(tmp_path / "out"))
    assert read.columns == ["id", "euros", "part", "source", "epoch"]
    assert read.count() == 0


@pytest.mark.parametrize("rows", [1, 333, 1000, 5000])
async def test_epochs_of_any_size(spark: SparkSession, orders: DataFrame, tmp_path: Path, rows: int) -> None:
    """Within a partition, over several, at the very end, or larger than all."""
    frame = orders.where("id % 250 = 0") if rows == 1 else orders
    await run(topology(frame, tmp_path, epoch_rows=rows), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(frame)
    ids = [row["id"] for row in frame.collect()]
    kept = {id for id, _, _ in expected(frame)}
    epochs = [ids[first : first + rows] for first in range(0, len(ids), rows)]
    assert len(folders(tmp_path)) == sum(not kept.isdisjoint(epoch) for epoch in epochs)


async def test_an_order_by_a_key(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """DataFrames of any order have epochs, too, and are gone on with after a stop."""
    shuffled = orders.repartition(5)
    async with topology(shuffled, tmp_path, source={"order_by": "id"}).run(
        dead_letters=lambda _: None
    ) as running:
        await asyncio.sleep(1.5)
        running.stop()
    await run(topology(orders.repartition(5), tmp_path, source={"order_by": "id"}), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)
    by_epoch = spark.read.parquet(str(tmp_path / "out")).groupBy("epoch").agg({"id": "min"}).collect()
    firsts = [row["min(id)"] for row in sorted(by_epoch, key=lambda row: row["epoch"])]
    assert firsts == sorted(firsts)


async def test_record_batches(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """They are cut where an epoch ends."""
    sizes: list[int] = []

    def unpack(batch: Any) -> Iterator[Line]:
        sizes.append(batch.num_rows)
        for each in batch.to_pylist():
            yield from Lines()(Order(**each)) if each["cents"] % 100 != 14 else ()

    made = Topology("batches")
    source = DataFrameSpout(
        orders, batches=True, columns=["id", "cents"], checkpoint=tmp_path / "c", epoch_rows=150
    )
    rows = made.bolt("unpack", unpack, made.spout("orders", source).shuffle(), outputs=Line)
    made.bolt("write", DataFrameSink(tmp_path / "out", exactly_once=True), rows.shuffle())
    await run(made, tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)
    assert sum(sizes) == ROWS
    assert max(sizes) <= 150
    assert len(folders(tmp_path)) == 7


class Pairs(Bolt[Line, Line]):
    """Joins the two lines of an order into one, anchored to both."""

    def __init__(self) -> None:
        self.waiting: dict[int, Tuple[Line]] = {}

    def execute(self, tup: Tuple[Line], out: Collector[Line]) -> None:
        partner = self.waiting.pop(tup.value.id, None)
        if partner is None:
            self.waiting[tup.value.id] = tup
            return
        out.emit(Line(tup.value.id, tup.value.euros + partner.value.euros, 2), anchors=(tup, partner))
        out.ack(tup)
        out.ack(partner)

    def flush(self, out: Collector[Line]) -> None:
        while self.waiting:
            out.fail(self.waiting.popitem()[1], "its other line has not come")


async def test_two_sinks_and_a_join(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """Each has what Spark SQL says, whatever failed in the other's branch."""
    made = Topology("joined", replay_delay=0.01, max_attempts=50)
    source = DataFrameSpout(orders, as_=Order, checkpoint=tmp_path / "c", epoch_rows=200)
    rows = made.bolt("lines", Lines(2, 0.002), made.spout("orders", source).shuffle(), outputs=Line)
    pairs = made.bolt("pairs", Pairs, rows.fields("id"), parallelism=2)
    made.bolt("write", DataFrameSink(tmp_path / "out", exactly_once=True), rows.shuffle())
    made.bolt("sums", DataFrameSink(tmp_path / "sums", exactly_once=True), pairs.shuffle())
    await run(made, tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)
    sums = {(id, 2 * euros, 2) for id, euros, _ in expected(orders)}
    assert lines(spark, tmp_path / "sums") == sorted(sums)


async def test_a_write_that_fails(
    spark: SparkSession, orders: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again, nothing is replayed for it, and nothing is missing."""
    failures = iter([OSError("the disk is full")])
    replace = Destination.replace

    def fails_once(self: Destination, rows: DataFrame) -> None:
        for error in failures:
            raise error
        replace(self, rows)

    monkeypatch.setattr(Destination, "replace", fails_once)
    await run(topology(orders, tmp_path), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)


async def test_a_kill_beside_the_next_epoch(
    spark: SparkSession, orders: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint has the rows of the epoch that is being written, not those that were read meanwhile."""
    path, then, read_on, seen = tmp_path / "run", tmp_path / "then", Event(), list[int]()
    write = EpochWriter.write_epoch

    def look(order: Order) -> Iterator[Line]:
        seen.append(order.id)
        if len(seen) == 301:  # the first of the next epoch
            read_on.set()
        return Lines()(order)

    def copy_and_write(self: EpochWriter, source: SourceKey, epoch: int, tables: Any) -> None:
        assert read_on.wait(timeout=60)
        if epoch == 1:
            copytree(path, then)
        write(self, source, epoch, tables)

    path.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(EpochWriter, "write_epoch", copy_and_write)
        await run(topology(orders, path, look), path)
    rmtree(path)
    then.rename(path)
    await run(topology(orders, path), path)
    assert lines(spark, path / "out") == expected(orders)


async def test_a_place_that_cannot_be_written(
    spark: SparkSession, orders: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topology crashes with Spark's error, and the next run begins with the epoch."""
    monkeypatch.setattr("stormlet.spark.sink.committed.PAUSES", (0.01,))
    made = topology(orders, tmp_path)
    (tmp_path / "out").write_text("a file is no directory")
    with pytest.raises(TopologyCrashed) as crash:
        await run(made, tmp_path)
    cause = crash.value.__cause__
    assert isinstance(cause, SparkFailed)
    assert re.match(
        r"writing 5\d\d rows to parquet at .*/epoch=1 failed: .*Parent path is not a dir", str(cause)
    )
    assert cause.__cause__ is not None
    (tmp_path / "out").unlink()
    await run(topology(orders, tmp_path), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)


class Count(KeyedBolt[int, Line, Line]):
    """The lines of each part that came so far, in their ``part``."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Line], out: Collector[Line]) -> None:
        self.total += 1
        out.emit(Line(tup.value.id, tup.value.euros, self.total))


async def test_a_checkpoint_has_the_state_of_bolts_too(
    spark: SparkSession, orders: DataFrame, tmp_path: Path
) -> None:
    """Runs that are left go on with what was counted, and another source may feed the same bolts."""

    async def slowly(order: Order) -> AsyncIterator[Line]:
        await asyncio.sleep(0.0005)
        for line in Lines()(order):
            yield line

    def counted() -> Topology:
        made = Topology("counts", replay_delay=0.01)
        source = DataFrameSpout(orders, as_=Order, checkpoint=tmp_path / "c", epoch_rows=200)
        rows = made.bolt("lines", slowly, made.spout("orders", source).shuffle(), outputs=Line)
        more = made.spout("more", [Line(ROWS, 0.0, 0)], outputs=Line)
        counts = made.bolt("count", Count, rows.fields("part"), more.fields("part"))
        made.bolt("write", DataFrameSink(tmp_path / "out", exactly_once=True), counts.shuffle())
        return made

    async with counted().run(dead_letters=lambda _: None) as running:
        await asyncio.sleep(0.7)
        running.stop()
    await run(counted(), tmp_path)
    per_part = len(expected(orders)) // 2
    totals = [total for _, _, total in lines(spark, tmp_path / "out")]
    assert sorted(totals) == sorted([*range(1, per_part + 2), *range(1, per_part + 1)])


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "lines"}, "needs a path with exactly_once=True"),
        ({"path": "out", "mode": "overwrite"}, "cannot have mode='overwrite' with exactly_once=True"),
    ],
)
async def test_sinks_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    """They are refused where they are written."""
    with pytest.raises(InvalidConfiguration, match=message):
        DataFrameSink(exactly_once=True, **arguments)


async def test_sources_that_cannot_be(orders: DataFrame, tmp_path: Path) -> None:
    """Epochs need a checkpoint, and a size."""
    with pytest.raises(InvalidTopology, match="epoch_rows= needs checkpoint="):
        DataFrameSpout(orders, epoch_rows=5)
    with pytest.raises(InvalidTopology, match="an int of at least 1, not 0"):
        DataFrameSpout(orders, epoch_rows=0, checkpoint=tmp_path / "c")


async def test_a_source_without_epochs(orders: DataFrame, tmp_path: Path) -> None:
    """Refused before it runs, if no state= gives epochs instead."""
    made = Topology("no-epochs")
    rows = made.spout("orders", DataFrameSpout(orders, as_=Order, checkpoint=tmp_path / "c"))
    made.bolt("write", DataFrameSink(tmp_path / "out", exactly_once=True), rows.shuffle())
    with pytest.raises(
        InvalidTopology, match="bolt 'write' writes exactly once, and the epochs of spout 'orders'"
    ):
        made.run()


async def test_a_state_beside_the_checkpoint(orders: DataFrame, tmp_path: Path) -> None:
    """A topology has one of them, whichever way it is named."""
    with pytest.raises(InvalidTopology, match="spout 'orders' has a checkpoint of its own, and state= keeps"):
        topology(orders, tmp_path).run(state=tmp_path / "state")
    made = Topology("two", state=tmp_path / "state")
    made.spout("orders", DataFrameSpout(orders, checkpoint=tmp_path / "c", epoch_rows=5))
    with pytest.raises(InvalidTopology, match="leave out one of the two"):
        made.describe()
    made = Topology("two")
    for name in ("one", "two"):
        made.spout(name, DataFrameSpout(orders, checkpoint=tmp_path / name, epoch_rows=5))
    with pytest.raises(InvalidTopology, match="spouts 'one' and 'two' have checkpoints of their own"):
        made.run()


async def test_dead_letters_need_a_place(orders: DataFrame, tmp_path: Path) -> None:
    """No later run reads their rows again."""
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology(orders, tmp_path))
    assert "checkpoint= needs a place where dead letters outlive the process" in str(caught.value.__cause__)


async def test_a_sink_of_several_tasks(orders: DataFrame, tmp_path: Path) -> None:
    """Its epochs come one after another."""
    made = Topology("tasks")
    source = DataFrameSpout(orders, as_=Order, checkpoint=tmp_path / "c", epoch_rows=5)
    write = DataFrameSink(tmp_path / "out", exactly_once=True)
    made.bolt("write", write, made.spout("orders", source).shuffle(), parallelism=2)
    with pytest.raises(InvalidTopology, match=r"bolt 'write' is a committer.*cannot have parallelism=2"):
        made.run()


async def refused(made: Topology, path: Path) -> str:
    with pytest.raises(StartFailed) as caught:
        await run(made, path)
    assert isinstance(caught.value.__cause__, InvalidTopology)
    return str(caught.value.__cause__)


async def test_epochs_of_another_size(spark: SparkSession, orders: DataFrame, tmp_path: Path) -> None:
    """What is durable is known by its rows, so that epochs may have another length in each run."""
    async with topology(orders, tmp_path).run(dead_letters=lambda _: None) as running:
        await asyncio.sleep(0.5)
        running.stop()
    await run(topology(orders, tmp_path, epoch_rows=70), tmp_path)
    assert lines(spark, tmp_path / "out") == expected(orders)


async def test_without_its_checkpoint(orders: DataFrame, tmp_path: Path) -> None:
    """Its rows would be there twice: the first write says so."""
    await run(topology(orders, tmp_path), tmp_path)
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(TopologyCrashed, match="has rows that would be there twice"):
        await run(topology(orders, tmp_path), tmp_path)


OLD = Checkpoint(
    Fingerprint(("id",), "struct", "plan", 3, "files", epoch_rows=300), {0: 300}, (), 4, ("out",)
)


async def test_a_checkpoint_of_an_earlier_version(orders: DataFrame, tmp_path: Path) -> None:
    """It is not taken for nothing, with epochs or without, nor is what its sinks have written."""
    (tmp_path / "checkpoint").write_bytes(encoded(OLD))
    with pytest.raises(InvalidTopology, match="the checkpoint of 4 epochs as an earlier version"):
        topology(orders, tmp_path)
    made = Topology("plain")
    made.spout("orders", DataFrameSpout(orders, as_=Order, checkpoint=tmp_path / "checkpoint"))
    assert "remove it together with what it has had written to out" in await refused(made, tmp_path)
    (tmp_path / "checkpoint").unlink()
    (tmp_path / "out" / "source=frame-0123456789abcdef-300" / "epoch=0").mkdir(parents=True)
    with pytest.raises(TopologyCrashed, match="has rows that an earlier version of stormlet has written"):
        await run(topology(orders, tmp_path), tmp_path)


async def test_another_place(orders: DataFrame, tmp_path: Path) -> None:
    """A run that goes on elsewhere would lack there what was done before; the checkpoint is free afterwards."""
    await run(topology(orders, tmp_path), tmp_path)
    made = Topology("orders")
    source = DataFrameSpout(orders, as_=Order, checkpoint=tmp_path / "checkpoint", epoch_rows=300)
    rows = made.bolt("lines", Lines(), made.spout("orders", source).shuffle(), outputs=Line)
    made.bolt("write", DataFrameSink(tmp_path / "other", exactly_once=True), rows.shuffle())
    said = await refused(made, tmp_path)
    assert "the checkpoint has rows that were written to parquet at file:" in said
    assert "where they would be missing" in said
    assert await run(topology(orders, tmp_path), tmp_path) == []


async def test_a_run_without_epochs_in_between(orders: DataFrame, tmp_path: Path) -> None:
    """What either has done the other one does not know."""
    made = Topology("plain")
    made.spout("orders", DataFrameSpout(orders, as_=Order, checkpoint=tmp_path / "checkpoint"))
    await run(made, tmp_path)
    with pytest.raises(InvalidTopology, match="of a run without epochs; leave out epoch_rows="):
        topology(orders, tmp_path)
    (tmp_path / "checkpoint").unlink()
    await run(topology(orders, tmp_path), tmp_path)
    assert "of a run in epochs; give epoch_rows=" in await refused(made, tmp_path)


async def test_columns_of_the_same_names(orders: DataFrame, tmp_path: Path) -> None:
    """They would be there twice for a reader."""
    made = Topology("columns")
    source = DataFrameSpout(orders, checkpoint=tmp_path / "checkpoint", epoch_rows=300)
    rows = made.bolt("same", lambda row: row, made.spout("orders", source).shuffle())
    sink = DataFrameSink(tmp_path / "out", exactly_once=True, schema="id bigint, Epoch bigint")
    made.bolt("write", sink, rows.shuffle())
    assert "there is a column 'Epoch' already" in await refused(made, tmp_path)
