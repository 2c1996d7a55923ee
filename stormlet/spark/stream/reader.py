"""The rows of a stream's micro-batches, and the reader that emits each of them at least once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from stormlet.core.outcomes import Failure, FailureKind, TupleFailed
from stormlet.errors import EndOfStream, SparkFailed
from stormlet.model.components import SpoutCollector, TaskContext
from stormlet.spark.files import Claim, sync_of_letters
from stormlet.spark.frames import Origin
from stormlet.spark.source.puller import Chunks, Rows, rows_per_call
from stormlet.spark.stream.keeper import QueryKeeper
from stormlet.spark.stream.query import MicroBatch
from stormlet.spark.threads import in_thread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

Pull: TypeAlias = Callable[["DataFrame"], Chunks]
"""Begins to pull a batch."""
TakeClaim: TypeAlias = Callable[[], Claim | None]
"""Locks the checkpoint."""

LOOKS = 100
"""Number of looks, at the end, for further rows of a batch."""
LOOK = 0.01
"""Seconds from one look to the next."""


OnFailure: TypeAlias = Literal["dead_letter", "fail_batch"]
"""Treatment of a row that is given up: it goes to the dead letters, or its batch fails and comes again."""


class BatchReader:
    """The batch in hand, if there is one, and its rows."""

    def __init__(self, keeper: QueryKeeper, pull: Pull, take_claim: TakeClaim) -> None:
        self.batch: MicroBatch | None = None
        """The batch that is being read, or waits for its verdict."""
        self.whole = False
        """True if all its rows were read."""
        self._keeper = keeper
        self._pull = pull
        self._take_claim = take_claim
        self._claim: Claim | None = None
        self._chunks: Chunks
        self._rows: Rows

    @property
    def query(self) -> str:
        """The id of the query, the same in each run from one checkpoint."""
        return self._keeper.id

    async def open(self) -> None:
        """Start the query. Raises the error of the start, and :class:`~stormlet.errors.InvalidTopology` if another
        run has its checkpoint."""
        self._claim = await in_thread(self._take_claim, "stormlet spark checkpoint")
        try:
            await self._keeper.open()
        except BaseException:
            self._release()
            raise

    async def next_batch(self, done: int = -1) -> MicroBatch:
        """Wait for a batch, and begin to read it; those up to ``done`` are done already, and only noted by Spark. See
        :meth:`stormlet.spark.stream.keeper.QueryKeeper.next_batch`."""
        while (batch := await self._keeper.next_batch()).number <= done:
            batch.done()
        self._chunks = self._pull(batch.frame)
        self._rows = Rows(self._chunks.take)
        self.batch, self.whole = batch, False
        return batch

    def rows(self, most: int) -> tuple[list[object], list[Origin]]:
        """At most ``most`` next values, and their origins; none if none has come. Raises
        :class:`~stormlet.errors.SparkFailed`."""
        try:
            return self._rows.next(most, self._in_hand.number)
        except EndOfStream:
            self.whole = True
            return [], []

    async def was_read(self) -> bool:
        """True if no row is left to read, for which Spark gets a moment. To be asked at the end: a row that comes
        later would be lost."""
        for _ in range(LOOKS):
            try:
                values, _ = self.rows(1)
                if values or self.whole:
                    break
            except SparkFailed:
                break
            await asyncio.sleep(LOOK)
        return self.whole

    def done(self) -> None:
        """Report to Spark that the batch in hand is settled."""
        self._in_hand.done()
        self.batch = None

    async def fail(self, error: Exception) -> None:
        """Have the batch in hand come again."""
        await self._chunks.close()
        self._in_hand.fail(error)
        self.batch = None

    async def close(self) -> None:
        """Stop the query. A batch in hand fails."""
        if self.batch is not None:
            await self.fail(
                SparkFailed(f"the topology has stopped in the middle of batch {self.batch.number}")
            )
        await self._keeper.close()
        self._release()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()

    @property
    def _in_hand(self) -> MicroBatch:
        assert self.batch is not None, "no batch is in hand"
        return self.batch


OpenBatches: TypeAlias = Callable[[TaskContext, SpoutCollector[object]], BatchReader]
"""Makes the batch reader of a spout."""


class StreamReader:
    """Emits the rows of a batch, which is done when all of them are settled."""

    def __init__(self, batches_of: OpenBatches, on_failure: OnFailure) -> None:
        self._buries = on_failure == "dead_letter"
        self._batches_of = batches_of
        self._batches: BatchReader
        self._out: SpoutCollector[object]
        self._sync_letters: Callable[[], None] | None = None
        self._most_pending: int | None = None
        self._name = ""
        self._has_letters = False
        self._error: Exception | None = None

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start the query."""
        if self._buries:
            check_letters(context)
        self._sync_letters = context.sync_dead_letters
        self._most_pending = context.config.max_spout_pending
        self._name = f"{context.topology}: {context.component}"
        self._out = out
        self._batches = self._batches_of(context, out)
        await self._batches.open()

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Emit the next rows of the batch, or wait for one. When all are emitted, wait until they are settled."""
        if self._batches.batch is None:
            return self._next_batch()
        if not self._over:
            self._emit(out)
        if not self._over:
            return None
        if out.pending:
            out.pause_until_own_settled()
            return None
        return self._conclude()

    def fail(self, message_id: object, failure: Failure) -> None:
        """Note that a row is not replayed any more: the dead letters have it, or the batch comes again."""
        if failure.kind is not FailureKind.SHUTDOWN and self._buries:
            self._has_letters = True
        elif self._error is None:
            self._error = row_failed(self._name, message_id, failure)

    async def drain(self) -> None:
        """Nothing: what was emitted is settled."""

    async def close(self) -> None:
        """Finish the batch if it is settled; otherwise it comes again. Stop the query."""
        try:
            if self._batches.batch is not None and not self._out.pending and await self._batches.was_read():
                await self._conclude()
            if self._batches.batch is not None:
                number = self._batches.batch.number
                logger.warning(
                    "%s: the run ends within batch %d, which comes again in the next one", self._name, number
                )
        finally:
            await self._batches.close()

    @property
    def _over(self) -> bool:
        """True if no more rows of this batch are to be emitted."""
        return self._batches.whole or self._error is not None

    async def _next_batch(self) -> None:
        await self._batches.next_batch()
        self._error = None

    def _emit(self, out: SpoutCollector[object]) -> None:
        try:
            values, origins = self._batches.rows(rows_per_call(out, self._most_pending))
        except SparkFailed as error:
            self._error = error
        else:
            out.emit_many(values, message_ids=origins, origins=origins)

    async def _conclude(self) -> None:
        if self._error is not None:
            await self._batches.fail(self._error)
        else:
            if self._has_letters and self._sync_letters is not None:  # Spark will not give these rows again
                await in_thread(self._sync_letters, "stormlet dead letters")
                self._has_letters = False
            self._batches.done()
        self._out.wake()


def check_letters(context: TaskContext) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` if dead letters would be lost with the process."""
    sync_of_letters(context, "a stream", ', or say on_failure="fail_batch"')


def row_failed(name: str, message_id: object, failure: Failure) -> Exception:
    """The error of a batch that fails because of one of its rows."""
    error = SparkFailed(f"{name}: {_where(message_id)} {failure}")
    error.__cause__ = failure.exception or TupleFailed(failure)
    return error


def _where(message_id: object) -> str:
    if not isinstance(message_id, Origin):
        return str(message_id)
    return f"batch {message_id.epoch}: row {message_id.row} of partition {message_id.partition}"
