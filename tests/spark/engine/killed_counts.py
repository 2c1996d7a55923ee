"""A stream on Spark that is killed again and again: its words are in files that are all there."""

from __future__ import annotations

import sys
from pathlib import Path

from stormlet.spark import RestartPolicy, spark_session, stream_on_spark
from tests.spark.engine.streams import Log, counting
from tests.spark.killed_epochs import STARTED


def main(folder: Path) -> None:
    """Do what is left to do."""
    Log.lines = []
    topology = counting(spark_session("local[2]"), folder, restarts=RestartPolicy(0))
    print(STARTED, flush=True)
    with stream_on_spark(topology, dead_letters=folder / "letters.jsonl") as run:
        run.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
