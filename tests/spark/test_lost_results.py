"""A result that Spark really loses on its way: it is stolen from the block manager, where large results wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import Topology, TopologyCrashed
from stormlet.spark import DataFrameSpout, pulling
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.asyncio

ROWS, PARTITIONS = 60_000, 30
"""Of each partition the result is too large to come directly (1 MiB), and the session allows it (2 MiB). There are many
of them, as a thief may come too late."""


class Thief:
    """Takes results away before they are fetched, of tasks from ``first`` on. It may come too late."""

    def __init__(self, spark: SparkSession, first: int) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._tasks = context._jsc.sc().taskScheduler()
        # Py4J cannot ask SparkEnv for it: that has methods with classes that are not there.
        manager = self._jvm.java.lang.Class.forName("org.apache.spark.SparkEnv").getDeclaredField(
            "blockManager"
        )
        manager.setAccessible(True)
        self._blocks = manager.get(context._jsc.sc().env())
        self._first = self._tasks.nextTaskId() + first

    def steal(self, is_enough: Callable[[], object]) -> None:
        while not is_enough():
            next_one = self._tasks.nextTaskId()
            for task in range(max(self._first, next_one - 2), next_one):
                block = self._jvm.org.apache.spark.storage.TaskResultBlockId(task)
                if self._blocks.getStatus(block).isDefined():
                    self._blocks.removeBlock(block, True)
                    self._first = task + 1


@contextmanager
def stealing(spark: SparkSession, first: int, is_enough: Callable[[], object]) -> Iterator[None]:
    thief, over = Thief(spark, first), threading.Event()
    thread = threading.Thread(target=thief.steal, args=(lambda: over.is_set() or is_enough(),))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Rows whose bytes cannot be compressed much."""
    return spark.range(0, ROWS, 1, PARTITIONS).selectExpr(
        "id", "concat_ws('', transform(sequence(1, 11), n -> sha2(concat(id, n), 256))) AS bytes"
    )


def topology_of(frame: DataFrame, take: Callable[[Any], object], **options: Any) -> Topology:
    topology = Topology("lost")
    rows = topology.spout("rows", DataFrameSpout(frame, **options))
    topology.bolt("take", take, rows.shuffle())
    return topology


@pytest.mark.parametrize("order_by", [(), ("id",)])
async def test_a_stolen_result_is_read_again(
    spark: SparkSession, frame: DataFrame, caplog: pytest.LogCaptureFixture, order_by: tuple[str, ...]
) -> None:
    """In the middle of reading: every row comes once, and in order; the log says what was lost."""
    seen: list[int] = []
    with caplog.at_level(logging.WARNING, "stormlet.spark"), stealing(spark, 2, lambda: caplog.records):
        await run_to_end(topology_of(frame, lambda row: seen.append(row[0]), order_by=order_by))
    assert seen == list(range(ROWS))
    said = [record.getMessage() for record in caplog.records]
    assert said
    assert all("lost: rows: a result was lost and is read again in " in each for each in said)
    assert all("TaskResultLost (result lost from block manager)" in each for each in said)


async def test_too_many_losses_end_it(
    spark: SparkSession, frame: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is lost too often, the topology crashes with Spark's error as the cause."""
    monkeypatch.setattr("stormlet.spark.chunks.RETRIES", pulling.Retries(0))
    with stealing(spark, 0, lambda: False), pytest.raises(TopologyCrashed) as caught:
        await run_to_end(topology_of(frame, lambda row: None))
    assert "lost 1 times in a row" in str(caught.value.__cause__)
    assert caught.value.__cause__ is not None
    assert "TaskResultLost" in str(caught.value.__cause__.__cause__)
