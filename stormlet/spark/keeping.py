"""Keeps a streaming query running: starts it, starts it again when it has failed, and stops it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from stormlet.core.restarts import RestartPolicy, Restarts
from stormlet.errors import EndOfStream, SparkFailed
from stormlet.spark.micro_batches import MicroBatch
from stormlet.spark.queries import Begin, Query, SessionGone

logger = logging.getLogger(__name__)


class QueryKeeper:
    """The runs of one query, and the batch that it offers now; on the loop's thread alone."""

    def __init__(self, begin: Begin, policy: RestartPolicy, name: str) -> None:
        self.id = ""
        """The query's, the same in each run from one checkpoint."""
        self._begin = begin
        self._restarts = Restarts(policy)
        self._name = name
        self._query: Query
        self._keeping: asyncio.Task[None] | None = None
        self._offered: MicroBatch | None = None
        self._last: MicroBatch | None = None  # of this run
        self._changed = asyncio.Event()
        self._closing = asyncio.Event()

    async def open(self) -> None:
        """Start the query; raises what that has failed with."""
        self._query = self._begin(self._offer)
        try:
            self.id = await self._query.started()
        except asyncio.CancelledError:
            self._close_offers()
            await self._query.stop()
            raise
        self._keeping = asyncio.get_running_loop().create_task(
            self._keep(), name=f"stormlet {self._name} query"
        )
        self._keeping.add_done_callback(lambda _: self._changed.set())

    async def next_batch(self) -> MicroBatch:
        """Wait for a batch. May be cancelled, and called again.

        Raises :class:`~stormlet.errors.EndOfStream` when the query was stopped or its data has ended, and
        :class:`~stormlet.errors.SparkFailed` when it has failed more often than its policy allows.
        """
        keeping = self._keeping
        assert keeping is not None, "it is not open"
        while (batch := self._offered) is None:
            if keeping.done():
                keeping.result()
                raise EndOfStream
            self._changed.clear()
            await self._changed.wait()
        self._offered = None
        return batch

    async def close(self) -> None:
        """Stop the query; what it offers is refused from now on. The batch under way must have its verdict."""
        self._close_offers()
        if self._keeping is not None:
            if self._last is not None and self._last.is_done:  # the next run shall not do it again
                await self._query.committed(self._last.number)
            await self._query.stop()
            with suppress(SparkFailed):  # it was told, or nobody asks any more
                await self._keeping

    def _close_offers(self) -> None:
        self._closing.set()
        if self._offered is not None:
            self._refuse(self._offered)

    def _offer(self, batch: MicroBatch) -> None:
        self._last = batch
        if self._closing.is_set():
            self._refuse(batch)
        else:
            self._offered = batch
            self._changed.set()

    def _refuse(self, batch: MicroBatch) -> None:
        batch.fail(SparkFailed("the topology has stopped"))

    async def _keep(self) -> None:
        while (error := await self._failure()) is not None and not self._closing.is_set():
            await self._pause(error)
            if not self._closing.is_set():
                self._last = None
                self._query = self._begin(self._offer)

    async def _pause(self, error: Exception) -> None:
        """Wait before the query is started again; raises the error if it may not be."""
        if isinstance(error, SessionGone):
            raise error
        pause = self._restarts.pause(asyncio.get_running_loop().time())
        if pause is None:
            raise SparkFailed(f"{error}; no restart is left of {self._restarts.policy}") from error
        logger.warning("%s; the query is started again in %g s", error, pause)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), pause)

    async def _failure(self) -> Exception | None:
        """What the run has failed with, in the end."""
        try:
            await self._query.ended()
        except Exception as error:
            return self._reason(error)
        return None

    def _reason(self, error: Exception) -> Exception:
        if self._offered is not None:  # its query is gone
            self._offered.fail(error)
            self._offered = None
        # Of the failure of a batch Spark knows no more than that there was one.
        batch_error = None if self._last is None else self._last.error
        return error if batch_error is None or isinstance(error, SessionGone) else batch_error
