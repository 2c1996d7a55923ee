"""Structured Streaming queries that feed spouts, with Spark itself."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from stormlet import (
    BasicBolt,
    Collector,
    InvalidTopology,
    KeyedBolt,
    Reject,
    StartFailed,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.retries import RestartPolicy
from stormlet.errors import NotExactlyOnce, SparkFailed
from stormlet.spark import DataFrameSink, DataFrameSpout, stream
from tests.cast import ignore
from tests.helpers import run_to_end
from tests.spark.kills import differences, run_with_kills
from tests.spark.stream_kills import make_files, stream_kills

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


ROOT = Path(__file__).parents[3]


class Order(msgspec.Struct, frozen=True):
    """A row of the stream."""

    id: int | None


AVAILABLE: Any = {"availableNow": True}


class Files:
    """A directory of files that come one after another, each a batch of its own; and where a stream keeps what."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.path = path
        self.input = path / "input"
        self.input.mkdir()
        self.checkpoint = path / "checkpoint"
        self.letters = path / "letters.jsonl"

    def add(self, first: int, end: int) -> None:
        """Another file of numbers, as Spark sees it: whole at once."""
        lines = "".join(f'{{"id": {number}}}\n' for number in range(first, end))
        new = self.path / f"{first}.json"
        new.write_text(lines)
        os.utime(new, (1e9 + first, 1e9 + first))  # Spark reads them by age
        new.rename(self.input / new.name)

    def frame(self, schema: str = "id bigint") -> DataFrame:
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", "1")
        return reader.json(str(self.input))

    @property
    def committed(self) -> list[int]:
        """The batches that Spark has noted to be done."""
        return sorted(int(path.name) for path in (self.checkpoint / "commits").glob("[0-9]*"))

    def topology(
        self, bolt: Callable[[Order], Awaitable[None] | None], *, frame: DataFrame | None = None, **how: Any
    ) -> Topology:
        """A topology whose one bolt gets the orders."""
        topology = Topology(self.path.name)
        orders = topology.spout("orders", outputs=Order)
        topology.bolt("bolt", bolt, orders.shuffle())
        stream(frame or self.frame(), topology, into=orders, checkpoint=self.checkpoint, **how)
        return topology

    async def run(self, topology: Topology) -> None:
        await run_to_end(topology, dead_letters=self.letters)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    """Three files, of ten orders each."""
    files = Files(spark, tmp_path)
    for first in (0, 10, 20):
        files.add(first, first + 10)
    return files


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that Spark does."""
    while not condition():  # noqa: ASYNC110 nothing tells
        await asyncio.sleep(0.01)


def own_threads() -> list[str]:
    """The threads that a stream starts."""
    names = [thread.name for thread in threading.enumerate()]
    return [
        name for name in names if "query" in name or "puller" in name or name.startswith("stormlet spark ")
    ]


def without_jvm(names: list[str]) -> list[str]:
    return [name for name in names if name != "stormlet spark jvm"]


def assert_nothing_is_left(spark: SparkSession) -> None:
    """No query, no job and no thread; Spark hears a little later that a job is over, and a thread that has told its
    result is ending."""
    assert spark.streams.active == []

    def left() -> list[object]:
        return [*spark.sparkContext.statusTracker().getActiveJobsIds(), *without_jvm(own_threads())]

    until = time.monotonic() + 30.0
    while left() and time.monotonic() < until:
        time.sleep(0.01)
    assert left() == []


# What comes, and when.


@pytest.mark.asyncio
async def test_acks_come_before_offsets(files: Files) -> None:
    """Batches come in order, and Spark notes one as done only after its last row was acked."""
    seen: list[tuple[int, list[int]]] = []

    async def note(order: Order) -> None:
        await asyncio.sleep(0.001)
        assert order.id is not None
        seen.append((order.id, files.committed))

    await files.run(files.topology(note, trigger=AVAILABLE))
    assert seen == [(number, list(range(number // 10))) for number in range(30)]
    assert files.committed == [0, 1, 2]
    assert_nothing_is_left(files.spark)


@pytest.mark.asyncio
async def test_a_stream_goes_on_until_the_block_is_left(files: Files) -> None:
    """Files that are added while it runs are read, and what was acked does not come again in the next run."""
    seen: list[int | None] = []
    topology = files.topology(lambda order: seen.append(order.id))
    async with topology.run(dead_letters=files.letters):
        await until(lambda: len(seen) == 30)
        files.add(30, 40)
        await until(lambda: len(seen) == 40)
    assert files.committed == [0, 1, 2, 3]
    files.add(40, 50)
    async with topology.run(dead_letters=files.letters):
        await until(lambda: len(seen) == 50)
    assert seen == list(range(50))
    assert_nothing_is_left(files.spark)


@pytest.mark.asyncio
async def test_a_source_without_files(files: Files) -> None:
    """Rows that Spark makes up by the clock come without a gap, over two runs."""
    seen: list[int] = []
    frame = files.spark.readStream.format("rate").options(rowsPerSecond=50, numPartitions=1).load()
    topology = Topology("rate")
    ticks = topology.spout("ticks", outputs=["value"])
    topology.bolt("see", lambda tick: seen.append(tick[0]), ticks.shuffle())
    stream(frame, topology, into=ticks, checkpoint=files.checkpoint)
    for _ in range(2):
        least = max(seen, default=0) + 50
        async with topology.run(dead_letters=files.letters):
            await until(lambda least=least: max(seen, default=0) > least)
    assert set(range(max(seen))) <= set(seen)
    assert len(seen) < 2 * len(set(seen))


@pytest.mark.asyncio
async def test_rows_become_tuples_of_the_declared_fields(files: Files) -> None:
    """A spout that declares field names gets plain tuples of these columns."""
    topology = Topology("fields")
    rows = topology.spout("rows", outputs=["double", "id"])
    seen: list[Any] = []
    topology.bolt("see", seen.append, rows.fields("id"))
    frame = files.frame().selectExpr("id", "id * 2 AS double")
    stream(frame, topology, into=rows, checkpoint=files.checkpoint, trigger=AVAILABLE)
    await files.run(topology)
    assert seen == [(number * 2, number) for number in range(30)]


@pytest.mark.asyncio
async def test_streams_of_aggregates(files: Files) -> None:
    """A query that keeps state in Spark gives its rows, partition by partition."""
    topology = Topology("counts")
    rows = topology.spout("rows")
    seen: list[Any] = []
    topology.bolt("see", seen.append, rows.shuffle())
    frame = files.frame().selectExpr("id % 3 AS kind").groupBy("kind").count()
    stream(frame, topology, into=rows, checkpoint=files.checkpoint, trigger=AVAILABLE, output_mode="complete")
    await files.run(topology)
    assert sorted(seen[-3:]) == [(0, 10), (1, 10), (2, 10)]
    assert len(seen) == 9


@pytest.mark.asyncio
async def test_a_fan_out_counts_as_a_whole(files: Files) -> None:
    """A row is done when everything that came of it is; a failed branch replays the row within its batch."""
    failures = {7, 17, 27}
    seen: list[int] = []

    class Split(BasicBolt[Order, int]):
        def execute(self, tup: Tuple[Order], out: Collector[int]) -> None:
            assert tup.value.id is not None
            for part in range(3):
                out.emit(tup.value.id * 3 + part)

    def note(part: int) -> None:
        if part // 3 in failures:
            failures.remove(part // 3)
            raise ValueError("not now")
        assert part // 30 == len(files.committed)
        seen.append(part)

    topology = Topology("fan-out")
    orders = topology.spout("orders", outputs=Order)
    parts = topology.bolt("split", Split, orders.shuffle(), parallelism=2)
    topology.bolt("note", note, parts.shuffle(), parallelism=2)
    stream(files.frame(), topology, into=orders, checkpoint=files.checkpoint, trigger=AVAILABLE)
    await files.run(topology)
    assert set(seen) == set(range(90))
    assert files.committed == [0, 1, 2]


@pytest.mark.asyncio
async def test_a_sink_is_flushed_with_each_batch(files: Files) -> None:
    """What a batch brought is written before Spark notes that it is done, although the sink could wait for more."""
    topology = Topology("sink")
    orders = topology.spout("orders", outputs=Order)
    topology.bolt("write", DataFrameSink(files.path / "out", schema=Order, seconds=1000.0), orders.shuffle())
    stream(files.frame(), topology, into=orders, checkpoint=files.checkpoint, trigger=AVAILABLE)
    await files.run(topology)
    assert files.spark.read.parquet(str(files.path / "out")).count() == 30
    assert len(list((files.path / "out").glob("*.parquet"))) == 3


@pytest.mark.asyncio
@pytest.mark.parametrize("on_failure", ["dead_letter", "fail_batch"])
async def test_exactly_once(files: Files, on_failure: str) -> None:
    """Each batch is written as a whole, under its number, although rows fail and the stream is left in between."""
    failures = {7, 13, 25}

    async def unsteady(order: Order) -> Order:
        await asyncio.sleep(0.01)
        if order.id in failures:
            failures.discard(order.id)
            raise ValueError("not now") if on_failure == "dead_letter" else Reject("not now")
        return order

    def topology(**how: Any) -> Topology:
        made = Topology("exactly-once")
        orders = made.spout("orders", outputs=Order)
        rows = made.bolt("unsteady", unsteady, orders.shuffle(), outputs=Order)
        made.bolt("write", DataFrameSink(files.path / "out", exactly_once=True), rows.shuffle())
        stream(files.frame(), made, into=orders, checkpoint=files.checkpoint, on_failure=on_failure, **how)
        return made

    async with topology().run(dead_letters=files.letters):
        await until(lambda: files.committed)
    await files.run(topology(trigger=AVAILABLE))
    written = files.spark.read.parquet(str(files.path / "out")).select("id", "epoch", "source").collect()
    assert sorted((row["id"], row["epoch"]) for row in written) == [
        (number, number // 10) for number in range(30)
    ]
    (source,) = {row["source"] for row in written}
    assert source.removeprefix("query-") in (files.checkpoint / "metadata").read_text()
    assert failures == set()
    assert_nothing_is_left(files.spark)


@pytest.mark.asyncio
async def test_an_exactly_once_batch_that_comes_again_without_rows(files: Files) -> None:
    """It was written and not noted when the process died; then all of it is rejected, and nothing of before is left."""

    def topology(logic: Any) -> Topology:
        made = Topology("again")
        orders = made.spout("orders", outputs=Order)
        rows = made.bolt("logic", logic, orders.shuffle(), outputs=Order)
        made.bolt("write", DataFrameSink(files.path / "out", exactly_once=True), rows.shuffle())
        stream(files.frame(), made, into=orders, checkpoint=files.checkpoint, trigger=AVAILABLE)
        return made

    def reject(order: Order) -> Order:
        raise Reject("unlucky")

    await files.run(topology(lambda order: order))
    for note in (files.checkpoint / "commits").glob("*2*"):
        note.unlink()
    await files.run(topology(reject))
    written = files.spark.read.parquet(str(files.path / "out")).select("id").collect()
    assert sorted(row["id"] for row in written) == list(range(20))
    assert files.committed == [0, 1, 2]


@pytest.mark.asyncio
async def test_exactly_once_without_its_checkpoint(files: Files) -> None:
    """Its rows would be there twice: the first write says so. Another sink may write beside them."""

    def topology(name: str) -> Topology:
        made = Topology(name)
        sink = DataFrameSink(files.path / "out", exactly_once=True)
        made.bolt("write", sink, (orders := made.spout("orders", outputs=Order)).shuffle())
        stream(files.frame(), made, into=orders, checkpoint=files.checkpoint, trigger=AVAILABLE)
        return made

    await files.run(topology("once"))
    await files.run(topology("once"))
    (before,) = (files.path / "out").glob("source=*")
    shutil.rmtree(files.checkpoint)
    with pytest.raises(TopologyCrashed) as crash:
        await files.run(topology("once"))
    assert isinstance(crash.value.__cause__, NotExactlyOnce)
    said = str(crash.value.__cause__)
    assert said.startswith(
        f"write: file:{before} has rows of {before.name.removeprefix('source=')}, written by"
    )
    assert said.endswith("give its topology another name, or write elsewhere")
    assert files.spark.read.parquet(str(files.path / "out")).count() == 30
    await files.run(topology("another"))
    assert files.spark.read.parquet(str(files.path / "out")).count() == 60


class Count(KeyedBolt[int, Order, Order]):
    """Counts even and odd orders."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Order], out: Collector[Order]) -> None:
        self.total += 1
        out.emit(tup.value)


@pytest.mark.asyncio
async def test_a_stream_feeds_state(files: Files) -> None:
    """Beside another source; a run that is left, and batches that Spark gives again, leave each row counted once."""

    def topology(**how: Any) -> Topology:
        made = Topology("counted", state=files.path / "counted.state")
        orders = made.spout("orders", outputs=Order)
        more = made.spout("more", [Order(100), Order(101)])
        counted = made.bolt(
            "count", Count, orders.fields(lambda order: order.id % 2), more.fields(lambda order: order.id % 2)
        )
        made.bolt("write", DataFrameSink(files.path / "out", exactly_once=True), counted.shuffle())
        stream(files.frame(), made, into=orders, checkpoint=files.checkpoint, **how)
        return made

    async with topology().run(dead_letters=files.letters):
        await until(lambda: files.committed)
    for note in (files.checkpoint / "commits").iterdir():
        note.unlink()
    async with topology(trigger=AVAILABLE).run(dead_letters=files.letters) as running:
        await running.finished()
        assert dict(running.state("count")) == {0: 16, 1: 16}
    written = files.spark.read.parquet(str(files.path / "out")).select("id").collect()
    assert sorted(row["id"] for row in written) == [*range(30), 100, 101]
    # Spark may have put two files into one batch, where it was stopped when it had looked for the next one.
    assert files.committed[-1] == max(
        int(path.name) for path in (files.checkpoint / "offsets").glob("[0-9]*")
    )
    assert_nothing_is_left(files.spark)


@pytest.mark.untraced
@pytest.mark.timeout(600)
@pytest.mark.parametrize("with_state", [False, True])
def test_sigkill_neither_loses_nor_doubles(spark: SparkSession, tmp_path: Path, with_state: bool) -> None:
    """Killed in the middle and started again, the sinks have what Spark SQL says, row for row."""
    kills = stream_kills(seed=3, with_state=with_state)
    kills.soon = True
    make_files(spark, tmp_path, 200)
    run_with_kills(tmp_path, kills, most=1)
    assert list(differences(spark, tmp_path)) == []
    assert kills.total == 1


# Failures.


@pytest.mark.asyncio
async def test_dead_letters(files: Files) -> None:
    """A row that is rejected is a dead letter, and its batch is done."""

    def reject(order: Order) -> None:
        if order.id in (3, 23):
            raise Reject("unlucky")

    await files.run(files.topology(reject, trigger=AVAILABLE))
    letters = [json.loads(line) for line in files.letters.read_text().splitlines()]
    assert [letter["value"]["id"] for letter in letters] == [3, 23]
    assert files.committed == [0, 1, 2]


@pytest.mark.asyncio
async def test_a_failed_batch_comes_again_under_its_number(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """The query is started again with the same batch and rows, and no traceback of Py4J's is in the log."""
    seen: list[tuple[int, int | None]] = []
    failures = [13]

    class Look(BasicBolt[Order, None]):
        def execute(self, tup: Tuple[Order], out: Collector[None]) -> None:
            if tup.value.id in failures:
                failures.clear()
                raise Reject("unlucky")
            origin: Any = tup.origin
            seen.append((origin.epoch, tup.value.id))

    topology = Topology("again")
    orders = topology.spout("orders", outputs=Order)
    topology.bolt("look", Look, orders.shuffle())
    stream(
        *(files.frame(), topology),
        into=orders,
        checkpoint=files.checkpoint,
        trigger=AVAILABLE,
        on_failure="fail_batch",
    )
    with caplog.at_level(logging.WARNING):
        await run_to_end(topology)
    again = [number for number in range(10, 20) if number != 13]
    assert seen == [(number // 10, number) for number in [*range(10), *again, *range(10, 30)]]
    assert files.committed == [0, 1, 2]
    assert {record.name for record in caplog.records} == {
        "stormlet.runtime.failure_log",
        "stormlet.spark.stream.keeper",
    }
    assert_nothing_is_left(files.spark)


@pytest.mark.asyncio
async def test_errors_of_spark_crash_the_topology_in_the_end(files: Files) -> None:
    """A batch that Spark cannot compute is tried again as the policy says; then its error is the cause."""
    frame = files.frame().selectExpr("id", "1 / (id - 15) AS reciprocal").select("id").where("reciprocal < 2")
    policy = RestartPolicy(most=1, first_pause=0.01)
    with pytest.raises(TopologyCrashed) as caught:
        await files.run(files.topology(ignore, frame=frame, restarts=policy))
    given_up = caught.value.__cause__
    assert isinstance(given_up, SparkFailed)
    assert "DIVIDE_BY_ZERO" in str(given_up)
    assert str(given_up).endswith("no restart is left of 1 restart within 60 s")
    assert files.committed == [0]
    assert_nothing_is_left(files.spark)


# Stopping.


@pytest.mark.asyncio
async def test_a_query_that_is_stopped_elsewhere(files: Files) -> None:
    """The batch under way is finished, and so is the run. It depends on the moment whether Spark notes that batch."""
    seen: list[int | None] = []
    stopped = asyncio.Event()

    async def look(order: Order) -> None:
        seen.append(order.id)
        if order.id == 13:
            await stopped.wait()

    topology = files.topology(look)
    async with topology.run(dead_letters=files.letters) as running:
        await until(lambda: 13 in seen)
        (query,) = files.spark.streams.active
        stopping = asyncio.create_task(asyncio.to_thread(query.stop))
        await until(lambda: not query.isActive)
        stopped.set()
        await asyncio.gather(stopping, running.finished())
    assert seen == list(range(20))
    assert files.committed in ([0], [0, 1])
    assert_nothing_is_left(files.spark)


@pytest.mark.asyncio
async def test_leaving_in_the_middle_of_a_batch(files: Files) -> None:
    """Whatever leaves the block, nothing is left behind, and the batch comes again."""
    seen: list[int | None] = []

    async def slowly(order: Order) -> None:
        await asyncio.sleep(0.02)
        seen.append(order.id)

    async def leave(topology: Topology) -> None:
        async with topology.run(dead_letters=files.letters):
            await until(lambda: len(seen) > 12)
            raise KeyError("mine")

    with pytest.raises(KeyError):
        await leave(files.topology(slowly))
    assert files.committed == [0]
    assert_nothing_is_left(files.spark)
    seen.clear()
    await files.run(files.topology(lambda order: seen.append(order.id), trigger=AVAILABLE))
    assert seen == list(range(10, 30))


@pytest.mark.asyncio
async def test_leaving_while_spark_computes(files: Files) -> None:
    """A job that is under way is cancelled."""
    frame = files.frame().selectExpr("id", "java_method('java.lang.Thread', 'sleep', 20000L) AS slept")
    topology = Topology("slow")
    rows = topology.spout("rows")
    stream(frame, topology, into=rows, checkpoint=files.checkpoint)
    async with topology.run(dead_letters=files.letters):
        await until(files.spark.sparkContext.statusTracker().getActiveJobsIds)
    assert files.committed == []
    await until(lambda: not files.spark.sparkContext.statusTracker().getActiveJobsIds())
    assert_nothing_is_left(files.spark)


@pytest.mark.untraced
@pytest.mark.timeout(240)
def test_a_session_that_is_stopped_crashes_the_topology(spark: SparkSession) -> None:
    """Between two batches, and in the middle of one, it is said what has happened, and nothing hangs."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.spark.stopped_sessions"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    gone = "SessionGone: stopped: rows: the Spark session was stopped, or its JVM has died"
    assert ended.stdout.splitlines() == [f"between batches {gone}", f"within a batch {gone}"], ended.stderr


# What is refused.


@pytest.mark.asyncio
async def test_a_checkpoint_belongs_to_one_run_at_a_time(files: Files) -> None:
    """A second run would do the same batches; it is refused until the first one has ended."""
    topology = files.topology(ignore)
    async with topology.run(dead_letters=files.letters):
        with pytest.raises(StartFailed) as caught:
            await files.run(topology)
        assert "is the checkpoint of another source of this process" in str(caught.value.__cause__)
    await files.run(files.topology(ignore, trigger=AVAILABLE))
    assert files.committed == [0, 1, 2]


def refused(topology: Topology, files: Files, match: str, **how: Any) -> None:
    how = {"df": files.frame(), "checkpoint": files.checkpoint, **how}
    with pytest.raises(InvalidTopology, match=match):
        stream(how.pop("df"), topology, **how)


def test_what_is_refused_at_once(files: Files) -> None:
    """Each mistake has a message of its own, before anything runs."""
    spark = files.spark
    topology = Topology("refused")
    orders = topology.spout("orders", outputs=Order)
    batch = DataFrameSpout(spark.range(3))
    refused(topology, files, "this DataFrame is no stream; read it with", df=spark.range(3), into=orders)
    refused(topology, files, "int object given, but a source reads", df=3, into=orders)
    refused(topology, files, "'full' has a source already", into=topology.spout("full", batch))
    refused(topology, files, "neither the id nor a stream of a spout", into=Topology("other").spout("orders"))
    refused(topology, files, "output_mode must be one of 'append'", into=orders, output_mode="all")
    refused(topology, files, "on_failure must be one of 'dead_letter'", into=orders, on_failure="stop")
    refused(
        topology,
        files,
        "'continuous' is none of those that make batches",
        into=orders,
        trigger={"continuous": "1s"},
    )
    refused(
        topology,
        files,
        "trigger={'processingTime': 'soon'}: ",
        into=orders,
        trigger={"processingTime": "soon"},
    )
    named = topology.spout("named", outputs={"default": Order, "more": Order}).named("more")
    refused(topology, files, "only a spout's default stream can", into=named)


def test_columns_that_do_not_fit_are_refused(files: Files) -> None:
    """Columns, record types and the spout's declaration are compared by name."""

    class Wide(msgspec.Struct):
        id: int | None
        cents: int

    topology = Topology("refused")
    orders = topology.spout("orders", outputs=Order)
    fields = topology.spout("fields", outputs=["id"])
    refused(
        topology,
        files,
        "wants a column 'cents', which the DataFrame lacks",
        into=topology.spout("wide", outputs=Wide),
    )
    refused(topology, files, "declared to emit Order, and a row would become Wide", into=orders, as_=Wide)
    refused(
        topology, files, r"declared to emit Order, and a row would become \(id\)", into=orders, columns=["id"]
    )
    refused(
        topology,
        files,
        r"declared to emit \(id\), and a row would become \(ID\)",
        into=fields,
        columns=["ID"],
    )
    refused(topology, files, "leave out columns=", into=orders, as_=Order, columns=["id"])
    refused(topology, files, "columns= is a list of names", into=orders, columns="id")
    refused(
        topology,
        files,
        "declared to emit dict, and a row would become a tuple",
        into=topology.spout("d", outputs=dict),
    )


def test_state_below_a_stream_is_refused(files: Files) -> None:
    """What a bolt knows of rows that were done would be missed by the next run."""

    class Count(BasicBolt[Order, None]):
        keeps_state = True

        def execute(self, tup: Tuple[Order], out: Collector[None]) -> None:
            """Nothing of interest."""

    topology = Topology("state")
    orders = topology.spout("orders", outputs=Order)
    topology.bolt("count", Count, orders.shuffle())
    stream(files.frame(), topology, into=orders, checkpoint=files.checkpoint)
    with pytest.raises(InvalidTopology, match="bolt 'count' keeps state"):
        topology.run(dead_letters=files.letters)


@pytest.mark.asyncio
async def test_ackers_are_needed(files: Files) -> None:
    """Without them Spark would note rows that were not done (law L9)."""
    topology = files.topology(ignore)
    with pytest.raises(InvalidTopology, match="lives by acks and cannot run with ackers=0"):
        await run_to_end(topology, ackers=0, dead_letters=files.letters)
