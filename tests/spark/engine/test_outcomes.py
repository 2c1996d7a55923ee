"""The outcomes of all messages of a batch, and its dead letters, as DataFrames."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import Topology
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.spark import BatchResult, DataFrameSpout, run_on_spark
from stormlet.spark.engine.batch import outcomes
from stormlet.spark.engine.batch.outcomes import component_of
from stormlet.testing import complete
from tests.spark.engine import flows
from tests.spark.engine.flows import Number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = [Number(n) for n in range(10)]
COLUMNS = {
    "spout": "string",
    "partition": "int",
    "row": "bigint",
    "status": "string",
    "attempts": "int",
    "component": "string",
    "reason": "string",
}


def outcomes_of(result: BatchResult) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, result.outcomes.orderBy("spout", "partition", "row").collect()), key=str)


@pytest.mark.parametrize("flow", [flows.fails, flows.joined])
def test_every_outcome_is_that_of_this_process(
    spark: SparkSession, flow: Callable[[Iterable[Number]], Topology]
) -> None:
    """Of messages that were acked at once, after replays, or given up; each for itself, or joined with another."""
    result, there = run_on_spark(flow(NUMBERS), spark), complete(flow(NUMBERS))
    assert {
        (row["row"], row["status"] == "acked", row["attempts"], row["component"])
        for row in result.outcomes.collect()
    } == {
        (
            NUMBERS.index(each.value),  # type: ignore[arg-type]
            each.acked,
            each.attempts,
            None if each.failure is None else each.failure.component,
        )
        for each in there.outcomes
    }
    assert result.outcomes.count() == len(NUMBERS)
    assert {each.attempts for each in there.outcomes} >= {1, 3}
    assert {each.acked for each in there.outcomes} == {True, False}


def test_the_columns_are_typed(spark: SparkSession) -> None:
    """And the reasons are those of the dead letters."""
    topology, _ = flows.doubles([Number(n) for n in range(5, 9)], logic=flows.double)
    result = run_on_spark(topology, spark)
    assert dict(result.outcomes.dtypes) == COLUMNS
    assert outcomes_of(result) == [
        ("numbers", None, 0, "acked", 1, None, None),
        ("numbers", None, 1, "acked", 1, None, None),
        ("numbers", None, 2, "dead letter", 1, "double", "Reject('7 ends in seven')"),
        ("numbers", None, 3, "acked", 1, None, None),
    ]


def test_rows_of_a_dataframe_have_their_places(spark: SparkSession) -> None:
    """Those of the origins of dead letters."""
    frame = spark.range(0, 20, 1, 4).withColumnRenamed("id", "n")
    topology, _ = flows.doubles(DataFrameSpout(frame, as_=Number))
    result = run_on_spark(topology, spark)
    found = outcomes_of(result)
    assert [each[1:3] for each in found] == [(partition, row) for partition in range(4) for row in range(5)]
    lost: list[Any] = [letter.origin for letter in result.dead_letters]
    assert [each[1:3] for each in found if each[3] != "acked"] == [
        (each.partition, each.row) for each in lost
    ]


def test_every_message_has_one_row(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many chunks and spans they are."""
    monkeypatch.setattr(outcomes, "SPAN", 700)
    topology, _ = flows.doubles([Number(10 * n) for n in range(4321)])
    rows = [row["row"] for row in run_on_spark(topology, spark).outcomes.select("row").collect()]
    assert sorted(rows) == [*range(4321)]


def test_sources_without_a_message(spark: SparkSession) -> None:
    """All stages run; outcomes and dead letters have the same columns as ever, and no rows."""
    frame = spark.range(0, 0, 1, 2).withColumnRenamed("id", "n")
    for source in ([], DataFrameSpout(frame, as_=Number), DataFrameSpout(frame.repartition(3), as_=Number)):
        topology, _ = flows.doubles(source)
        result = run_on_spark(topology, spark)
        assert (result.outcomes.count(), dict(result.outcomes.dtypes)) == (0, COLUMNS)
        assert result.dead_letter_frame.count() == 0


def test_no_job_runs_before_the_outcomes_are_used(spark: SparkSession) -> None:
    """To look at a result costs nothing."""
    topology, _ = flows.doubles(NUMBERS)
    result = run_on_spark(topology, spark)
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup())
    frames = result.outcomes, result.dead_letter_frame
    assert len(tracker.getJobIdsForGroup()) == before
    assert [each.count() for each in frames] == [10, 1]
    assert len(tracker.getJobIdsForGroup()) > before


def test_dead_letters_have_the_columns_of_their_file(spark: SparkSession, tmp_path: Path) -> None:
    """And its values; times differ."""
    topology, _ = flows.doubles([Number(n) for n in range(20)], logic=flows.unlucky)
    result = run_on_spark(topology, spark, dead_letters=tmp_path / "letters.jsonl")
    (line,) = map(json.loads, (tmp_path / "letters.jsonl").read_text().splitlines())
    (row,) = (each.asDict() for each in result.dead_letter_frame.collect())
    assert [*row] == [*line]
    for name in ("value", "message_id", "origin"):
        row[name] = json.loads(row[name])
    assert {**row, "time": None} == {**line, "time": None}
    assert dict(result.dead_letter_frame.dtypes)["time"] == "timestamp"


def test_the_component_of_a_timeout_is_that_which_held_it() -> None:
    """None has failed it."""
    held = Failure(FailureKind.TIMEOUT, holders=("one", "two"))
    assert component_of(held) == "one, two"
    assert component_of(Failure(FailureKind.TIMEOUT)) is None
