"""The chunks of a DataFrame, as the spouts take them that read one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stormlet.errors import EndOfStream
from stormlet.model.components import SpoutCollector, TaskContext
from stormlet.spark.beside import beside
from stormlet.spark.frames import has_fixed_order
from stormlet.spark.ordering import OrderedRead
from stormlet.spark.pulling import Puller, Retries
from stormlet.spark.reading import Chunk, Done, Read
from stormlet.spark.rows_read import RowsRead, RowsTold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RETRIES = Retries()


class Chunks:
    """Pulls a DataFrame beside the loop. :meth:`open` comes first. ``rows`` hears of what is read, by default to report
    how far that has come."""

    def __init__(self, frame: DataFrame, read: Read, rows: RowsTold | None = None) -> None:
        self._frame = frame
        self._read = read
        self._puller: Puller | None = None
        self._given_rows = rows
        self._rows: RowsTold

    def open(self, done: Done, context: TaskContext, out: SpoutCollector[Any]) -> None:
        """Start to pull what is not done."""
        self._puller = Puller(
            self._read,
            self._frame.sparkSession.sparkContext,
            _waker(out),
            name=f"{context.topology}: {context.component}",
            done=done,
            may_resume=lambda: isinstance(self._read, OrderedRead) or has_fixed_order(self._frame),
            retries=RETRIES,
        )
        in_order = isinstance(self._read, OrderedRead)
        self._rows = self._given_rows or RowsRead(self._frame, done, context, in_order=in_order)
        self._puller.start()

    def take(self) -> Chunk | None:
        """The next one, if it is there now. Raises :class:`~stormlet.errors.EndOfStream` after the last one, and
        :class:`~stormlet.errors.SparkFailed`."""
        puller = self._puller
        assert puller is not None, "the spout is not open"
        ended = puller.ended  # before the look at what waits, as it may end in between
        chunk = puller.take()
        if chunk is not None:
            self._rows.add(chunk)
        elif ended:
            if puller.error is not None:
                raise puller.error
            self._rows.end()
            raise EndOfStream
        return chunk

    async def close(self) -> None:
        """Cancel Spark's jobs and wait for the puller, beside the loop."""
        puller = self._puller
        if puller is not None:
            await self._rows.close()
            if puller.running:
                await beside(puller.close, "stormlet spark close")


def _waker(out: SpoutCollector[Any]) -> Callable[[], None]:
    loop = asyncio.get_running_loop()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(out.wake)

    return wake
