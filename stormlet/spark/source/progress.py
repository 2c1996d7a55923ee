"""Reports of the rows or partitions read, and of their total where that is known."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from stormlet.model.components import TaskContext
from stormlet.report.statistics import Progress
from stormlet.spark.source.plans import Extent, extent_of
from stormlet.spark.source.reading import ALL, Chunk, Done
from stormlet.spark.threads import JobThread, in_thread, post

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)


class StreamProgress:
    """Reports of a stream, which has no known end: one for all its batches."""

    def __init__(self, context: TaskContext) -> None:
        self._report_progress = context.report_progress
        self._rows = 0

    def add(self, chunk: Chunk) -> None:
        """Note a chunk that was read."""
        self._rows += chunk.rows
        self._report_progress(Progress(self._rows, None, "rows read"))

    def end(self) -> None:
        """Nothing: another batch may come."""

    async def close(self) -> None:
        """Nothing to end."""


class FrameProgress:
    """Reports of one DataFrame. A thread asks Spark for the total once the first rows have come, so as not to delay
    them. With ``in_order`` all rows count as one partition."""

    def __init__(self, frame: DataFrame, done: Done, context: TaskContext, *, in_order: bool) -> None:
        self._frame = frame
        self._report_progress = context.report_progress
        self._loop = asyncio.get_running_loop()
        self._in_order = in_order
        self._extent = Extent()
        self._rows: int = sum(rows for rows in done.values() if rows != ALL)
        self._all_counted = ALL not in done.values()
        self._partition = 0
        self._ended = False
        name = f"{context.topology}: {context.component}"
        self._thread = JobThread(frame.sparkSession.sparkContext, name, "count", self._ask)
        self._asked = False

    def add(self, chunk: Chunk) -> None:
        """Note a chunk that was read."""
        if not self._asked:  # now that the first rows are there
            self._asked = True
            self._thread.start()
        self._rows += chunk.rows
        self._partition = chunk.partition
        self._report()

    def end(self) -> None:
        """Note the end of the data."""
        self._ended = True
        self._report()

    async def close(self) -> None:
        """End the thread that asks for the total."""
        if self._thread.running:
            await in_thread(self._thread.close, "stormlet spark close")

    def _report(self) -> None:
        rows, partitions = self._extent.rows, self._extent.partitions
        if rows is not None and self._all_counted:
            self._report_progress(Progress(self._rows, rows, "rows read"))
        elif partitions is not None and not self._in_order:
            done = partitions if self._ended else self._partition
            self._report_progress(Progress(done, partitions, "partitions read"))
        else:
            self._report_progress(Progress(self._rows, None, "rows read"))

    def _ask(self) -> None:
        try:
            self._thread.enter()
            extent = extent_of(self._frame)
        except Exception as error:  # Spark's, or it was cancelled: then there is no total to show
            logger.debug("%s cannot be counted: %r", self._frame, error)
            return
        post(self._loop, self._learn, extent)

    def _learn(self, extent: Extent) -> None:
        self._extent = extent
        self._report()
