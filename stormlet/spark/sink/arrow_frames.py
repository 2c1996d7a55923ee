"""DataFrames of Arrow tables whose batches stay as they are until a task of Spark writes them.

By default Spark makes single rows of a table of up to 48 MB, in the driver, and serializes each of them for the task.
For the tables of a sink that costs as much as all the rest of a write. A setting of the session says from which size on
the batches themselves go to the tasks; it is zero while a DataFrame is made here.

``createDataFrame`` asks the JVM some forty times. A thread waits for the interpreter's lock twice at each of these
calls, and beside a loop that is busy each wait takes milliseconds. The tables of a sink have Spark's own types already,
so that what ``createDataFrame`` does at its end is enough: six calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import ceil
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

THRESHOLD = "spark.sql.execution.arrow.localRelationThreshold"
"""The setting."""
MOST_BYTES = 64 * 2**20
"""Bytes of a batch, about; Spark's arrays end at 2 GiB."""
LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
"""The setting of a session that reads texts in another form. Given the usual one, its JVM crashes."""
_turn = Lock()
"""Held while the setting is changed, so that each thread restores what the user has set."""


class ArrowFrames:
    """Makes the DataFrames of one writer. All calls block."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        utils = cast("Any", session)._jvm.PythonSQLUtils
        # Looked up once: each look-up is a call of the JVM.
        self._read_stream, self._make_frame = utils.readArrowStreamFromFile, utils.toDataFrame
        self._is_encrypted = session.conf.get("spark.io.encryption.enabled", "false") == "true"

    def empty(self, schema: StructType) -> DataFrame:
        """A DataFrame without rows."""
        return self._session.createDataFrame([], schema)

    def of(self, table: pa.Table, schema: StructType, files: int = 1) -> DataFrame:
        """A DataFrame of the rows of a table that has the types of this schema, which is written as so many files."""
        with _batches_for_tasks(self._session):
            if not self._is_encrypted and self._session.conf.get(LARGE_TYPES, "false") != "true":
                return self._of_batches(_batches_of(table, files), schema, files)
            create = cast("Callable[[pa.Table, StructType], DataFrame]", self._session.createDataFrame)
            return create(table, schema).coalesce(files)

    def _of_batches(self, batches: list[pa.RecordBatch], schema: StructType, files: int) -> DataFrame:
        from pyspark.sql import DataFrame

        java_session = cast("Any", self._session)._jsparkSession
        java_frame = self._make_frame(self._stream_of(batches), schema.json(), java_session)
        frame = DataFrame(java_frame, self._session)
        return frame if len(batches) == files else frame.coalesce(files)  # each batch is a partition

    def _stream_of(self, batches: list[pa.RecordBatch]) -> object:
        """The JVM's iterator over these batches, which it reads from a file at once."""
        import pyarrow as pa

        with TemporaryDirectory(prefix="stormlet-sink-") as folder:
            place = f"{folder}/rows"
            with pa.ipc.new_stream(place, batches[0].schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            return self._read_stream(place)


def _batches_of(table: pa.Table, files: int) -> list[pa.RecordBatch]:
    parts = max(files, ceil(table.nbytes / MOST_BYTES))
    return table.combine_chunks().to_batches(max_chunksize=ceil(table.num_rows / parts))


@contextmanager
def _batches_for_tasks(session: SparkSession) -> Generator[None]:
    with _turn:
        before = session.conf.get(THRESHOLD, None)
        session.conf.set(THRESHOLD, "0")
        try:
            yield
        finally:
            if before is None:
                session.conf.unset(THRESHOLD)
            else:
                session.conf.set(THRESHOLD, before)
