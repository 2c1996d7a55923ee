"""As :mod:`tests.spark.engine.killed_counts`, with keyed state, and with other tasks in each second life."""

from __future__ import annotations

import sys
from pathlib import Path

from stormlet.spark import RestartPolicy, spark_session, stream_on_spark
from tests.spark.engine.streams import CountByKey, Log, counting
from tests.spark.killed_epochs import STARTED


def main(folder: Path) -> None:
    """Do what is left to do."""
    Log.lines = []
    lives = folder / "lives.txt"
    life = len(lives.read_text().split()) + 1 if lives.exists() else 1
    with lives.open("a") as file:
        file.write(f"{life}\n")
    spark = spark_session("local[2]")
    topology = counting(spark, folder, count=CountByKey, tasks=(life + 2) // 2, restarts=RestartPolicy(0))
    print(STARTED, flush=True)
    with stream_on_spark(topology, dead_letters=folder / "letters.jsonl") as run:
        run.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
