"""The description of a streaming query, and its runs: started, started again after a failure, and stopped."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, cast

from stormlet.core.retries import RestartPolicy, Restarts
from stormlet.errors import EndOfStream, InvalidTopology, SparkFailed
from stormlet.spark.failures import summary
from stormlet.spark.files import Claim, Folder
from stormlet.spark.stream.query import Begin, MicroBatch, Offer, Query, SessionGone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

logger = logging.getLogger(__name__)

EPOCHS: Final = "stormlet"
"""The folder within a checkpoint in which a stream on Spark keeps its last epoch."""

OutputMode: TypeAlias = Literal["append", "update", "complete"]
"""The rows of a stream of aggregates that come in a batch, as in Spark."""


class Trigger(TypedDict, total=False):
    """The time of a batch. Without it, one comes when the last one is done and there is something new."""

    processingTime: str
    """The interval, such as ``"5 seconds"``."""
    availableNow: bool
    """True: batches of what is there now, and then the stream has ended."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """Description of a query that has not been started."""

    frame: DataFrame
    name: str
    checkpoint: str
    """Spark's ``checkpointLocation``."""
    output_mode: OutputMode
    trigger: Trigger

    def check(self) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` for a trigger that Spark does not take."""
        for kind in self.trigger:
            if kind not in Trigger.__annotations__:
                raise InvalidTopology(
                    f"trigger: {kind!r} is none of those that make batches: {', '.join(Trigger.__annotations__)}"
                )
        try:
            self.writer()
        except Exception as error:
            raise InvalidTopology(f"trigger={self.trigger!r}: {summary(error)}") from error

    def claim(self) -> Claim | None:
        """Lock the checkpoint for this run, where it is on this machine: two queries at a time would process the same
        batches. Raises :class:`~stormlet.errors.InvalidTopology` if another run has it. Blocks."""
        path = Folder(self.frame.sparkSession, self.checkpoint).local_path
        if path is None:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        claim = Claim(path)
        claim.take()
        return claim

    def claim_in_process(self) -> Claim | None:
        """Lock it for a run in process, which would be done with batches that the states of a stream on Spark never
        see. Raises :class:`~stormlet.errors.InvalidTopology` if the checkpoint is one of such a stream, too. Blocks."""
        claim = self.claim()
        if Folder(self.frame.sparkSession, f"{self.checkpoint.rstrip('/')}/{EPOCHS}").names():
            if claim is not None:
                claim.release()
            raise InvalidTopology(
                f"checkpoint {self.checkpoint} is one of a stream on Spark, which keeps the states of bolts there: go "
                f"on with stream_on_spark (--engine spark), or give the run in process a checkpoint of its own"
            )
        return claim

    def writer(self) -> DataStreamWriter:
        """A writer that lacks only its ``foreachBatch``."""
        writer = self.frame.writeStream.outputMode(self.output_mode).queryName(self.name)
        writer = writer.option("checkpointLocation", self.checkpoint)
        return writer.trigger(**cast("Any", self.trigger)) if self.trigger else writer

    def begin(self, offer: Offer) -> Query:
        """Begin a run. Call it on the loop's thread."""
        return Query(self.writer, self.frame.sparkSession.sparkContext, offer, self.name)


class QueryKeeper:
    """The runs of one query, and the batch that it offers now. Use it on the loop's thread alone."""

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
        """Start the query. Raises the error of the start."""
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
        """Stop the query, and refuse further batches. The batch under way must have its verdict."""
        self._close_offers()
        if self._keeping is not None:
            if self._last is not None and self._last.is_done:  # else the next run does it again
                await self._query.committed(self._last.number)
            await self._query.stop()
            with suppress(SparkFailed):  # reported by next_batch, or of no interest now
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
        """Wait before the query is started again; raise the error if it may not be."""
        if isinstance(error, SessionGone):
            raise error
        pause = self._restarts.pause(asyncio.get_running_loop().time())
        if pause is None:
            raise SparkFailed(f"{error}; no restart is left of {self._restarts.policy}") from error
        logger.warning("%s; the query is started again in %g s", error, pause)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), pause)

    async def _failure(self) -> Exception | None:
        """Wait for the end of the run, and return its error, if any."""
        try:
            await self._query.ended()
        except Exception as error:
            return self._reason(error)
        return None

    def _reason(self, error: Exception) -> Exception:
        if self._offered is not None:  # its query is gone
            self._offered.fail(error)
            self._offered = None
        # Spark's error says no more than that a batch has failed.
        batch_error = None if self._last is None else self._last.error
        return error if batch_error is None or isinstance(error, SessionGone) else batch_error
