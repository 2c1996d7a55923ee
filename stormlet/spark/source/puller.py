"""The thread that pulls from Spark, and the bounded queue between it and the loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormlet.errors import EndOfStream, SparkFailed
from stormlet.model.components import SpoutCollector, TaskContext
from stormlet.spark.failures import is_loss, summary, way_out
from stormlet.spark.frames import has_fixed_order
from stormlet.spark.source.ordering import OrderedRead
from stormlet.spark.source.progress import RowsRead, RowsTold
from stormlet.spark.source.reading import ALL, Chunk, Done, Read
from stormlet.spark.threads import JobThread, beside

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame


logger = logging.getLogger(__name__)

MOST_CHUNKS = 2
"""How many chunks wait for the loop; with the one in hand and the one being made, four are in memory."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often to read again after a loss that nothing came after, and when."""

    most: int = 4
    first_pause: float = 0.5
    """Seconds; doubled each time."""

    def pause(self, losses: int) -> float:
        """Seconds to wait after so many losses in a row."""
        return self.first_pause * 2.0 ** (losses - 1)


class Progress:
    """How far a source has been read."""

    def __init__(self, done: Done) -> None:
        self.done = dict(done)
        """What need not be read again."""
        self.delivered = False
        """Whether there was anything yet."""
        self._partition = 0

    def advance(self, chunk: Chunk) -> None:
        """A chunk was read: it, and all partitions before it, need not come again."""
        self.delivered = True
        self.done.update(dict.fromkeys(range(self._partition, chunk.partition), ALL))
        self.done[chunk.partition] = chunk.first_row + chunk.rows
        self._partition = chunk.partition


class Puller:
    """Reads chunks in a thread of its own, under a job tag of its own.

    ``wake`` is called in that thread when there is something to :meth:`take`, or nothing more to wait for.
    ``may_resume`` says whether reading again gives the same rows in the same places.
    """

    def __init__(
        self,
        read: Read,
        context: SparkContext,
        wake: Callable[[], None],
        *,
        name: str,
        done: Done,
        may_resume: Callable[[], bool],
        retries: Retries,
    ) -> None:
        self.ended = False
        """Whether nothing more will come than what waits."""
        self.error: BaseException | None = None
        """What ended it, if that was no end of the data."""
        self._read = read
        self._wake = wake
        self._may_resume = may_resume
        self._retries = retries
        self._progress = Progress(done)
        self._chunks = deque[Chunk]()
        self._changed = threading.Condition()
        self._closed = False
        self._losses = 0
        self._name = name
        self._thread = JobThread(context, name, "puller", self._run)

    def start(self) -> None:
        """Start to pull."""
        self._thread.start()

    def take(self) -> Chunk | None:
        """The next chunk, if there is one now."""
        if not self._chunks:
            return None
        with self._changed:
            chunk = self._chunks.popleft()
            self._changed.notify_all()
        return chunk

    @property
    def running(self) -> bool:
        """Whether the thread is there."""
        return self._thread.running

    def close(self) -> None:
        """Cancel the jobs and wait for the thread; to be called from another thread than the loop's."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.close()

    def _run(self) -> None:
        try:
            self._thread.enter()
            while not self._pull():
                pass
        except BaseException as error:
            self.error = error
        finally:
            self.ended = True
            self._wake()

    def _pull(self) -> bool:
        """Read until the end, or until something is lost; whether that was all."""
        try:
            for chunk in self._read(self._progress.done):
                if not self._put(chunk):
                    return True
        except SparkFailed:
            raise
        except Exception as error:
            if self._closed:
                return True
            self._recover(error)
            return self._closed
        return True

    def _put(self, chunk: Chunk) -> bool:
        """Wait for room; false if the source was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._chunks) < MOST_CHUNKS)
            if self._closed:
                return False
            self._chunks.append(chunk)
        self._progress.advance(chunk)
        self._losses = 0
        self._wake()
        return True

    def _recover(self, error: Exception) -> None:
        """Wait before reading again; raises :class:`~stormlet.errors.SparkFailed` if that would not help."""
        self._losses += 1
        # Without Spark's frames, which would keep its sockets.
        cause = error.with_traceback(None)
        if not is_loss(error):
            raise SparkFailed(f"{self._name}: {way_out(error) or summary(error)}") from cause
        if self._losses > self._retries.most:
            raise SparkFailed(
                f"{self._name}: lost {self._losses} times in a row: {summary(error)}"
            ) from cause
        if self._progress.delivered and not self._may_resume():
            raise SparkFailed(
                f"{self._name}: a result was lost, and the DataFrame's rows have no fixed order to go on from; give "
                f"order_by= a unique key, or write it to files first, and read those: {summary(error)}"
            ) from cause
        pause = self._retries.pause(self._losses)
        logger.warning(
            "%s: a result was lost and is read again in %g s: %s", self._name, pause, summary(error)
        )
        with self._changed:
            self._changed.wait_for(lambda: self._closed, pause)


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
