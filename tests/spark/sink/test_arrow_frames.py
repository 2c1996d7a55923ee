"""The DataFrame that a table of a sink becomes, with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from stormlet.spark.sink.arrow_frames import THRESHOLD, frame_of

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
    frame = frame_of(spark, TABLE, SCHEMA).coalesce(1)
    frame.explain()
    plan = capsys.readouterr().out
    assert ("ExistingRDD" in plan, "LocalTableScan" in plan) == (True, False)
    assert [row["number"] for row in frame.collect()] == list(range(100))
    assert spark.conf.get(THRESHOLD, None) == setting


def test_sinks_in_many_threads_restore_the_setting(spark: SparkSession, setting: str | None) -> None:
    """None of them takes that of another for the user's; an error restores it, too."""
    with ThreadPoolExecutor(8) as threads:
        frames = [
            threads.submit(frame_of, spark, TABLE if turn % 4 else object(), SCHEMA) for turn in range(40)
        ]
    assert sum(frame.exception() is not None for frame in frames) == 10
    assert spark.conf.get(THRESHOLD, None) == setting
