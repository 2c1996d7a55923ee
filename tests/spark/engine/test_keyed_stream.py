"""Keyed state in streams on Spark: it goes on from epoch to epoch, and to other tasks."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import DeadLetter, InvalidTopology, Topology
from stormlet.spark import stream_on_spark
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
