"""The DataFrame that a table of a sink becomes, with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql.types import LongType, StringType, StructField, StructType

from stormlet.spark.sink import arrow_frames
from stormlet.spark.sink.arrow_frames import THRESHOLD, ArrowFrames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = StructType([StructField("number", LongType(), nullable=False)])
TABLE = pa.table({"number": range(100)}, schema=pa.schema([pa.field("number", pa.int64(), nullable=False)]))


@pytest.fixture(params=[None, "1MB"])
def setting(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The user's own, if there is one."""
    if request.param is not None:
        spark.conf.set(THRESHOLD, request.param)
    yield request.param
    spark.conf.unset(THRESHOLD)


def test_batches_are_read_by_the_tasks(
    spark: SparkSession, setting: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The driver makes no rows of them; one task has them all in their order, and the session is as it was."""
    frame = ArrowFrames(spark).of(TABLE, SCHEMA)
    frame.explain()
    plan = capsys.readouterr().out
    assert ("ExistingRDD" in plan, "LocalTableScan" in plan) == (True, False)
    assert frame.rdd.getNumPartitions() == 1
    assert [row["number"] for row in frame.collect()] == list(range(100))
    assert spark.conf.get(THRESHOLD, None) == setting


def test_a_frame_has_as_many_partitions_as_files(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its batches are, which are cut where they have too many bytes."""
    monkeypatch.setattr(arrow_frames, "MOST_BYTES", 200)
    frame = ArrowFrames(spark).of(TABLE, SCHEMA, 2)
    assert [len(part) for part in frame.rdd.glom().collect()] == [50, 50]


def test_other_forms_of_batches_are_left_to_spark(spark: SparkSession) -> None:
    """Texts are there as they were, and not as garbage."""
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        table = pa.table({"text": ["a", "bc", "def"]})
        frame = ArrowFrames(spark).of(table, StructType([StructField("text", StringType())]))
        assert [row["text"] for row in frame.collect()] == ["a", "bc", "def"]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


def test_a_frame_asks_the_jvm_seldom(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call waits for a loop that is busy; ``createDataFrame`` makes some forty."""
    frames, calls = ArrowFrames(spark), list[str]()
    send = ClientServerConnection.send_command

    def counted(connection: ClientServerConnection, command: str) -> str:
        calls.append(command)
        return send(connection, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    frames.of(TABLE, SCHEMA)
    assert len(calls) <= 6


def test_sinks_in_many_threads_restore_the_setting(spark: SparkSession, setting: str | None) -> None:
    """None of them takes that of another for the user's; an error restores it, too."""
    of, wrong = ArrowFrames(spark).of, pa.table({"other": ["x"]})
    with ThreadPoolExecutor(8) as threads:
        frames = [threads.submit(of, TABLE if turn % 4 else wrong, SCHEMA, turn % 4) for turn in range(40)]
    assert sum(frame.exception() is not None for frame in frames) == 10
    assert spark.conf.get(THRESHOLD, None) == setting
