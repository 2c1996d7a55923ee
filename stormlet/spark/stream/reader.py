"""The spout of a stream whose rows are done one by one: each at least once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import EndOfStream, InvalidTopology, SparkFailed, TupleFailed
from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.spark.files import Claim
from stormlet.spark.frames import Origin
from stormlet.spark.source.puller import Chunks
from stormlet.spark.stream.keeper import QueryKeeper
from stormlet.spark.stream.query import MicroBatch
from stormlet.spark.threads import beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Pull: TypeAlias = Callable[["DataFrame"], Chunks]
"""Begins to pull a batch."""
TakeClaim: TypeAlias = Callable[[], Claim | None]
"""Keeps other runs from the checkpoint."""

LOOKS = 100
"""How often it is looked, at the end, whether a batch has more rows than were read."""
LOOK = 0.01
"""Seconds from one look to the next."""


class BatchReader:
    """The batch in hand, if there is one, and how far it was read."""

    def __init__(self, keeper: QueryKeeper, pull: Pull, take_claim: TakeClaim) -> None:
        self.batch: MicroBatch | None = None
        """The one that is read, or waits for its verdict."""
        self.whole = False
        """Whether all its rows were read."""
        self._keeper = keeper
        self._pull = pull
        self._take_claim = take_claim
        self._claim: Claim | None = None
        self._chunks: Chunks
        self._values: Iterator[object] = iter(())
        self._partition = 0
        self._row = 0

    @property
    def query(self) -> str:
        """The id of the query, the same in each run from one checkpoint."""
        return self._keeper.id

    async def open(self) -> None:
        """Start the query; raises what that has failed with, and :class:`~stormlet.errors.InvalidTopology` if another
        run has its checkpoint."""
        self._claim = await beside(self._take_claim, "stormlet spark checkpoint")
        try:
            await self._keeper.open()
        except BaseException:
            self._release()
            raise

    async def next_batch(self) -> MicroBatch:
        """Wait for a batch, and begin to read it. See :meth:`stormlet.spark.stream.keeper.QueryKeeper.next_batch`."""
        batch = await self._keeper.next_batch()
        self._chunks = self._pull(batch.frame)
        self.batch, self.whole, self._values = batch, False, iter(())
        return batch

    def rows(self, most: int) -> tuple[list[object], list[Origin]]:
        """The values of the next rows, at most so many, if they are there; and where each comes from. Raises
        :class:`~stormlet.errors.SparkFailed`."""
        values = list(islice(self._values, most))
        if not values and self._next_chunk():
            values = list(islice(self._values, most))
        first, self._row = self._row, self._row + len(values)
        number = self._in_hand.number
        return values, [Origin(self._partition, row, number) for row in range(first, self._row)]

    async def was_read(self) -> bool:
        """Whether nothing more is to be read: to be asked at the end, as a row that comes nevertheless is lost. Waits a
        moment for Spark to say so."""
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
        """Everything of the batch in hand is settled."""
        self._in_hand.done()
        self.batch = None

    async def fail(self, error: Exception) -> None:
        """The batch in hand shall come again."""
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

    def _next_chunk(self) -> bool:
        try:
            chunk = self._chunks.take()
        except EndOfStream:
            self.whole = True
            return False
        if chunk is None:
            return False
        self._values, self._partition, self._row = iter(chunk.values), chunk.partition, chunk.first_row
        return True


logger = logging.getLogger(__name__)

OnFailure: TypeAlias = Literal["dead_letter", "fail_batch"]
"""What becomes of a row that is given up: it goes to the dead letters, or its batch fails and comes again."""
MOST_ROWS = 16
"""How many rows one call of ``next_tuple`` emits."""

OpenBatches: TypeAlias = Callable[[TaskContext, SpoutCollector[object]], BatchReader]
"""Makes what a spout reads its batches with."""


class StreamReader(ReliableSpout[object]):
    """Emits the rows of a batch, which is done when all of them are settled."""

    needs_acks = True
    single_task = True
    restartable = False  # the query has a policy of its own
    resumes = True

    def __init__(self, batches_of: OpenBatches, on_failure: OnFailure) -> None:
        self.buries = on_failure == "dead_letter"
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
        if self.buries:
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
            out.pause_until_settled(own=True)
            return None
        return self._conclude()

    def fail(self, message_id: object, failure: Failure) -> None:
        """A row is not replayed any more: the dead letters have it, or the batch is to come again."""
        if failure.kind is not FailureKind.SHUTDOWN and self.buries:
            self._has_letters = True
        elif self._error is None:
            self._error = row_failed(self._name, message_id, failure)

    async def close(self) -> None:
        """Finish the batch if it is settled, else let it come again; and stop the query."""
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
        """Whether no more of this batch is to be emitted."""
        return self._batches.whole or self._error is not None

    async def _next_batch(self) -> None:
        await self._batches.next_batch()
        self._error = None

    def _emit(self, out: SpoutCollector[object]) -> None:
        most = MOST_ROWS if self._most_pending is None else min(MOST_ROWS, self._most_pending - out.pending)
        try:
            values, origins = self._batches.rows(most)
        except SparkFailed as error:
            self._error = error
        else:
            out.emit_many(values, message_ids=origins, origins=origins)

    async def _conclude(self) -> None:
        if self._error is not None:
            await self._batches.fail(self._error)
        else:
            if self._has_letters and self._sync_letters is not None:  # Spark will not give these rows again
                await beside(self._sync_letters, "stormlet dead letters")
                self._has_letters = False
            self._batches.done()
        self._out.wake()


def check_letters(context: TaskContext) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` if dead letters would be lost with the process."""
    if context.sync_dead_letters is None:
        raise InvalidTopology(
            "a stream needs a place where dead letters outlive the process; run with dead_letters=..., or say "
            'on_failure="fail_batch"'
        )


def row_failed(name: str, message_id: object, failure: Failure) -> Exception:
    """What a batch fails with because of one of its rows."""
    error = SparkFailed(f"{name}: {_where(message_id)} {failure}")
    error.__cause__ = failure.exception or TupleFailed(failure)
    return error


def _where(message_id: object) -> str:
    if not isinstance(message_id, Origin):
        return str(message_id)
    return f"batch {message_id.epoch}: row {message_id.row} of partition {message_id.partition}"
