"""The thread that pulls chunks from Spark, the bounded queue between it and the loop, and rows out of the chunks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from stormlet.errors import EndOfStream, SparkFailed
from stormlet.model.components import SpoutCollector, TaskContext
from stormlet.spark.failures import is_loss, summary, way_out
from stormlet.spark.frames import Origin
from stormlet.spark.source.ordering import OrderedRead
from stormlet.spark.source.plans import has_fixed_order
from stormlet.spark.source.progress import FrameProgress, StreamProgress
from stormlet.spark.source.reading import ALL, Chunk, Done, Read
from stormlet.spark.threads import JobThread, in_thread, post

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

MOST_CHUNKS = 2
"""Chunks that wait for the loop; with the one in hand and the one being made, four are in memory."""

MOST_ROWS = 128
"""Rows that one call of ``next_tuple`` emits at most: many, as a call costs as much as several tuples; but no more than
fit a slice many times."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Number and times of new reads after a loss, until a chunk comes."""

    most: int = 4
    first_pause: float = 0.5
    """Seconds; doubled each time."""

    def pause(self, losses: int) -> float:
        """Seconds to wait after this many losses in a row."""
        return self.first_pause * 2.0 ** (losses - 1)


RETRIES = Retries()


class Position:
    """The rows that a puller has read."""

    def __init__(self, done: Done) -> None:
        self.done = dict(done)
        """The rows that need not be read again."""
        self.delivered = False
        """True once a chunk has come."""
        self._partition = 0

    def advance(self, chunk: Chunk) -> None:
        """Note a chunk: it, and all partitions before it, need not come again."""
        self.delivered = True
        self.done.update(dict.fromkeys(range(self._partition, chunk.partition), ALL))
        self.done[chunk.partition] = chunk.first_row + chunk.rows
        self._partition = chunk.partition


class Puller:
    """Reads chunks in a thread of its own, under a job tag of its own.

    It calls ``wake`` in that thread when there is something to :meth:`take`, and at the end. ``may_resume`` returns
    true if another read gives the same rows in the same places.
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
        """True if no more chunks come than those that wait."""
        self.error: BaseException | None = None
        """The error that ended it; None at the end of the data."""
        self._read = read
        self._wake = wake
        self._may_resume = may_resume
        self._retries = retries
        self._position = Position(done)
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
        """The next chunk, if one waits."""
        if not self._chunks:
            return None
        with self._changed:
            chunk = self._chunks.popleft()
            self._changed.notify_all()
        return chunk

    @property
    def running(self) -> bool:
        """True while the thread is alive."""
        return self._thread.running

    def close(self) -> None:
        """Cancel the jobs and wait for the thread. Blocks, so never call it on the loop's thread."""
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
        """Read until the end, or until something is lost. Return true at the end."""
        try:
            for chunk in self._read(self._position.done):
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
        """Wait for room and put a chunk; false if the source was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._chunks) < MOST_CHUNKS)
            if self._closed:
                return False
            self._chunks.append(chunk)
        self._position.advance(chunk)
        self._losses = 0
        self._wake()
        return True

    def _recover(self, error: Exception) -> None:
        """Wait before the next read; raise :class:`~stormlet.errors.SparkFailed` if that would not help."""
        self._losses += 1
        # Without Spark's frames, which would keep its sockets.
        cause = error.with_traceback(None)
        if not is_loss(error):
            raise SparkFailed(f"{self._name}: {way_out(error) or summary(error)}") from cause
        if self._losses > self._retries.most:
            raise SparkFailed(
                f"{self._name}: lost {self._losses} times in a row: {summary(error)}"
            ) from cause
        if self._position.delivered and not self._may_resume():
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


class Chunks:
    """Pulls a DataFrame for a spout. :meth:`open` comes first. ``rows`` receives the chunks that are read, by default
    to report progress."""

    def __init__(self, frame: DataFrame, read: Read, rows: StreamProgress | None = None) -> None:
        self._frame = frame
        self._read = read
        self._puller: Puller | None = None
        self._given_rows = rows
        self._rows: FrameProgress | StreamProgress

    def open(self, done: Done, context: TaskContext, out: SpoutCollector[Any]) -> None:
        """Start to pull the rows that are not done."""
        self._puller = Puller(
            self._read,
            self._frame.sparkSession.sparkContext,
            partial(post, asyncio.get_running_loop(), out.wake),
            name=f"{context.topology}: {context.component}",
            done=done,
            may_resume=lambda: isinstance(self._read, OrderedRead) or has_fixed_order(self._frame),
            retries=RETRIES,
        )
        in_order = isinstance(self._read, OrderedRead)
        self._rows = self._given_rows or FrameProgress(self._frame, done, context, in_order=in_order)
        self._puller.start()

    def take(self) -> Chunk | None:
        """The next chunk, if one waits. Raises :class:`~stormlet.errors.EndOfStream` after the last one, and
        :class:`~stormlet.errors.SparkFailed`."""
        puller = self._puller
        assert puller is not None, "the spout is not open"
        ended = puller.ended  # read first, as the puller may put a chunk and end in between
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
        """Cancel Spark's jobs and wait for the puller, without blocking the loop."""
        puller = self._puller
        if puller is not None:
            await self._rows.close()
            if puller.running:
                await in_thread(puller.close, "stormlet spark close")


def rows_per_call(out: SpoutCollector[Any], most_pending: int | None) -> int:
    """Rows that this call may emit without going above ``max_spout_pending``."""
    return MOST_ROWS if most_pending is None else min(MOST_ROWS, most_pending - out.pending)


class Rows:
    """The rows of chunks, a few at a time. ``take`` gives the next chunk if it is there, and raises at the end."""

    def __init__(self, take: Callable[[], Chunk | None]) -> None:
        self.partition = 0
        """The partition of the last chunk."""
        self._take = take
        self._values: Iterator[object] = iter(())
        self._row = 0

    def next(self, most: int, epoch: int | None = None) -> tuple[list[object], list[Origin]]:
        """At most ``most`` values that follow each other in one partition, and their origins; none if none has come."""
        values = list(islice(self._values, most))
        if not values and self._next_chunk():
            values = list(islice(self._values, most))
        first, self._row = self._row, self._row + len(values)
        return values, [Origin(self.partition, row, epoch) for row in range(first, self._row)]

    def _next_chunk(self) -> bool:
        chunk = self._take()
        if chunk is None:
            return False
        self._values, self.partition, self._row = iter(chunk.values), chunk.partition, chunk.first_row
        return True
