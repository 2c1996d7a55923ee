"""One run of a streaming query, and its micro-batches.

Spark's side runs in threads: one starts the query and waits for its end, and one of Py4J's calls ``foreachBatch``.
Each call is a :class:`MicroBatch`, offered to the loop; its thread waits there for the verdict of the topology.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from stormlet.errors import SparkFailed
from stormlet.spark.failures import summary
from stormlet.spark.threads import in_thread, post, resolve

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

VERDICT_LOOK = 1.0
"""Seconds between two checks, by a waiting batch, that the loop is still open."""

MakeWriter: TypeAlias = Callable[[], "DataStreamWriter"]
SESSION_LOOK = 1
"""Seconds between two checks that the session is still there."""
COMMIT_SECONDS = 10.0
"""Seconds that Spark has to note that a batch is done; then the query is stopped anyway."""
COMMIT_LOOK = 0.02


class NotDone(Exception):
    """Raised in Spark's thread, so that the query ends and the batch comes again."""


class MicroBatch:
    """One batch of a query, and its verdict."""

    def __init__(self, number: int, frame: DataFrame) -> None:
        self.number = number
        """Spark's number of the batch: the same again after a restart, with the same rows."""
        self.frame = frame
        self.error: Exception | None = None
        """The reason why it is not done."""
        self._settled = threading.Event()

    @property
    def is_done(self) -> bool:
        """True if everything in it is settled."""
        return self._settled.is_set() and self.error is None

    def done(self) -> None:
        """Settle it: Spark may commit its offsets."""
        self._settled.set()

    def fail(self, error: Exception) -> None:
        """Have it come again. An earlier verdict stands."""
        if not self._settled.is_set():
            self.error = error
            self._settled.set()

    def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait in Spark's thread for the verdict; raises :class:`NotDone`."""
        while not self._settled.wait(VERDICT_LOOK):
            if loop.is_closed():
                self.fail(SparkFailed("the event loop was closed in the middle of the batch"))
        if self.error is not None:
            raise NotDone(str(self.error))


Offer: TypeAlias = Callable[[MicroBatch], None]
"""Takes a batch, on the loop's thread."""


class Query:
    """A run of a query, from its start to its end. Py4J logs the exceptions of its threads; :func:`_quietly` leaves
    out those that are raised here."""

    def __init__(self, make_writer: MakeWriter, context: SparkContext, offer: Offer, name: str) -> None:
        from pyspark import InheritableThread

        self._loop = asyncio.get_running_loop()
        self._context = context
        self._name = name
        self._offer = offer
        self._started = self._loop.create_future()
        self._ended = self._loop.create_future()
        self._stopping = threading.Event()
        self._query: StreamingQuery | None = None
        self._make_writer = make_writer
        # It inherits what the caller has set for jobs: the scheduler's pool.
        self._thread = InheritableThread(target=self._run, name=f"{name} query", daemon=True)
        self._thread.start()

    async def started(self) -> str:
        """Wait for the start and return the query's id, the same in each run from one checkpoint. Raises the error of
        the start."""
        return cast("str", await asyncio.shield(self._started))

    async def ended(self) -> None:
        """Wait for the end. Raises the error that has ended it; none if it was stopped or its data has ended."""
        try:
            await asyncio.shield(self._ended)
        finally:
            if self._ended.done():
                self._thread.join()  # it has nothing more to do

    async def committed(self, batch: int) -> None:
        """Wait until Spark has noted that this batch is done, for a limited time."""
        await in_thread(lambda: self._wait_for_commit(batch), "stormlet spark commit")

    async def stop(self) -> None:
        """End it, at once or as soon as it has started. The batch under way must have its verdict."""
        self._stopping.set()
        await in_thread(self._stop, "stormlet spark stop")
        with suppress(Exception):
            await self.ended()

    # In threads.

    def _run(self) -> None:
        with _quietly():
            error = self._start_and_wait()
        self._resolve(self._started, "", error)
        self._resolve(self._ended, None, error)

    def _start_and_wait(self) -> Exception | None:
        try:
            self._query = self._make_writer().foreachBatch(self._on_batch).start()
            self._resolve(self._started, str(self._query.id), None)
            if self._stopping.is_set():
                self._stop()
            while not self._query.awaitTermination(SESSION_LOOK):
                if session_is_gone(self._context):  # an idle query would not notice
                    self._stop()
                    break
        except Exception as error:
            return self._failed(error)
        return None if self._stopping.is_set() else self._gone(None)

    def _stop(self) -> None:
        if self._query is not None:
            with suppress(Exception):  # the session may be gone, and the query with it
                self._query.stop()

    def _on_batch(self, frame: DataFrame, number: int) -> None:
        batch = MicroBatch(number, frame)
        try:
            self._loop.call_soon_threadsafe(self._offer, batch)
        except RuntimeError:
            raise NotDone("the event loop is closed") from None
        batch.wait(self._loop)

    def _wait_for_commit(self, batch: int) -> None:
        deadline = time.monotonic() + COMMIT_SECONDS
        with suppress(Exception):
            while time.monotonic() < deadline and not self._has_committed(batch):
                time.sleep(COMMIT_LOOK)

    def _has_committed(self, batch: int) -> bool:
        query = self._query
        if query is None or not query.isActive:
            return True
        progress = query.lastProgress
        return progress is not None and progress.batchId >= batch

    def _failed(self, error: Exception) -> Exception:
        # Without Spark's frames, which would keep its sockets.
        failure = SparkFailed(f"{self._name}: the query has failed: {summary(error)}")
        failure.__cause__ = error.with_traceback(None)
        return self._gone(failure) or failure

    def _gone(self, cause: Exception | None) -> Exception | None:
        if not self._stopping.is_set() and session_is_gone(self._context):
            gone = SessionGone(f"{self._name}: the Spark session was stopped, or its JVM has died")
            gone.__cause__ = cause
            return gone
        return None

    def _resolve(self, future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
        post(self._loop, _settle, future, result, error)


Begin: TypeAlias = Callable[[Offer], Query]
"""Begins a run of a query, which offers its batches one after another."""


class SessionGone(SparkFailed):
    """The session is gone, so that the query cannot be started again."""


def session_is_gone(context: SparkContext) -> bool:
    """True if the session cannot start anything any more."""
    try:
        java: Any = cast("Any", context)._jsc  # PySpark has no public way to it
        return java is None or java.sc().isStopped()
    except Exception:  # the JVM is gone
        return True


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    resolve(future, result, error)
    if not future.cancelled():
        future.exception()  # marks it as retrieved: `ended` need not be awaited


@contextmanager
def _quietly() -> Generator[None]:
    """Keep Py4J from logging the traceback of :class:`NotDone`: the query's end reports the error."""
    py4j, of_others = logging.getLogger("py4j.clientserver"), partial(_is_of_others)  # one for each query
    py4j.addFilter(of_others)
    try:
        yield
    finally:
        py4j.removeFilter(of_others)


def _is_of_others(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], NotDone))
