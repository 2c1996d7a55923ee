"""A little of all that tests have Spark do, in one session: a stream in process, one on Spark with keyed state, a
batch, and comparisons. Its JVM loads the classes that :mod:`tests.jvm` archives."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from stormlet.spark import spark_session
from tests.spark import killed_stream
from tests.spark.engine import killed_batch, killed_keyed_counts
from tests.spark.engine.kills import make_words
from tests.spark.kills import differences
from tests.spark.stream_kills import make_files


def main(folder: Path) -> None:
    """Do all of it."""
    spark = spark_session("local[2]")
    in_process, on_spark, batch = (folder / name for name in ("in_process", "on_spark", "batch"))
    for each in (in_process, on_spark, batch):
        each.mkdir()
    make_files(spark, in_process, 40)
    asyncio.run(killed_stream.main(in_process, 1, "dead_letter", with_state=False))
    assert list(differences(spark, in_process)) == []
    make_words(on_spark, 1, 2)
    killed_keyed_counts.main(on_spark)
    killed_batch.main(batch, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
