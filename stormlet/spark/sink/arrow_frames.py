"""DataFrames of Arrow tables whose batches stay as they are until a task of Spark writes them.

By default Spark makes single rows of a table of up to 48 MB, in the driver, and serializes each of them for the task.
For the tables of a sink that costs as much as all the rest of a write. A setting of the session says from which size on
the batches themselves go to the tasks; it is zero while a DataFrame is made here.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

THRESHOLD = "spark.sql.execution.arrow.localRelationThreshold"
"""The setting."""
_turn = Lock()
"""Held while it is changed, so that each thread restores what the user has set."""


def frame_of(session: SparkSession, rows: object, schema: StructType) -> DataFrame:
    """A DataFrame of an Arrow table, or of a list of rows."""
    create = cast("Callable[[object, StructType], DataFrame]", session.createDataFrame)
    with _turn:
        before = session.conf.get(THRESHOLD, None)
        session.conf.set(THRESHOLD, "0")
        try:
            return create(rows, schema)
        finally:
            if before is None:
                session.conf.unset(THRESHOLD)
            else:
                session.conf.set(THRESHOLD, before)
