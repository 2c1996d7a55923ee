"""Counts are right whenever the process is killed: a short form of ``python -m tests.spark.engine.kills``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.engine.kills import counting_kills, differences, make_words
from tests.spark.kills import run_with_kills

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.untraced
@pytest.mark.timeout(900)  # three JVMs start, one after the other
def test_kills_leave_each_count_once(spark: SparkSession, tmp_path: Path) -> None:
    """Killed twice at random moments and started again, the stream has written each count of each word once, and every
    rejected row is among the dead letters; an epoch that is lost shows."""
    words = make_words(tmp_path, 1, 6)
    kills = counting_kills(3, soon=True)
    run_with_kills(tmp_path, kills, 2)
    assert list(differences(spark, tmp_path, words)) == []
    assert kills.total == 2
    (epoch,) = tmp_path.glob("out/counts/source=*/epoch=1")
    shutil.rmtree(epoch)
    assert [found for found in differences(spark, tmp_path, words) if found.startswith("counts")]
