"""The spout that reads a DataFrame."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.spark.chunks import Chunks
from stormlet.spark.origins import Origin
from stormlet.spark.reading import Done, Read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ROWS = 16
"""How many rows one call of ``next_tuple`` emits."""


class FrameReader(ReliableSpout[object]):
    """The spout that a :class:`DataFrameSpout` makes."""

    single_task = True
    restartable = False  # another one would read from the beginning

    def __init__(self, frame: DataFrame, read: Read) -> None:
        self.frame = frame
        self._chunks = Chunks(frame, read)
        self._values: Iterator[object] = iter(())
        self.partition = 0
        """The one whose rows are emitted."""
        self._row = 0
        self._most_pending: int | None = None

    def open(self, context: TaskContext, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Start to pull."""
        self.pull({}, context, out)
        return None

    def pull(self, done: Done, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start to pull what is not done."""
        self._most_pending = context.config.max_spout_pending
        self._chunks.open(done, context, out)

    def next_tuple(self, out: SpoutCollector[object]) -> None:
        """Emit the next rows, if they are there: several, as a call costs as much as a tuple."""
        most = MOST_ROWS if self._most_pending is None else min(MOST_ROWS, self._most_pending - out.pending)
        values = list(islice(self._values, most))
        if not values and self._next_chunk():
            values = list(islice(self._values, most))
        first, self._row = self._row, self._row + len(values)
        origins = [Origin(self.partition, row) for row in range(first, self._row)]
        self.emit(values, origins, out)

    def emit(self, values: Sequence[object], origins: Sequence[Origin], out: SpoutCollector[object]) -> None:
        """Emit these values, each with its origin."""
        out.emit_many(values, message_ids=origins, origins=origins)

    def _next_chunk(self) -> bool:
        """Whether there is one now. Raises :class:`~stormlet.errors.EndOfStream` after the last one."""
        chunk = self._chunks.take()
        if chunk is None:
            return False
        self._values, self.partition, self._row = iter(chunk.values), chunk.partition, chunk.first_row
        return True

    async def close(self) -> None:
        """Cancel Spark's jobs and wait for the puller, beside the loop."""
        await self._chunks.close()
