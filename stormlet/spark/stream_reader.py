"""The spout of a stream whose rows are done one by one: each at least once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import InvalidTopology, SparkFailed, TupleFailed
from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.spark.batch_reader import BatchReader
from stormlet.spark.beside import beside
from stormlet.spark.origins import Origin

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
