"""Reports how far a DataFrame has been read, and of how much, where that is known."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from stormlet.model.components import TaskContext
from stormlet.report.statistics import Progress
from stormlet.spark.source.plans import Extent, extent_of
from stormlet.spark.source.reading import ALL, Chunk, Done
from stormlet.spark.threads import JobThread, beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)


class RowsTold(Protocol):
    """Hears of what is read."""

    def add(self, chunk: Chunk) -> None:
        """A chunk was read."""
        ...

    def end(self) -> None:
        """There is nothing more."""
        ...

    async def close(self) -> None:
        """Nobody needs to know any more."""
        ...


class RowsStreamed:
    """The account of a stream, whose end nobody knows: one for all its batches."""

    def __init__(self, context: TaskContext) -> None:
        self._tell = context.report_progress
        self._rows = 0

    def add(self, chunk: Chunk) -> None:
        """A chunk was read."""
        self._rows += chunk.rows
        self._tell(Progress(self._rows, None, "rows read"))

    def end(self) -> None:
        """There is nothing more in this batch."""

    async def close(self) -> None:
        """Nothing to end."""


class RowsRead:
    """The account of one run. Spark is asked how much there is beside the reading, when that has begun.
    ``in_order`` says that all rows count as one partition."""

    def __init__(self, frame: DataFrame, done: Done, context: TaskContext, *, in_order: bool) -> None:
        self._frame = frame
        self._tell = context.report_progress
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
        """A chunk was read."""
        if not self._asked:  # now that the first rows are there
            self._asked = True
            self._thread.start()
        self._rows += chunk.rows
        self._partition = chunk.partition
        self._report()

    def end(self) -> None:
        """There is nothing more."""
        self._ended = True
        self._report()

    async def close(self) -> None:
        """Nobody needs to know any more."""
        if self._thread.running:
            await beside(self._thread.close, "stormlet spark close")

    def _report(self) -> None:
        rows, partitions = self._extent.rows, self._extent.partitions
        if rows is not None and self._all_counted:
            self._tell(Progress(self._rows, rows, "rows read"))
        elif partitions is not None and not self._in_order:
            done = partitions if self._ended else self._partition
            self._tell(Progress(done, partitions, "partitions read"))
        else:
            self._tell(Progress(self._rows, None, "rows read"))

    def _ask(self) -> None:
        try:
            self._thread.enter()
            extent = extent_of(self._frame)
        except Exception as error:  # Spark's, or it was cancelled: then there is no total to show
            logger.debug("%s cannot be counted: %r", self._frame, error)
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._learn, extent)

    def _learn(self, extent: Extent) -> None:
        self._extent = extent
        self._report()
