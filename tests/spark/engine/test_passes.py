"""Replays from the source: failed messages are emitted again, in another pass over all stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import BasicBolt, Collector, InvalidConfiguration, Topology, Tuple
from stormlet.spark import DataFrameSink, DataFrameSpout, run_on_spark
from stormlet.testing import complete
from tests.spark.engine import flows
from tests.spark.engine.flows import Number, Total

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = [Number(n) for n in range(10)]


class Sums(BasicBolt[Number, Total]):
    """Counts the attempts that come to it, and says so in the end."""

    def __init__(self) -> None:
        self.seen = dict[int, int]()

    def execute(self, tup: Tuple[Number], out: Collector[Total]) -> None:
        """Count one; those of three fail twice, and those of nine always."""
        number = tup.value.n
        self.seen[number] = self.seen.get(number, 0) + 1
        if (number == 3 and tup.attempt < 3) or number == 9:
            raise ValueError(f"attempt {tup.attempt}")

    def finish(self, out: Collector[Total]) -> None:
        """Emit the counts."""
        for number, count in sorted(self.seen.items()):
            out.emit(Total(str(number), count))


class Kept(BasicBolt[Number, Number]):
    """Hands everything on."""

    def execute(self, tup: Tuple[Number], out: Collector[Number]) -> None:
        """Emit it."""
        out.emit(tup.value)


def sums(numbers: Any) -> Topology:
    topology = Topology("sums", max_attempts=3, replay_delay=0)
    source = topology.spout("numbers", numbers, outputs=Number)
    kept = topology.bolt("kept", Kept, source.shuffle(), outputs=Number)
    topology.bolt("sums", Sums, kept.fields("n"), outputs=Total, parallelism=2)
    return topology


def outcomes(result: Any) -> set[tuple[Any, ...]]:
    return {
        (row["row"], row["status"] == "acked", row["attempts"], row["component"])
        for row in result.outcomes.collect()
    }


@pytest.mark.parametrize("flow", [flows.fails, flows.joined, sums])
def test_every_outcome_is_that_of_this_process(
    spark: SparkSession, flow: Callable[[Iterable[Number]], Topology]
) -> None:
    """With the same attempts."""
    result, there = run_on_spark(flow(NUMBERS), spark, replays="source"), complete(flow(NUMBERS))
    assert outcomes(result) == {
        (
            NUMBERS.index(each.value),  # type: ignore[arg-type]
            each.acked,
            each.attempts,
            None if each.failure is None else each.failure.component,
        )
        for each in there.outcomes
    }


def test_the_whole_tree_is_executed_again(spark: SparkSession) -> None:
    """So are bolts that had not failed, unlike in a replay by the stage; and states last from pass to pass."""
    counts = dict[str, dict[str, int]]()
    for replays in ("stage", "source"):
        result = run_on_spark(sums(NUMBERS), spark, streams=["sums"], replays=replays)  # type: ignore[arg-type]
        counts[replays] = {row["word"]: row["count"] for row in result.stream("sums").collect()}
        executed = result.statistics.components["kept"].executed
        assert executed == {"stage": 10, "source": 14}[replays]
    once = dict.fromkeys(map(str, range(10)), 1)
    assert counts["source"] == counts["stage"] == {**once, "3": 3, "9": 3}


def test_the_counts_of_spouts(spark: SparkSession) -> None:
    """A message counts once, and its replays are counted, too."""
    numbers = run_on_spark(sums(NUMBERS), spark, replays="source").statistics.components["numbers"]
    assert (numbers.messages, numbers.acked, numbers.dead_letters) == (10, 9, 1)
    assert (numbers.emitted, numbers.replayed, numbers.failed) == (14, 4, 5)


def test_rows_of_a_dataframe_are_replayed(spark: SparkSession) -> None:
    """Each from its partition."""
    frame = spark.range(0, 10, 1, 3).withColumnRenamed("id", "n")
    result = run_on_spark(sums(DataFrameSpout(frame, as_=Number)), spark, replays="source")
    (letter,) = result.dead_letters
    assert (letter.value, letter.attempts, len(letter.history)) == (Number(9), 3, 3)
    assert result.acked == 9


def test_sinks_have_the_rows_of_all_passes(spark: SparkSession, tmp_path: Path) -> None:
    """They are written once, after the last."""
    topology = Topology("sink", max_attempts=3, replay_delay=0)
    source = topology.spout("numbers", NUMBERS, outputs=Number)
    failing = topology.bolt("fails", flows.Fails, source.fields("n"), outputs=Number)
    topology.bolt("write", DataFrameSink(tmp_path / "out"), failing.shuffle())
    run_on_spark(topology, spark, replays="source", ledger="roots")
    written = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row["n"] for row in written) == [0, 1, 2]


def test_nothing_fails(spark: SparkSession) -> None:
    """Then the second pass is the last, for finish alone."""
    topology, totals = flows.word_count(["a b a"])
    result = run_on_spark(topology, spark, streams=[totals], replays="source")
    assert {row["word"]: row["count"] for row in result.stream(totals).collect()} == {"a": 2, "b": 1}
    assert result.acked == 1


def test_another_word_is_refused(spark: SparkSession) -> None:
    """There are two."""
    with pytest.raises(InvalidConfiguration, match='replays must be "stage" or "source", not \'spout\''):
        run_on_spark(sums(NUMBERS), spark, replays="spout")  # type: ignore[arg-type]
