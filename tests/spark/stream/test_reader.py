"""The spout of a stream whose rows are done one by one, its query and its restarts; a fake stands for Spark."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from stormlet import (
    BatchBolt,
    Collector,
    DeadLetter,
    Reject,
    Spout,
    SpoutCollector,
    StartFailed,
    TopologyCrashed,
    Tuple,
)
from stormlet.core.outcomes import TupleFailed
from stormlet.core.retries import RestartPolicy
from stormlet.errors import SparkFailed
from stormlet.spark.stream.query import SessionGone
from tests.cast import ignore
from tests.helpers import leave_by, now, run_to_end
from tests.spark.stream_kit import FakeSpark, fed_by

pytestmark = pytest.mark.simulated_time

LETTERS: dict[str, Any] = {"dead_letters": lambda letter: None}
"""For runs in which none is expected, or none is of interest."""


async def test_batches_come_one_after_another() -> None:
    """A batch is done before the next one comes, and each row of it is acked before it is done."""
    spark = FakeSpark(range(10), range(10, 15))
    topology, rows = fed_by(spark)

    async def note(row: int) -> None:
        await asyncio.sleep(0.001)
        spark.journal.append(row)

    topology.bolt("note", note, rows.shuffle())
    await run_to_end(topology, **LETTERS)
    assert spark.journal == [
        *("start", "batch 0", *range(10), "done 0"),
        *("batch 1", *range(10, 15), "done 1"),
        "stop",
    ]


async def test_a_row_says_where_it_comes_from() -> None:
    """The origin of a tuple has the batch, the partition and the row."""
    spark = FakeSpark([], range(6))
    topology, rows = fed_by(spark)
    origins: list[Any] = []

    class Look(BatchBolt[int, None]):
        def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
            origins.extend(tup.origin for tup in tups)

    topology.bolt("look", Look, rows.shuffle())
    await run_to_end(topology, **LETTERS)
    places = [(origin.epoch, origin.partition, origin.row) for origin in origins]
    assert places == [(1, 0, 0), (1, 0, 1), (1, 0, 2), (1, 0, 3), (1, 1, 0), (1, 1, 1)]


async def test_sinks_are_flushed_at_the_end_of_a_batch() -> None:
    """A bolt that collects more rows than there are does not hold up the batch (law B8)."""
    spark = FakeSpark(range(10), range(10, 15), endless=True)
    topology, rows = fed_by(spark, message_timeout=None)

    class Collect(BatchBolt[int, None]):
        size = 1000
        within = 1e6

        def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
            spark.journal.append(len(tups))

    topology.bolt("collect", Collect, rows.shuffle())
    async with topology.run(**LETTERS):
        await asyncio.sleep(1.0)
        assert spark.journal == ["start", "batch 0", 10, "done 0", "batch 1", 5, "done 1"]


async def test_another_busy_spout_does_not_hold_up_a_batch() -> None:
    """A batch waits for its own rows only."""

    class Busy(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            await asyncio.sleep(0.01)
            out.emit(-1, message_id=-1)

    spark = FakeSpark(range(10), range(10, 15), endless=True)
    topology, rows = fed_by(spark)
    topology.bolt("ignore", ignore, rows.shuffle(), topology.spout("busy", Busy).shuffle())
    async with topology.run(**LETTERS):
        await asyncio.sleep(2.0)
        assert spark.committed == 1


async def test_a_waiting_stream_hears_of_messages_of_the_host() -> None:
    """Between two batches the host may emit, too, and what comes afterwards is not lost."""
    spark = FakeSpark(range(3))
    spark.start_seconds = 0.0
    spark.errors[0] = [RuntimeError("a second that nothing happens in")]
    seen: list[int] = []
    topology, rows = fed_by(spark, policy=RestartPolicy(first_pause=1.0))
    topology.bolt("see", seen.append, rows.shuffle())
    async with topology.run(**LETTERS) as running:
        await asyncio.sleep(0.5)
        await (await running.emit(rows, 99))
        assert spark.committed == -1
        await running.finished()
    assert seen == [99, 0, 1, 2]


# Rows that fail.


class Fails:
    """A bolt's function that fails a row so many times."""

    def __init__(self, row: int, times: int, error: type[Exception] = ValueError) -> None:
        self.row = row
        self.times = times
        self.error = error
        self.seen: list[int] = []

    def __call__(self, row: int) -> None:
        if row == self.row and self.times:
            self.times -= 1
            raise self.error("not now")
        self.seen.append(row)


async def test_a_row_is_replayed_within_its_batch() -> None:
    """The batch waits for a row that succeeds in the end, and nothing else is repeated."""
    spark = FakeSpark(range(4), [4])
    fails = Fails(2, times=3)
    topology, rows = fed_by(spark)
    topology.bolt("fail", fails, rows.shuffle())
    await run_to_end(topology, **LETTERS)
    assert fails.seen == [0, 1, 3, 2, 4]


async def test_a_row_given_up_is_a_dead_letter_before_its_batch_is_done() -> None:
    """The batch ends with the dead letter handed over and synced."""
    spark = FakeSpark(range(4), [4])
    fails = Fails(2, times=100)
    topology, rows = fed_by(spark, max_attempts=2)
    topology.bolt("fail", fails, rows.shuffle())

    async def keep(letter: DeadLetter) -> None:
        await asyncio.sleep(1.0)
        spark.journal.append((letter.value, letter.attempts))

    await run_to_end(topology, dead_letters=keep)
    assert spark.journal == ["start", "batch 0", (2, 2), "done 0", "batch 1", "done 1", "stop"]
    assert fails.seen == [0, 1, 3, 4]


async def test_dead_letters_need_a_place() -> None:
    """Without a target they would die with the process, while Spark would not give their rows again."""
    topology, _ = fed_by(FakeSpark())
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology)
    assert "run with dead_letters=..., or say on_failure" in str(caught.value.__cause__)


async def test_a_row_given_up_may_fail_its_batch(caplog: pytest.LogCaptureFixture) -> None:
    """The query is started again with the same batch; there is no dead letter, and the log says what failed."""
    spark = FakeSpark(range(4), [4])
    fails = Fails(2, times=1, error=Reject)
    topology, rows = fed_by(spark, "fail_batch")
    topology.bolt("fail", fails, rows.shuffle())
    with caplog.at_level(logging.WARNING, "stormlet.spark"):
        running = await run_to_end(topology)
    assert spark.journal == [
        "start",
        "batch 0",
        "failed 0",
        "start",
        "batch 0",
        "done 0",
        "batch 1",
        "done 1",
        "stop",
    ]
    assert fails.seen == [0, 1, 3, 0, 1, 2, 3, 4]
    assert running.statistics().components["rows"].dead_letters == 0
    (record,) = (record for record in caplog.records if record.name.startswith("stormlet.spark"))
    assert record.getMessage() == (
        "streamed: rows: batch 0: row 2 of partition 0 failed in fail[0]: Reject('not now'); the query is "
        "started again in 0.1 s"
    )


async def test_a_failed_batch_emits_no_more(caplog: pytest.LogCaptureFixture) -> None:
    """Rows that were not emitted when the batch failed are not, before it comes again."""
    spark = FakeSpark(range(1000))
    fails = Fails(0, times=1, error=Reject)
    topology, rows = fed_by(spark, "fail_batch", max_spout_pending=10)

    async def slowly(row: int) -> None:
        fails(row)
        await asyncio.sleep(0.01)

    topology.bolt("fail", slowly, rows.shuffle())
    await run_to_end(topology)
    assert fails.seen.index(0) <= 30


async def test_the_topology_crashes_when_no_restart_is_left() -> None:
    """A batch that fails again and again ends the run, with the bolt's exception as the last cause."""
    spark = FakeSpark(range(4))
    topology, rows = fed_by(spark, "fail_batch", RestartPolicy(most=2))
    topology.bolt("fail", Fails(2, times=100, error=Reject), rows.shuffle())
    with pytest.raises(TopologyCrashed) as caught:
        await run_to_end(topology)
    given_up = caught.value.__cause__
    assert isinstance(given_up, SparkFailed)
    assert str(given_up).endswith("Reject('not now'); no restart is left of 2 restarts within 60 s")
    assert isinstance(given_up.__cause__, SparkFailed)
    assert isinstance(given_up.__cause__.__cause__, Reject)
    assert spark.journal == [*("start", "batch 0", "failed 0") * 3, "stop"]


async def test_a_failure_without_exception_is_a_cause_too() -> None:
    """A timeout is told as what an awaited tree would have raised."""
    spark = FakeSpark([0])
    topology, rows = fed_by(spark, "fail_batch", RestartPolicy(most=0), message_timeout=1.0, max_attempts=1)

    async def hang(row: int) -> None:
        await asyncio.sleep(5.0)

    topology.bolt("hang", hang, rows.shuffle())
    with pytest.raises(TopologyCrashed) as caught:
        await run_to_end(topology)
    cause = caught.value.__cause__
    assert cause is not None
    assert cause.__cause__ is not None
    assert isinstance(cause.__cause__.__cause__, TupleFailed)


# Queries that fail.


async def test_failures_far_apart_are_always_followed_by_a_restart() -> None:
    """The policy counts within a sliding window, and pauses grow within it only."""
    spark = FakeSpark()
    spark.errors = {run: [RuntimeError("gone")] for run in range(5)}
    spark.error_after = 11.0
    policy = RestartPolicy(most=1, within=10.0)
    topology, _ = fed_by(spark, policy=policy)
    await run_to_end(topology, **LETTERS)
    assert spark.journal == [*["start"] * 6, "stop"]


async def test_a_query_that_fails_is_started_again_with_growing_pauses() -> None:
    """An error of the source, or of the next start, costs no row."""
    spark = FakeSpark(range(3))
    spark.errors[0] = [RuntimeError("the source is away")]
    seen: list[int] = []
    topology, rows = fed_by(spark)
    topology.bolt("see", seen.append, rows.shuffle())
    async with topology.run(**LETTERS) as running:
        spark.unstartable = [RuntimeError("still away")]
        await running.finished()
        assert now() == pytest.approx(0.1 + 0.2 + 0.05, abs=0.05)
    assert seen == [0, 1, 2]


async def test_each_run_is_told_of_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    """What a run fails with is not said to be the failure of the batch of the run before."""
    spark = FakeSpark(range(3))
    spark.errors[1] = [RuntimeError("the source is away")]
    topology, rows = fed_by(spark, "fail_batch")
    topology.bolt("fail", Fails(2, times=1, error=Reject), rows.shuffle())
    with caplog.at_level(logging.WARNING, "stormlet.spark"):
        await run_to_end(topology)
    restarts = [record.getMessage() for record in caplog.records if record.name.startswith("stormlet.spark")]
    assert ["Reject" in restarts[0], restarts[1]] == [
        True,
        "the source is away; the query is started again in 0.2 s",
    ]


async def test_a_batch_that_cannot_be_read_comes_again() -> None:
    """What was read of it is settled first, and Spark's error is in the log."""
    spark = FakeSpark(range(8))
    spark.unreadable = [SparkFailed("fake: an executor is out of memory")]
    seen: list[int] = []
    topology, rows = fed_by(spark)
    topology.bolt("see", seen.append, rows.shuffle())
    await run_to_end(topology, **LETTERS)
    assert seen == [0, 1, 2, 3, *range(8)]
    assert spark.journal[:5] == ["start", "batch 0", "failed 0", "start", "batch 0"]


async def test_a_session_that_is_gone_is_not_waited_for() -> None:
    """Nothing could be started there, so the topology crashes at once."""
    spark = FakeSpark()
    spark.errors[0] = [SessionGone("the Spark session was stopped")]
    topology, _ = fed_by(spark)
    with pytest.raises(TopologyCrashed) as caught:
        await run_to_end(topology, **LETTERS)
    assert isinstance(caught.value.__cause__, SessionGone)
    assert spark.journal == ["start", "stop"]


async def test_a_query_that_cannot_start_fails_the_start() -> None:
    """The first start is not tried again: most likely it is a mistake."""
    spark = FakeSpark()
    spark.unstartable = [error := RuntimeError("no such topic")]
    topology, _ = fed_by(spark)
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology, **LETTERS)
    assert caught.value.__cause__ is error


# Stopping.


async def test_a_batch_that_was_read_is_finished_when_the_topology_drains() -> None:
    """Its rows are processed, and Spark notes it before the query is stopped."""
    spark = FakeSpark(range(10), range(10, 15))
    seen: list[int] = []
    topology, rows = fed_by(spark)

    async def slowly(row: int) -> None:
        await asyncio.sleep(0.1)
        seen.append(row)

    topology.bolt("slowly", slowly, rows.shuffle())
    async with topology.run(**LETTERS):
        await asyncio.sleep(0.5)
    assert seen == list(range(10))
    assert spark.journal == ["start", "batch 0", "done 0", "batch 1", "failed 1", "stop"]


@pytest.mark.parametrize(("late", "end"), [(50, "done 0"), (10_000, "failed 0")])
async def test_a_batch_whose_end_is_not_known_yet(late: int, end: str) -> None:
    """If all rows were read when the topology drains, Spark is given a moment to say that there are no more."""
    spark = FakeSpark(range(10))
    spark.late = late
    topology, rows = fed_by(spark)
    topology.bolt("ignore", ignore, rows.shuffle())
    async with topology.run(**LETTERS):
        await asyncio.sleep(0.01)
    assert spark.journal == ["start", "batch 0", end, "stop"]


async def test_spark_may_note_what_was_done_last() -> None:
    """The query is not stopped while Spark is about to write that a batch is done."""
    spark = FakeSpark([0], endless=True)
    topology, rows = fed_by(spark)
    topology.bolt("ignore", ignore, rows.shuffle())
    async with topology.run(**LETTERS):
        await asyncio.sleep(0.02)
        assert spark.runs[0].done == [0]
        assert spark.committed == -1
    assert spark.journal == ["start", "batch 0", "done 0", "stop"]


async def test_a_batch_that_was_read_in_part_comes_again(caplog: pytest.LogCaptureFixture) -> None:
    """A drain takes no more rows, so the batch is not done."""
    spark = FakeSpark(range(100))
    topology, rows = fed_by(spark, max_spout_pending=5)

    async def slowly(row: int) -> None:
        await asyncio.sleep(0.1)

    topology.bolt("slowly", slowly, rows.shuffle())
    async with topology.run(**LETTERS):
        await asyncio.sleep(1.0)
    assert spark.journal == ["start", "batch 0", "failed 0", "stop"]
    assert spark.runs[0]._running.done()
    left = "streamed: rows: the run ends within batch 0, which comes again in the next one"
    assert [record.getMessage() for record in caplog.records] == [left]


async def test_rows_left_over_are_not_done() -> None:
    """What has no outcome at the drain's deadline comes again in the next run."""
    spark = FakeSpark([0])
    topology, rows = fed_by(spark, drain_timeout=1.0)

    async def hang(row: int) -> None:
        await asyncio.sleep(1e6)

    topology.bolt("hang", hang, rows.shuffle())
    async with topology.run(**LETTERS):
        await asyncio.sleep(1.0)
    assert spark.journal == ["start", "batch 0", "failed 0", "stop"]


async def test_leaving_by_an_exception_stops_the_query() -> None:
    """The exception comes out, the batch is not done, and the query has ended."""
    spark = FakeSpark(range(1000))
    topology, rows = fed_by(spark)

    async def slowly(row: int) -> None:
        await asyncio.sleep(0.1)

    topology.bolt("slowly", slowly, rows.shuffle())
    with pytest.raises(KeyError):
        await leave_by(KeyError("mine"), topology, **LETTERS)
    assert spark.journal == ["start", "batch 0", "failed 0", "stop"]


async def test_a_crash_stops_the_query() -> None:
    """A topology that crashes elsewhere leaves no query behind."""
    spark = FakeSpark(range(1000), endless=True)
    topology, rows = fed_by(spark)

    class Crashes(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            await asyncio.sleep(1.0)
            raise OSError("elsewhere")

    async def slowly(row: int) -> None:
        await asyncio.sleep(0.1)

    topology.bolt("slowly", slowly, rows.shuffle())
    topology.spout("crashes", Crashes)
    with pytest.raises(TopologyCrashed, match="elsewhere"):
        await run_to_end(topology, **LETTERS)
    assert spark.journal == ["start", "batch 0", "failed 0", "stop"]


async def test_a_stop_during_the_pause_before_a_restart() -> None:
    """The pause ends, and the query is not started again."""
    spark = FakeSpark()
    spark.errors[0] = [RuntimeError("the source is away")]
    topology, _ = fed_by(spark, policy=RestartPolicy(first_pause=1000.0, longest_pause=1000.0))
    async with topology.run(**LETTERS):
        await asyncio.sleep(1.0)
    assert now() < 10.0
    assert spark.journal == ["start", "stop"]


async def test_a_start_that_is_cancelled_leaves_no_query() -> None:
    """A query that starts although nobody waits for it any more is stopped."""
    spark = FakeSpark(range(3), endless=True)
    spark.start_seconds = 10.0
    topology, _ = fed_by(spark)

    async def run() -> None:
        async with topology.run(**LETTERS):
            pytest.fail("it has not started")

    starting = asyncio.create_task(run())
    await asyncio.sleep(1.0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert spark.runs[0]._running.done()


async def test_a_query_that_is_stopped_elsewhere_ends_the_spout() -> None:
    """The batch under way is finished, and then a finite run has finished."""
    spark = FakeSpark(range(10), range(10, 15), endless=True)
    seen: list[int] = []
    topology, rows = fed_by(spark)

    async def slowly(row: int) -> None:
        await asyncio.sleep(0.1)
        seen.append(row)

    topology.bolt("slowly", slowly, rows.shuffle())
    async with topology.run(**LETTERS) as running:
        await asyncio.sleep(0.5)
        await spark.runs[0].stop()
        await running.finished()
    assert seen == list(range(10))
