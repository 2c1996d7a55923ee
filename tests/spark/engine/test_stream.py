"""Streams on Spark: an epoch for each micro-batch, whose states and outputs count once."""

from __future__ import annotations

import asyncio
import shutil
import sys
from concurrent.futures import Future
from pathlib import Path
from threading import Event
from threading import enumerate as enumerate_threads
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import DeadLetter, InvalidTopology, StartFailed, Topology
from stormlet.spark import DataFrameSink, Origin, RestartPolicy, SparkFailed, stream, stream_on_spark
from tests.helpers import run_to_end
from tests.spark.engine.streams import (
    Count,
    CountByKey,
    Locked,
    Log,
    MakesLocks,
    Word,
    counting,
    expected,
    totals,
    words_of,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = (["a", "b", "a", "c"], ["b", "a"], ["c", "d", "d"])


class Interrupted(Event):
    """Has a Ctrl-C come while the main thread waits."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a moment."""
        super().wait(0.1)
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def log() -> None:
    Log.lines = []


def run(topology: Any, **options: Any) -> Any:
    """Run until its data has ended."""
    run = stream_on_spark(topology, **{"dead_letters": lambda letter: None, **options})
    assert run.wait(120)
    return run


def test_counts_go_on_from_epoch_to_epoch(spark: SparkSession, tmp_path: Path) -> None:
    """Each epoch has processes of its own."""
    write(tmp_path / "in", *FILES)
    done = run(counting(spark, tmp_path))
    assert totals(spark, tmp_path) == expected(*FILES)
    assert (done.epoch, done.messages, done.acked) == (2, 9, 9)
    assert done.statistics.components["count"].acked == 9


def test_counts_go_on_in_another_run(spark: SparkSession, tmp_path: Path) -> None:
    """The state is in the checkpoint."""
    for number, file in enumerate(FILES):
        write(tmp_path / "in", file)
        assert run(counting(spark, tmp_path)).epoch == number
    assert totals(spark, tmp_path) == expected(*FILES)


def test_a_bolt_in_the_driver_keeps_its_state(spark: SparkSession, tmp_path: Path) -> None:
    """As any other."""
    for file in FILES:
        write(tmp_path / "in", file)
        run(counting(spark, tmp_path))
    assert [number for number, _, _ in Log.lines] == [*range(1, 10)]


def test_a_row_that_is_given_up_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    """Its origin has the epoch."""
    write(tmp_path / "in", ["a", "bad one"], ["b", "bad two"])
    letters: list[DeadLetter] = []
    done = run(counting(spark, tmp_path), dead_letters=letters.append)
    assert [each.value.word for each in letters] == ["bad one", "bad two"]
    assert [each.origin for each in letters] == [Origin(0, 1, 0), Origin(0, 1, 1)]
    assert (done.messages, done.acked) == (4, 2)


def test_a_row_that_fails_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing of that epoch is written."""
    write(tmp_path / "in", ["a"], ["bad"])
    topology = counting(spark, tmp_path, on_failure="fail_batch", restarts=RestartPolicy(1, 60.0))
    with pytest.raises(SparkFailed, match=r"1 message was given up in epoch 1.*bad is bad"):
        run(topology)
    assert totals(spark, tmp_path) == expected("a")


def test_dead_letters_need_a_place(spark: SparkSession, tmp_path: Path) -> None:
    """Else they would be lost with the process."""
    write(tmp_path / "in", ["a"])
    with pytest.raises(InvalidTopology, match="dead_letters="):
        stream_on_spark(counting(spark, tmp_path))


def test_another_number_of_tasks_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Each state belongs to one task."""
    write(tmp_path / "in", ["a"])
    run(counting(spark, tmp_path))
    with pytest.raises(InvalidTopology, match=r"written with 3 tasks of bolt 'count'.*set parallelism=3"):
        run(counting(spark, tmp_path, tasks=4))


def test_a_checkpoint_of_a_run_in_process_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """It has no states."""
    write(tmp_path / "in", ["a"])
    run(counting(spark, tmp_path))
    shutil.rmtree(tmp_path / "checkpoint" / "stormlet")
    write(tmp_path / "in", ["b"])
    with pytest.raises(SparkFailed, match="goes on with epoch 1, and there is no epoch here yet"):
        run(counting(spark, tmp_path, restarts=RestartPolicy(0)))


@pytest.mark.asyncio
async def test_a_run_in_process_leaves_the_checkpoint_alone(spark: SparkSession, tmp_path: Path) -> None:
    """It would be done with batches that no state has seen. On Spark the stream goes on."""
    write(tmp_path / "in", ["a"])
    await asyncio.to_thread(run, counting(spark, tmp_path))
    before = contents(tmp_path / "checkpoint")
    write(tmp_path / "in", ["b"])
    with pytest.raises(StartFailed, match=r"is one of a stream on Spark.*a checkpoint of its own"):
        await run_to_end(counting(spark, tmp_path), dead_letters=tmp_path / "letters.jsonl")
    assert contents(tmp_path / "checkpoint") == before
    await asyncio.to_thread(run, counting(spark, tmp_path))
    assert totals(spark, tmp_path) == expected(["a"], ["b"])


def contents(folder: Path) -> dict[Path, bytes]:
    """The files below it."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_state_that_cannot_be_saved_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """With the way out."""
    write(tmp_path / "in", ["a"])
    with pytest.raises(SparkFailed, match=r"the state of count raised.*'lock'.*make it in prepare"):
        run(counting(spark, tmp_path, count=Locked, restarts=RestartPolicy(0)))


def test_only_the_last_epoch_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """Those before it are of no use any more."""
    write(tmp_path / "in", *FILES)
    run(counting(spark, tmp_path))
    assert [each.name for each in (tmp_path / "checkpoint" / "stormlet").iterdir()] == ["2"]


def test_a_stream_that_waits_can_be_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """The end of the block does so."""
    write(tmp_path / "in", *FILES)
    topology = counting(spark, tmp_path, trigger={"processingTime": "0 seconds"})
    with stream_on_spark(topology, dead_letters=lambda letter: None) as running:
        while running.epoch != 2:
            assert not running.wait(0.1)
    assert running.wait(0)
    assert totals(spark, tmp_path) == expected(*FILES)


@pytest.mark.parametrize("exactly_once", [True, False])
def test_an_epoch_that_was_interrupted_comes_again(
    spark: SparkSession, tmp_path: Path, *, exactly_once: bool
) -> None:
    """As after a kill before its record: the state counts once, a sink has its rows once or at least once, and dead
    letters and the driver's bolts are given theirs again."""
    write(tmp_path / "in", ["a", "bad", "a"])
    letters: list[DeadLetter] = []
    run(counting(spark, tmp_path, exactly_once=exactly_once), dead_letters=letters.append)
    forget(tmp_path / "checkpoint" / "commits", "0")
    forget(tmp_path / "checkpoint" / "stormlet" / "0", "done.json")
    write(tmp_path / "in", ["a"])
    done = run(counting(spark, tmp_path, exactly_once=exactly_once), dead_letters=letters.append)
    assert done.epoch == 1
    assert totals(spark, tmp_path) == sorted([*expected("aaa"), *([] if exactly_once else expected("aa"))])
    assert [each.origin for each in letters] == [Origin(0, 1, 0)] * 2
    assert [number for number, _, _ in Log.lines] == [1, 2, 1, 2, 3]


def test_an_epoch_with_a_record_does_not_come_again(spark: SparkSession, tmp_path: Path) -> None:
    """As after a kill between its record and Spark's note: Spark gives it again, and it is left alone."""
    write(tmp_path / "in", ["a", "bad"])
    letters: list[DeadLetter] = []
    run(counting(spark, tmp_path, exactly_once=False), dead_letters=letters.append)
    forget(tmp_path / "checkpoint" / "commits", "0")
    again = run(counting(spark, tmp_path, exactly_once=False), dead_letters=letters.append)
    assert (again.epoch, again.messages, len(letters)) == (0, 0, 1)
    assert totals(spark, tmp_path) == expected("a")


def forget(folder: Path, name: str) -> None:
    """Remove a file and its checksum."""
    (folder / name).unlink()
    (folder / f".{name}.crc").unlink(missing_ok=True)


def test_a_bolt_that_cannot_be_saved_starts_no_query(spark: SparkSession, tmp_path: Path) -> None:
    """Its constructor has made what cannot be pickled."""
    write(tmp_path / "in", ["a"])
    with pytest.raises(InvalidTopology, match="the constructor of bolt 'count' makes 'locks'"):
        run(counting(spark, tmp_path, count=MakesLocks))
    assert not (tmp_path / "checkpoint").exists()


def test_a_sink_that_can_take_no_row_starts_no_query(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would refuse each of its writes, for the format has no such columns."""
    topology = Topology("lists")
    words = topology.spout("words", outputs=Word)
    sink = DataFrameSink(tmp_path / "out", format="csv", schema="word array<string>")
    topology.bolt("write", sink, words.shuffle())
    write(tmp_path / "in", ["a"])
    stream(
        words_of(spark, tmp_path / "in"),
        topology,
        into=words,
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
    )
    with pytest.raises(InvalidTopology, match=r"bolt 'write': csv at .* doesn't support the column `word`"):
        stream_on_spark(topology, dead_letters=tmp_path / "letters")
    assert not (tmp_path / "checkpoint").exists()


def test_the_sink_of_dead_letters_may_stop_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Its epoch is finished before."""
    write(tmp_path / "in", ["bad"], ["a"])
    runs: Future[Any] = Future()
    topology = counting(spark, tmp_path, trigger={"processingTime": "0 seconds"})
    runs.set_result(stream_on_spark(topology, dead_letters=lambda letter: runs.result(60).stop()))
    assert runs.result().wait(60)
    assert runs.result().epoch == 0


def test_an_exit_in_an_epoch_fails_it(spark: SparkSession, tmp_path: Path) -> None:
    """Else Spark would wait for its verdict for ever."""
    write(tmp_path / "in", ["bad"])
    topology = counting(spark, tmp_path, restarts=RestartPolicy(0))
    with pytest.raises(SparkFailed, match=r"epoch 0 raised SystemExit\(3\)"):
        run(topology, dead_letters=lambda letter: sys.exit(3))


@pytest.mark.parametrize("keeps_sum", [True, False])
def test_a_record_that_is_damaged_is_refused(spark: SparkSession, tmp_path: Path, *, keeps_sum: bool) -> None:
    """With the way out, be it by its checksum or by its content."""
    write(tmp_path / "in", ["a"])
    run(counting(spark, tmp_path))
    done = tmp_path / "checkpoint" / "stormlet" / "0" / "done.json"
    done.write_text('{"epoch":')
    if not keeps_sum:
        done.with_name(".done.json.crc").unlink()
    with pytest.raises(
        InvalidTopology, match=r"record of epoch 0 cannot be read.*begin with another checkpoint"
    ):
        run(counting(spark, tmp_path))


@pytest.mark.parametrize("keyed", [False, True])
def test_rows_that_are_cut_or_missing_are_refused(
    spark: SparkSession, tmp_path: Path, *, keyed: bool
) -> None:
    """At the start, by the name of the file and with the way out."""
    count = CountByKey if keyed else Count
    write(tmp_path / "in", ["a"])
    run(counting(spark, tmp_path, count=count))
    rows = tmp_path / "checkpoint" / "stormlet" / "0" / "rows"
    file = sorted((rows / "part=run" if keyed else rows).glob("*.parquet"))[0]
    content = file.read_bytes()
    file.write_bytes(content[:-4])
    fault = f"{file.name} has {len(content) - 4:,} bytes, and epoch 0 has written {len(content):,}; bring back what"
    with pytest.raises(InvalidTopology, match=fault):
        run(counting(spark, tmp_path, count=count))
    file.unlink()
    with pytest.raises(
        InvalidTopology, match=f"{file.name} is missing, and has rows of epoch 0; bring it back"
    ):
        run(counting(spark, tmp_path, count=count))


def test_rows_that_cannot_be_read_are_named(spark: SparkSession, tmp_path: Path) -> None:
    """A file of the right length that was damaged: when Spark reads it, with the way out."""
    write(tmp_path / "in", ["a"])
    run(counting(spark, tmp_path, count=CountByKey))
    write(tmp_path / "in", ["a"], ["b"])
    (file,) = (tmp_path / "checkpoint" / "stormlet" / "0" / "rows" / "part=groups").glob("*.parquet")
    content = file.read_bytes()
    file.write_bytes(content[:40] + bytes(60) + content[100:])
    wanted = rf"checkpoint .* cannot be read: .*{file.name}.*; bring that file back, or begin with another checkpoint"
    with pytest.raises(SparkFailed, match=wanted):
        run(counting(spark, tmp_path, count=CountByKey, restarts=RestartPolicy(most=0, within=1.0)))


def test_a_checkpoint_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads brackets as a choice of characters."""
    write(tmp_path / "in", ["a"], ["a"])
    assert run(counting(spark, tmp_path, checkpoint=tmp_path / "of {a} [1]")).epoch == 1
    assert totals(spark, tmp_path) == expected(["a", "a"])


def test_a_start_that_is_interrupted_leaves_no_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would have the run to stop it."""
    write(tmp_path / "in", ["a"])
    topology = counting(spark, tmp_path, trigger={"processingTime": "0 seconds"})
    monkeypatch.setattr("stormlet.spark.engine.stream.stream.Event", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        stream_on_spark(topology, dead_letters=lambda letter: None)
    thread = next(each for each in enumerate_threads() if each.name == "stormlet counting: words")
    thread.join(60)
    assert not thread.is_alive()
    assert not spark.streams.active


def test_a_checkpoint_that_was_removed_without_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    """They would be there twice: the first epoch says so, before anything is run."""
    write(tmp_path / "in", ["a"])
    run(counting(spark, tmp_path))
    run(counting(spark, tmp_path))
    shutil.rmtree(tmp_path / "checkpoint")
    Log.lines = []
    once = RestartPolicy(most=0, within=1.0)
    with pytest.raises(
        SparkFailed, match=r"bolt 'write': .*source=query-.* has rows of query-.*, written by the"
    ):
        run(counting(spark, tmp_path, restarts=once))
    assert not Log.lines
    assert totals(spark, tmp_path) == expected(["a"])


def test_an_empty_micro_batch_is_an_epoch(spark: SparkSession, tmp_path: Path) -> None:
    """Spark does not leave out its stages."""
    write(tmp_path / "in", ["a"], [], ["a"])
    assert run(counting(spark, tmp_path)).epoch == 2
    assert totals(spark, tmp_path) == expected(["a", "a"])


def test_states_of_another_query_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Where Spark's own files are gone, its numbers begin anew, and an epoch would be left out as done."""
    write(tmp_path / "in", ["a"])
    run(counting(spark, tmp_path))
    for each in (tmp_path / "checkpoint").iterdir():
        if each.name.startswith(("metadata", ".metadata")):
            each.unlink()
        elif each.name != "stormlet":
            shutil.rmtree(each)
    with pytest.raises(SparkFailed, match=r"the states of another query.*begin with another checkpoint"):
        run(counting(spark, tmp_path, restarts=RestartPolicy(0)))
