"""Keyed state in streams on Spark: it goes on from epoch to epoch, and to other tasks."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import DeadLetter, InvalidTopology, Topology
from stormlet.errors import SparkFailed
from stormlet.spark import RestartPolicy, stream_on_spark
from stormlet.spark.engine.stream.checkpoint import Checkpoint
from stormlet.state.sqlite.file import StateFile
from stormlet.testing import complete
from tests.spark.engine.streams import (
    Count,
    CountByKey,
    Log,
    SumByKey,
    Word,
    counting,
    expected,
    totals,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = (["a", "b", "a", "c"], ["b", "bad", "a"], ["c", "d", "d", "bad"])


@pytest.fixture(autouse=True)
def log() -> None:
    Log.lines = []


def run(spark: SparkSession, folder: Path, **options: Any) -> Any:
    """Run until its data has ended."""
    initial = options.pop("initial_state", None)
    letters: list[DeadLetter] = []
    topology = counting(spark, folder, **{"count": CountByKey, **options})
    run = stream_on_spark(topology, dead_letters=letters.append, initial_state=initial)
    assert run.wait(120)
    return run


def test_counts_go_on_with_other_numbers_of_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """A word goes to the task that its grouping names; one that is given up is not in the state."""
    for tasks, file in zip((3, 5, 1), FILES, strict=True):
        write(tmp_path / "in", file)
        done = run(spark, tmp_path, tasks=tasks)
    assert totals(spark, tmp_path) == expected(*FILES)
    assert done.state("count") == {"a": 3, "b": 2, "c": 2, "d": 2}
    assert [number for number, _, _ in Log.lines] == [*range(1, 10)]


def test_the_first_epoch_begins_with_the_state_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    """Later ones do not, nor another run; and what the last one has left goes on in process."""
    here, there = tmp_path / "here.state", tmp_path / "there.state"
    complete(in_process(["a", "b", "e"]), state=here)
    for file in FILES[:2]:
        write(tmp_path / "in", file)
        done = run(spark, tmp_path, initial_state=here)
    counts = Counter(["a", "b", "e", *FILES[0], *FILES[1]])
    del counts["bad"]
    assert done.state("count") == counts
    done.save_state(there)
    complete(in_process(["a", "z"]), state=there)
    with closing(StateFile(there)) as store:
        assert store.load().epoch == 2
    again = tmp_path / "again"
    again.mkdir()
    write(again / "in", ["q"])
    assert run(spark, again, initial_state=there).state("count") == counts + Counter(["a", "z", "q"])


def in_process(words: list[str]) -> Topology:
    """The same bolt below a list."""
    topology = Topology("counting")
    topology.bolt(
        "count", CountByKey, topology.spout("words", [*map(Word, words)], outputs=Word).fields("word")
    )
    return topology


def test_a_state_that_is_not_declared_any_more_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Before the query starts; one that is new begins empty."""
    write(tmp_path / "in", ["a"])
    run(spark, tmp_path)
    write(tmp_path / "in", ["a"])
    assert run(spark, tmp_path, count=SumByKey).state("count", "total") == {"a": 2}
    with pytest.raises(InvalidTopology, match=r"checkpoint .*state 'count\.sums' belongs to no bolt"):
        run(spark, tmp_path)


def test_a_keyed_bolt_that_was_an_ordinary_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Its attributes would be lost."""
    write(tmp_path / "in", ["a"])
    run(spark, tmp_path, count=Count)
    with pytest.raises(InvalidTopology, match="has the state of bolt 'count', which is not there any more"):
        run(spark, tmp_path)


def test_the_state_of_a_stream_that_runs_is_not_to_be_had(spark: SparkSession, tmp_path: Path) -> None:
    """The next epoch may be changing it."""
    write(tmp_path / "in", ["a"])
    topology = counting(spark, tmp_path, count=CountByKey, trigger=None)
    with stream_on_spark(topology, dead_letters=lambda letter: None) as running:
        with pytest.raises(RuntimeError, match=r"call stop\(\) first"):
            running.state("count")
        while running.epoch is None:
            running.wait(0.1)
    assert running.state("count") == {"a": 1}


def folders(folder: Path) -> dict[str, set[str]]:
    """What is left of each epoch: its files with groups, and others."""
    kept = (folder / "checkpoint" / "stormlet").iterdir()
    return {each.name: {_kind(file) for file in each.rglob("*") if _kind(file)} for each in kept}


def _kind(file: Path) -> str:
    return file.parent.name if file.suffix == ".parquet" else file.name if file.suffix == ".json" else ""


WHOLE = {"part=run", "part=groups", "done.json"}
BARE = {"part=groups"}


def test_an_epoch_writes_the_groups_that_have_changed(spark: SparkSession, tmp_path: Path) -> None:
    """Of an earlier one that has others only these stay; when all have changed since, nothing."""
    write(tmp_path / "in", ["a", "b", "c"])
    run(spark, tmp_path)
    write(tmp_path / "in", ["b"])
    done = run(spark, tmp_path)
    assert done.state("count") == {"a": 1, "b": 2, "c": 1}
    assert folders(tmp_path) == {"0": BARE, "1": WHOLE}
    write(tmp_path / "in", ["a", "c"])
    assert run(spark, tmp_path).state("count") == {"a": 2, "b": 2, "c": 2}
    assert folders(tmp_path) == {"1": BARE, "2": WHOLE}
    write(tmp_path / "in", ["bad"])
    assert run(spark, tmp_path).state("count") == {"a": 2, "b": 2, "c": 2}
    assert folders(tmp_path) == {"1": BARE, "2": BARE, "3": WHOLE - BARE}


def two_epochs(spark: SparkSession, folder: Path) -> Path:
    """A stream whose last epoch refers to a group of the first; return the file with that."""
    for words in ("ab", "b"):
        write(folder / "in", words)
        run(spark, folder, tasks=1)
    write(folder / "in", ["a"])
    (file,) = (folder / "checkpoint" / "stormlet" / "0").rglob("*.parquet")
    return file


def test_a_file_with_groups_that_is_missing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """By name, before the query starts; brought back, it goes on."""
    file = two_epochs(spark, tmp_path)
    file.rename(tmp_path / "elsewhere")
    with pytest.raises(
        InvalidTopology, match=rf"{file.name} is missing, and has keyed state of epoch 0; bring it"
    ):
        run(spark, tmp_path, tasks=1)
    (tmp_path / "elsewhere").rename(file)
    assert run(spark, tmp_path, tasks=1).state("count") == {"a": 2, "b": 2}


def test_a_file_with_groups_of_another_epoch_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Under a name of its own, or under that of one that was there."""
    file = two_epochs(spark, tmp_path)
    (other,) = (tmp_path / "checkpoint" / "stormlet" / "1").rglob("part=groups/*.parquet")
    foreign = file.with_name("part-foreign.parquet")
    foreign.write_bytes(other.read_bytes())
    with pytest.raises(
        InvalidTopology, match=r"part-foreign\.parquet is none of the files that epoch 0 has written"
    ):
        run(spark, tmp_path, tasks=1)
    foreign.unlink()
    file.write_bytes(other.read_bytes() + b" ")
    file.with_name(f".{file.name}.crc").unlink()
    with pytest.raises(
        InvalidTopology, match=rf"{file.name} has [\d,]+ bytes, and epoch 0 has written [\d,]+"
    ):
        run(spark, tmp_path, tasks=1)


def test_a_kill_before_old_groups_are_removed_leaves_them_to_the_next_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is what counts."""
    write(tmp_path / "in", ["a", "b"])
    run(spark, tmp_path)
    write(tmp_path / "in", ["a"])
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "_strip", _killed)
        with pytest.raises(SparkFailed, match="killed"):
            run(spark, tmp_path, restarts=RestartPolicy(0))
    assert folders(tmp_path) == {"0": WHOLE, "1": WHOLE}
    assert run(spark, tmp_path).state("count") == {"a": 2, "b": 1}
    write(tmp_path / "in", ["a"])
    assert run(spark, tmp_path).state("count") == {"a": 3, "b": 1}
    assert folders(tmp_path) == {"0": BARE, "2": WHOLE}
    assert totals(spark, tmp_path) == expected("aab", "a")


def _killed(checkpoint: Checkpoint, name: str) -> None:
    raise SparkFailed("killed")
