"""A result that Spark really loses on its way: it is stolen from the block manager, where large results wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import Topology, TopologyCrashed
from stormlet.spark import DataFrameSpout
from stormlet.spark.source.puller import Retries
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.asyncio

ROWS, PARTITIONS = 60_000, 30
"""Of each partition the result is too large to come directly (1 MiB), and the session allows it (2 MiB)."""


class Thief:
    """Takes results out of the block manager, where they wait to be fetched; meanwhile it holds up those who fetch."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._tasks = context._jsc.sc().taskScheduler()
        # Py4J cannot ask SparkEnv for it: that has methods with classes that are not there.
        self._blocks = self._field_of(context._jsc.sc().env(), "org.apache.spark.SparkEnv", "blockManager")
        getter = self._tasks.taskResultGetter()
        threads = self._field_of(
            getter, "org.apache.spark.scheduler.TaskResultGetter", "getTaskResultExecutor"
        )
        threads.prestartAllCoreThreads()
        self._lock = self._field_of(
            threads.getQueue(), "java.util.concurrent.LinkedBlockingQueue", "takeLock"
        )
        self._first = self._tasks.nextTaskId()

    def _field_of(self, owner: Any, class_name: str, field_name: str) -> Any:
        field = self._jvm.java.lang.Class.forName(class_name).getDeclaredField(field_name)
        field.setAccessible(True)
        return field.get(owner)

    def steal_one(self, is_over: Callable[[], bool]) -> None:
        """Or none, if none comes in a second: where another job's result has come first, Spark's scheduler waits for
        the lock, too, and starts nothing more."""
        until = time.monotonic() + 1
        self._lock.lock()
        try:
            while not is_over() and not self._stole() and time.monotonic() < until:
                time.sleep(0.001)
        finally:
            self._lock.unlock()

    def _stole(self) -> bool:
        for task in range(self._first, self._tasks.nextTaskId()):
            block = self._jvm.org.apache.spark.storage.TaskResultBlockId(task)
            if self._blocks.getStatus(block).isDefined():
                self._blocks.removeBlock(block, True)
                self._first = task + 1
                return True
        return False


@contextmanager
def stealing(spark: SparkSession, wants_more: Callable[[], object]) -> Iterator[None]:
    """One result is lost whenever ``wants_more``. It asks again after a second, as a result that was being fetched when
    the thief came is not lost.
    """
    thief, over = Thief(spark), threading.Event()

    def run() -> None:
        while not over.is_set():
            if wants_more():
                thief.steal_one(over.is_set)
                over.wait(1)
            time.sleep(0.001)

    thread = threading.Thread(target=run)
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
    with (
        caplog.at_level(logging.WARNING, "stormlet.spark"),
        stealing(spark, lambda: seen and not caplog.records),
    ):
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
    monkeypatch.setattr("stormlet.spark.source.puller.RETRIES", Retries(0))
    with stealing(spark, lambda: True), pytest.raises(TopologyCrashed) as caught:
        await run_to_end(topology_of(frame, lambda row: None))
    assert "lost 1 times in a row" in str(caught.value.__cause__)
    assert caught.value.__cause__ is not None
    assert "TaskResultLost" in str(caught.value.__cause__.__cause__)
