"""Exactly once, whenever the process is killed: a short form of ``python -m tests.spark.kills``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.killed_epochs import STATE
from tests.spark.kills import Kills, differences, epochs_in_state, make_orders, run_with_kills

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.mark.untraced
@pytest.mark.timeout(900)  # three JVMs start, one after the other
@pytest.mark.parametrize(
    "kills",
    [
        Kills(seed=3, soon=True),
        Kills(seed=3, soon=True, arguments=(STATE,), epochs_done=epochs_in_state),
    ],
    ids=["by a checkpoint", "by the state"],
)
def test_kills_leave_each_row_once(spark: SparkSession, tmp_path: Path, kills: Kills) -> None:
    """Killed twice at random moments and started again, the sinks are as Spark SQL says, row for row, and every
    rejected row is among the dead letters; a comparison that rows too many or too few do not pass."""
    make_orders(spark, tmp_path, 400)
    run_with_kills(tmp_path, kills, 2)
    assert list(differences(spark, tmp_path)) == []
    assert kills.total == 2
    (epoch,) = tmp_path.glob("out/sums/source=*/epoch=1")
    again = epoch.with_name("epoch=99")
    shutil.copytree(epoch, again)
    assert [found for found in differences(spark, tmp_path) if "rows too many" in found]
    shutil.rmtree(again)
    shutil.rmtree(epoch)
    assert [found for found in differences(spark, tmp_path) if "rows missing" in found]


@pytest.mark.untraced
@pytest.mark.timeout(900)  # a JVM for each life
@pytest.mark.usefixtures("spark")
def test_kills_at_named_points_leave_each_row_of_a_dataframe_once_in_keyed_state() -> None:
    """A short form of ``python -m tests.epochs.kills dataframe --kills 60``: state, table, sink and dead letters."""
    command = [sys.executable, "-m", "tests.epochs.kills", "dataframe", "--kills", "3", "--seed", "5"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("3 kills")
