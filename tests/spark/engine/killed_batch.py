"""A batch on Spark that is killed again and again: it replaces what the run before it has written."""

from __future__ import annotations

import sys
from pathlib import Path

from stormlet.spark import run_on_spark, spark_session
from tests.spark.engine.parts import topology
from tests.spark.killed_epochs import STARTED


def main(folder: Path, run: int) -> None:
    """Run it once."""
    spark = spark_session("local[2]")
    print(STARTED, flush=True)
    run_on_spark(topology(folder, run), spark, dead_letters=folder / "letters.jsonl")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
