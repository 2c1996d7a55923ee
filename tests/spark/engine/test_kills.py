"""Streams and batches are right whenever the process is killed: short forms of ``python -m tests.spark.engine.kills``
and of ``batch_kills`` beside it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.engine import batch_kills
from tests.spark.engine.batch_kills import BatchKills
from tests.spark.engine.kills import DISTINCT, counting_kills, differences, make_words
from tests.spark.kills import run_with_kills

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.untraced
@pytest.mark.timeout(900)  # three JVMs start, one after the other
def test_kills_leave_each_count_once(spark: SparkSession, tmp_path: Path) -> None:
    """Killed twice at random moments and started again, the stream has written each count of each word once, and every
    rejected row is among the dead letters; counts and letters of an epoch that are lost show."""
    words = make_words(tmp_path, 1, 6)
    kills = counting_kills(3, soon=True)
    run_with_kills(tmp_path, kills, 2)
    assert list(differences(spark, tmp_path, words)) == []
    assert kills.total == 2
    (epoch,) = tmp_path.glob("out/counts/source=*/epoch=1")
    shutil.rmtree(epoch)
    letters = tmp_path / "letters.jsonl"
    letters.write_text("".join(letters.read_text().splitlines(keepends=True)[-3:]))
    found = list(differences(spark, tmp_path, words))
    assert [each.partition(" ")[0] for each in found] == ["counts:", "dead"]


@pytest.mark.untraced
@pytest.mark.timeout(900)  # three JVMs start, one after the other
def test_kills_leave_each_count_of_a_key_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also where most key groups are those of earlier epochs, and where a process has another number of tasks than the
    one before, so that all of them move."""
    words = make_words(tmp_path, 2, 6, distinct=DISTINCT)
    kills = counting_kills(5, soon=True, keyed=True)
    run_with_kills(tmp_path, kills, 2)
    assert list(differences(spark, tmp_path, words)) == []
    assert kills.total == 2
    assert (tmp_path / "lives.txt").read_text().split() == ["1", "2", "3"]


@pytest.mark.untraced
@pytest.mark.timeout(900)  # three JVMs start, one after the other
def test_kills_leave_no_sink_that_only_looks_whole(tmp_path: Path) -> None:
    """Killed twice while it writes and started again, a batch has written both sinks once; rows that are missing show,
    and a sink that is not whole."""
    for seed in range(3, 7):  # a batch may be done before it is killed
        folder = tmp_path / str(seed)
        folder.mkdir()
        kills = BatchKills(seed, soon=True)
        run_with_kills(folder, kills, 2)
        assert list(batch_kills.differences(folder, kills)) == []
        if kills.total == 2:
            break
    assert kills.total == 2
    next((folder / "out" / "parts" / "key=7").glob("*.parquet")).unlink()
    (folder / "out" / "totals" / "_SUCCESS").unlink()
    found = list(batch_kills.differences(folder, kills))
    assert [each.split(" ")[0] for each in found] == ["parts", "totals"]
