"""When the sink writes, acks and fails; what it writes with is made up, and no Spark runs."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stormlet import (
    BasicBolt,
    Collector,
    Configuration,
    DeadLetter,
    InvalidConfiguration,
    InvalidTopology,
    Progress,
    StartFailed,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.cli import main
from stormlet.cli.inspecting.checks import findings
from stormlet.core.schema import Schema
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.sink.dataframe_sink import DataFrameSink
from stormlet.spark.sink.portions import Portion, Portions
from stormlet.spark.sink.writer import SparkWriter
from tests.cast import Counting, ignore
from tests.helpers import now, run_to_end, until

simulated = pytest.mark.simulated_time


class Notebook(SparkWriter):
    """Writes into a list; what is negative does not fit, and the first attempts may fail."""

    def __init__(self, *, failures: int = 0) -> None:
        self.failures = failures
        self.batches: list[list[Any]] = []
        self.opened: list[tuple[list[str], bool]] = []
        self.threads: set[str] = set()

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        self.opened.append(([stream.name for stream in inputs], first))

    def convert(self, values: Sequence[Any]) -> Batch:
        misfits = {place: "negative" for place, value in enumerate(values) if value < 0}
        return Batch(pa.table({"value": [value for value in values if value >= 0]}), misfits)

    def write(self, tables: Sequence[pa.Table]) -> None:
        self.threads.add(threading.current_thread().name)
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is full")
        self.batches.append([value for table in tables for value in table.column("value").to_pylist()])

    def write_without_rows(self) -> None:
        """Nobody reads columns here."""

    def interrupt(self) -> None:
        raise AssertionError("nothing was under way")


class Blocking(Notebook):
    """A write takes until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()
        self.released = threading.Event()
        self.interrupted = False

    def write(self, tables: Sequence[pa.Table]) -> None:
        self.began.set()
        assert self.released.wait(60)
        super().write(tables)

    def interrupt(self) -> None:
        self.interrupted = True
        self.released.set()


class Sink(DataFrameSink):
    """Writes to a notebook."""

    def __init__(self, notebook: SparkWriter, **arguments: Any) -> None:
        super().__init__("out", **arguments)
        self._notebook = notebook

    def _writer(self) -> SparkWriter:
        return self._notebook


def written(values: Any, notebook: Notebook, parallelism: int = 1, **arguments: Any) -> Topology:
    topology = Topology("written", message_timeout=4.0)
    stream = topology.spout("values", values, outputs=int)
    topology.bolt("write", Sink(notebook, **arguments), stream.shuffle(), parallelism=parallelism)
    return topology


def assert_its_thread_ends() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("write[0]"):
            thread.join(60)
            assert not thread.is_alive()


@simulated
async def test_full_batches_and_the_rest() -> None:
    """So many rows at a time, the last ones when no more can come; all are acked, without waiting."""
    notebook = Notebook()
    running = await run_to_end(written(range(25), notebook, rows=10))
    assert notebook.batches == [list(range(10)), list(range(10, 20)), list(range(20, 25))]
    assert running.statistics().components["values"].acked == 25
    assert now() < 1


@simulated
async def test_what_waits_long_enough_is_written() -> None:
    """A batch is written when its first row is so many seconds old, and no row times out before."""
    notebook = Notebook()
    topology = Topology("waiting", message_timeout=4.0)
    stream = topology.spout("values", outputs=int)
    topology.bolt("write", Sink(notebook, rows=10, seconds=30.0), stream.shuffle())

    async def keep_open(value: int) -> None:
        await asyncio.sleep(100)  # so that there is no flush

    topology.bolt("busy", keep_open, topology.spout("other", [1]).shuffle())
    async with topology.run() as running:
        await (await running.emit(stream, 1))
        assert now() == 30
    assert notebook.batches == [[1]]


@simulated
async def test_a_failed_write_fails_the_batch() -> None:
    """All of its rows come again, and are acked when they are written."""
    notebook = Notebook(failures=1)
    running = await run_to_end(written(range(3), notebook, rows=3))
    assert sorted(value for batch in notebook.batches for value in batch) == [0, 1, 2]
    values = running.statistics().components["values"]
    assert (values.failed, values.acked) == (3, 3)


@simulated
async def test_a_failed_write_can_stop_the_topology() -> None:
    """For rows that belong to no message, such as sums that ``finish`` emits: nobody would replay them."""

    class Sums(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            pass

        def finish(self, out: Collector[int]) -> None:
            out.emit(5)

    topology = Topology("sums")
    sums = topology.bolt("sums", Sums, topology.spout("values", [1]).shuffle())
    topology.bolt("write", Sink(Notebook(failures=1)), sums.shuffle(), on_error="stop")
    with pytest.raises(TopologyCrashed, match="the disk is full"):
        await run_to_end(topology)


@simulated
async def test_rows_that_do_not_fit_are_rejected() -> None:
    """They become dead letters without a replay, and the others of their batch are acked."""
    letters: list[DeadLetter] = []
    running = await run_to_end(written([1, -2, 3], Notebook(), rows=3), dead_letters=letters.append)
    (letter,) = letters
    assert (letter.value, letter.attempts, letter.failure.reason) == (-2, 1, "negative")
    assert running.statistics().components["values"].acked == 2


@simulated
async def test_one_task_begins() -> None:
    """Each task has a writer and knows its inputs; the first one sees to what is there already."""
    notebook = Notebook()
    await run_to_end(written([], notebook, parallelism=3))
    assert notebook.opened == [(["int"], True), (["int"], False), (["int"], False)]


@simulated
async def test_a_task_that_is_restarted_does_not_begin_again() -> None:
    """Otherwise ``mode="overwrite"`` would replace what was written before the task died."""
    notebook = Notebook()
    async with written([1, 2], notebook).run() as running:
        await running.finished()
        running.kill("write")
        await asyncio.sleep(1.0)
    assert notebook.opened == [(["int"], True), (["int"], False)]


@simulated
async def test_columns_that_cannot_be_written_fail_the_start() -> None:
    """The component is named, and no thread stays."""

    class Broken(Notebook):
        def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
            raise InvalidTopology("no such column")

    with pytest.raises(StartFailed, match=r"did not start: write\[0\]: no such column"):
        await run_to_end(written([1], Broken()))
    assert_its_thread_ends()


@simulated
async def test_without_ackers_it_refuses_to_start() -> None:
    """Rows would count as done before they are written (law L9)."""
    topology = written([1], Notebook())
    with pytest.raises(InvalidTopology, match="lives by acks and cannot run with ackers=0"):
        await run_to_end(topology, ackers=0)


@pytest.mark.asyncio
async def test_nothing_is_acked_before_it_is_written() -> None:
    """While a write is under way in its thread, its rows are pending and the loop goes on."""
    notebook = Blocking()
    async with written([1, 2], notebook, rows=2).run() as running:
        assert await asyncio.to_thread(notebook.began.wait, 10)
        assert running.statistics().components["values"].pending == 2
        notebook.released.set()
        await running.finished()
    assert running.statistics().components["values"].acked == 2
    assert notebook.threads == {"write[0]_0"}


class Gated(Notebook):
    """Each write takes until it is let through."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Semaphore(0)
        self.let_through = threading.Semaphore(0)

    def write(self, tables: Sequence[pa.Table]) -> None:
        self.begun.release()
        assert self.let_through.acquire(timeout=60)
        super().write(tables)


@pytest.mark.asyncio
async def test_rows_that_come_during_a_write_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are a portion. The first writes have one, as nobody knows how large one is; the next has all that came."""
    notebook, note, noted = Gated(), Portions._note, list[Portion]()

    def count(self: Portions, portion: Portion) -> None:
        note(self, portion)
        noted.append(portion)

    monkeypatch.setattr(Portions, "_note", count)
    async with written(range(9), notebook, rows=2).run() as running:
        assert await asyncio.to_thread(notebook.begun.acquire, timeout=60)
        notebook.let_through.release()
        assert await asyncio.to_thread(notebook.begun.acquire, timeout=60)
        await until(lambda: len(noted) == 4)
        notebook.let_through.release(3)
        await running.finished()
    assert notebook.batches == [[0, 1], [2, 3], [4, 5, 6, 7], [8]]
    assert running.statistics().components["values"].acked == 9


@simulated
async def test_a_record_batch_counts_as_its_rows() -> None:
    """And anything else as one."""
    notebook = Notebook()
    sink = Sink(notebook)()
    await sink.prepare(TaskContext("test", "write", 3, 0, 1, Configuration()))
    values = [pa.RecordBatch.from_pydict({"a": rows}) for rows in ([1, 2, 3], [])]
    assert [sink.weight(value) for value in (*values, [1, 2], "words")] == [3, 0, 1, 1]
    await sink.cleanup()  # type: ignore[misc]


@pytest.mark.asyncio
async def test_a_write_under_way_is_interrupted() -> None:
    """An exception in the block ends the topology without the write, and its thread."""
    notebook = Blocking()
    run = written([1, 2], notebook, rows=2).run()

    async def leave() -> None:
        async with run:
            await asyncio.to_thread(notebook.began.wait, 10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await leave()
    assert notebook.interrupted
    assert_its_thread_ends()


@pytest.mark.asyncio
async def test_its_thread_ends_with_it() -> None:
    """Nothing of it is left when the block is."""
    notebook = Notebook()
    await run_to_end(written([1], notebook))
    assert notebook.threads
    assert_its_thread_ends()


@simulated
async def test_a_source_may_have_as_many_rows_pending_as_a_sink_gathers() -> None:
    """Those of a write, of the next one, and of a portion that fills, though the default would not let so many come."""
    notebook = Notebook()
    await run_to_end(written(range(6000), notebook, rows=3000))
    assert [len(batch) for batch in notebook.batches] == [3000, 3000]
    description, components = (
        written([], notebook, rows=3000).describe().configured(Topology("defaults").configuration, "here")
    )
    assert components["values"].max_spout_pending == 99_000
    assert description.spouts["values"].options == {"max_spout_pending": 99_000}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "DataFrameSink needs a path or a table=, and not both"),
        ({"path": "out", "table": "words"}, "needs a path or a table=, and not both"),
        (
            {"path": "out", "mode": "ignore"},
            "mode must be one of 'append', 'overwrite', 'error', not 'ignore'",
        ),
        ({"path": "out", "rows": 0}, "rows must be an int of at least 1, not 0"),
        ({"path": "out", "rows": "5"}, "rows must be an int of at least 1, not '5'"),
        ({"path": "out", "rows": True}, "rows must be an int of at least 1, not True"),
        ({"path": "out", "seconds": 0}, "seconds must be a finite number above 0, not 0"),
        ({"path": "out", "seconds": None}, "seconds must be a finite number above 0, not None"),
        ({"path": "out", "seconds": math.nan}, "seconds must be a finite number above 0, not nan"),
        ({"path": "out", "seconds": math.inf}, "seconds must be a finite number above 0, not inf"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], message: str) -> None:
    """They are refused where they are written."""
    with pytest.raises(InvalidConfiguration, match=message):
        DataFrameSink(**arguments)


@simulated
async def test_rows_written_are_counted() -> None:
    """By the sink itself, as some of those that it acks or fails are not written."""
    topology = Topology("counted")
    values = topology.spout("values", [1, 2, -3, 4])
    topology.bolt("write", Sink(Notebook(), rows=2), values.shuffle(), parallelism=2)
    running = await run_to_end(topology)
    assert running.statistics().components["write"].progress == Progress(3, None, "rows written")


@pytest.mark.parametrize(("mode", "refused"), [("append", False), ("overwrite", True)])
def test_a_source_that_resumes(mode: str, refused: bool) -> None:
    """A second run would replace what the first one has written, and would not write it again."""

    class Resuming(Counting):
        resumes = True

    topology = Topology("resuming")
    topology.bolt("write", Sink(Notebook(), mode=mode), topology.spout("values", Resuming).shuffle())
    said = "bolt 'write' keeps state, .* would replace what earlier runs have written, so use mode=\"append\""
    with pytest.raises(InvalidTopology, match=said) if refused else nullcontext():
        topology.run().close()


def test_a_source_without_epochs() -> None:
    """The refusal names the sources of the bridge that have epochs, and the option to leave out."""
    topology = Topology("exactly")
    values = topology.spout("values", Counting)
    topology.bolt("write", DataFrameSink("out", exactly_once=True), values.shuffle())
    with pytest.raises(
        InvalidTopology, match=r"set state= .*use DataFrameSpout\(.*\) or, .*stream\(\.\.\.\), or leave"
    ):
        topology.run()


def test_check_refuses_a_source_without_epochs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the topology has a state, any source does."""
    code = """
from stormlet import Topology
from stormlet.spark import DataFrameSink
topology = Topology("exactly", state={state!r})
sink = DataFrameSink("out", exactly_once=True)
topology.bolt("write", sink, topology.spout("values", [1]).shuffle())
"""
    for name, state, exit_code in (("without.py", None, 2), ("with.py", "some.state", 0)):
        file = tmp_path / name
        file.write_text(code.format(state=state), "utf-8")
        assert main(["check", str(file)]) == exit_code
    assert "would be others in the next run; set state= on the topology" in capsys.readouterr().err


class Total(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Nothing to see."""

    def finish(self, out: Collector[int]) -> None:
        out.emit(1)
        out.emit(-1)


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("on_error", ["fail", "stop"])
async def test_rows_of_no_message_that_do_not_fit(on_error: Any, caplog: pytest.LogCaptureFixture) -> None:
    """As they would be nobody's dead letter, they are an exception; what fits is written, once."""
    notebook = Notebook()
    topology = Topology("totals")
    totals = topology.bolt("total", Total, topology.spout("values", [1]).shuffle())
    topology.bolt("write", Sink(notebook), totals.shuffle(), on_error=on_error)
    said = "rows that belong to no message do not fit their columns, the first of 1: negative"
    with pytest.raises(TopologyCrashed, match=said) if on_error == "stop" else nullcontext():
        await run_to_end(topology)
    assert notebook.batches == [[1]]
    if on_error == "fail":
        assert said in caplog.text


@pytest.mark.parametrize(("on_error", "found"), [("fail", ["unowned output"]), ("stop", [])])
def test_check_knows_what_belongs_to_no_message(on_error: Any, found: list[str]) -> None:
    """What ``finish`` emits into a sink is lost when a write fails, unless that stops the topology."""
    topology = Topology("totals")
    totals = topology.bolt("total", Total, topology.spout("values", [1]).shuffle())
    topology.bolt("write", DataFrameSink("out"), totals.shuffle(), on_error=on_error)
    description, _ = topology.describe().configured(topology.configuration, "here")
    assert [each.rule for each in findings(description)] == found


def test_a_path_may_be_a_path() -> None:
    """And a sink is a bolt for any stream."""
    topology = Topology("paths")
    topology.bolt("write", DataFrameSink(Path("out")), topology.spout("values").shuffle())
    topology.bolt("other", ignore, topology.spout("more").shuffle())
    topology.describe()
