"""As :mod:`tests.spark.kills`, with a stream: ``python -m tests.spark.stream_kills FOLDER --kills 25 --seed 1``, and
with ``--state 1`` where its batches are epochs of a state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stormlet.spark import spark_session
from tests.spark.killed_epochs import REJECTS, STATE
from tests.spark.kills import Kills, differences, epochs_in_state, kill_on, read_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = "tests.spark.killed_stream"
ROWS_PER_FILE = 40
GIVEN_BACK = "fail_batch"


def batches_committed(folder: Path) -> int:
    """How many batches Spark has noted to be done."""
    return max((int(path.name) for path in folder.glob("checkpoint/commits/[0-9]*")), default=-1) + 1


def stream_kills(seed: int, *, with_state: bool = False) -> Kills:
    """Kills of a stream, none yet."""
    if with_state:
        return Kills(seed, CHILD, arguments=(STATE,), epochs_done=epochs_in_state)
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
    """Kill runs that each have files of their own: half of them or more with dead letters, and then with batches that
    are given back, where no row may be rejected for ever."""
    options = read_options(__doc__, rows=2000, state=0)
    spark, kills = spark_session("local[2]"), stream_kills(options.seed, with_state=bool(options.state))

    def prepare(folder: Path) -> Callable[[], Iterable[str]]:
        make_files(
            spark, folder, options.rows, f"NOT ({REJECTS})" if GIVEN_BACK in kills.arguments else "true"
        )
        return partial(differences, spark, folder)

    kill_on(options.folder, kills, (options.kills + 1) // 2, prepare)
    kills.arguments = (*kills.arguments, GIVEN_BACK)
    kill_on(options.folder, kills, options.kills, prepare)
    spark.stop()


if __name__ == "__main__":
    main()
