"""Spark Connect: what a classic session says by itself, and a Connect session only by a job.

Its client has no JVM, and so neither a SparkContext nor RDDs. All other parts of a passage use what both kinds of
sessions have; only this file asks which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from stormlet.errors import InvalidConfiguration
from stormlet.spark.files import is_seen
from stormlet.spark.frames import is_of_connect

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def partitions_of(frame: DataFrame) -> int:
    """Return the number of partitions of a DataFrame; 0 for one that Spark knows to be empty."""
    if not is_of_connect(frame):
        return frame.rdd.getNumPartitions()
    # Each partition answers, an empty one too, which spark_partition_id() would miss. The plan below mapInArrow is the
    # one of the run, so that Spark splits files and joins small partitions alike; a filter or a limit would change it.
    # Repartitioning would be exact as well, but costs an exchange, and rows would lose their places.
    return len(frame.mapInArrow(_answering(), "answer boolean").collect())


def default_parallelism(session: SparkSession) -> int:
    """Return the number of tasks that Spark can run at once, or what it is configured to take for it."""
    if not is_of_connect(session):
        return session.sparkContext.defaultParallelism
    return partitions_of(session.range(1))  # which has so many, whatever its rows


def frame_of_table(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a table as a DataFrame."""
    if table.num_rows or not is_of_connect(session):
        return session.createDataFrame(table)
    from pyspark.sql.pandas.types import from_arrow_schema

    # Of an empty table the client knows no types.
    return session.createDataFrame([], from_arrow_schema(table.schema))


def is_one_machine(session: SparkSession) -> bool:
    """True if all tasks run this process's own Python."""
    # A server's Python is its own, on this machine too.
    return not is_of_connect(session) and (session.conf.get("spark.master", "") or "").startswith("local")


def check_reach(session: SparkSession, folder: Path) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` if the server of a session has another folder of this name,
    or none."""
    if not is_of_connect(session):
        return
    with NamedTemporaryFile("w", dir=folder, prefix="reached-", suffix=".txt") as file:
        file.write("yes")
        file.flush()
        if not is_seen(session, file.name):
            raise InvalidConfiguration(
                f"the server of Spark Connect does not see the folder {str(folder.parent)!r} of this machine; name one "
                f"that both reach with staging= (--staging)"
            )


def _answering() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``. It is sent by value, as the executors have not been checked yet: it must not use
    any name of this module."""

    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from itertools import islice

        import pyarrow as pa

        # Spark reads no more than is taken. What is not read to its end costs a new Python process, so a second batch
        # is asked for: most small partitions end before it.
        for _ in islice(batches, 2):
            """They are not looked at."""
        yield pa.RecordBatch.from_arrays([pa.array([True])], names=["answer"])

    return answer
