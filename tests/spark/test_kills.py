"""Exactly once, whenever the process is killed: a short form of ``python -m tests.spark.kills``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.kills import Kills, differences, make_orders, run_with_kills

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.timeout(600)  # three JVMs start, one after the other
def test_kills_leave_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    """Killed twice at random moments and started again, the sinks are as Spark SQL says, row for row, and every
    rejected row is among the dead letters."""
    make_orders(spark, tmp_path, 300)
    kills = Kills(seed=3)
    run_with_kills(tmp_path, kills, 2)
    assert list(differences(spark, tmp_path)) == []
    assert kills.total == 2


@pytest.mark.parametrize("sink", ["lines", "sums"])
def test_the_comparison_can_fail(spark: SparkSession, tmp_path: Path, sink: str) -> None:
    """Rows that are missing, and rows that are there twice, are found."""
    make_orders(spark, tmp_path, 60)
    run_with_kills(tmp_path, Kills(seed=4), 0)
    assert list(differences(spark, tmp_path)) == []
    (epoch,) = (tmp_path / "out" / sink).glob("source=*/epoch=1")
    again = spark.read.parquet(str(epoch))
    again.write.mode("append").parquet(str(epoch.with_name("epoch=7")))
    (found,) = differences(spark, tmp_path)
    assert f"{sink}: {again.count()} rows too many" in found
