"""As :mod:`tests.spark.kills`, with a stream: ``python -m tests.spark.stream_kills FOLDER --kills 25 --seed 1``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stormlet.spark import spark_session
from tests.spark.killed_epochs import REJECTS
from tests.spark.kills import Kills, differences, letters, run_with_kills

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = "tests.spark.killed_stream"
ROWS_PER_FILE = 40


def batches_committed(folder: Path) -> int:
    """How many batches Spark has noted to be done."""
    return max((int(path.name) for path in folder.glob("checkpoint/commits/[0-9]*")), default=-1) + 1


def stream_kills(seed: int) -> Kills:
    """Kills of a stream, none yet."""
    return Kills(seed, CHILD, epochs_done=batches_committed)


def make_files(spark: SparkSession, folder: Path, rows: int, where: str = "true") -> None:
    """The orders, and the files in which the stream gets them."""
    spark.range(0, rows, 1, 3).where(where).write.mode("overwrite").parquet(str(folder / "orders"))
    ids = sorted(row["id"] for row in spark.read.parquet(str(folder / "orders")).collect())
    for name in ("waiting", "input"):
        (folder / name).mkdir()
    for first in range(0, len(ids), ROWS_PER_FILE):
        lines = (f'{{"id": {number}}}\n' for number in ids[first : first + ROWS_PER_FILE])
        (folder / "waiting" / f"{first:06}.json").write_text("".join(lines))


def main() -> None:
    """Run after run, each with files of its own, until there were enough kills: half of them or more with dead
    letters, and then with batches that are given back, where no row may be rejected for ever."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=26)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    spark, kills, runs = spark_session("local[2]"), stream_kills(options.seed), 0
    while kills.total < options.kills:
        runs += 1
        folder, half = options.folder / f"run{runs}", (options.kills + 1) // 2
        if kills.total < half:
            make_files(spark, folder, options.rows)
            run_with_kills(folder, kills, half)
        else:
            kills.arguments = ("fail_batch",)
            make_files(spark, folder, options.rows, f"NOT ({REJECTS})")
            run_with_kills(folder, kills, options.kills)
        found = list(differences(spark, folder))
        twice = len(letters(folder)) - len(set(letters(folder)))
        print(f"run {runs}: {kills}; {twice} dead letters twice; {found or 'equal to Spark SQL'}", flush=True)
        if found:
            sys.exit(1)
    spark.stop()


if __name__ == "__main__":
    main()
