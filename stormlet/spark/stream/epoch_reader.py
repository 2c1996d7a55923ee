"""The reader of a stream whose batches are epochs (law X8): for exactly-once sinks, other committers, and state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import SparkFailed, StateUnusable
from stormlet.model.components import SourceEpoch, SpoutCollector, TaskContext
from stormlet.spark.source.puller import rows_per_call
from stormlet.spark.stream.reader import (
    BatchReader,
    OnFailure,
    OpenBatches,
    check_letters,
    logger,
    row_failed,
)
from stormlet.spark.threads import in_thread

STOPPED = Failure(FailureKind.SHUTDOWN)
NONE_DONE = -1


class EpochStreamReader:
    """Emits each batch as an epoch, under its number. Spark hears that it is done when it is durable: in the state or,
    without one, where the committers have brought it."""

    def __init__(self, batches_of: OpenBatches, on_failure: OnFailure) -> None:
        self._batches_of = batches_of
        self._fails_batch = on_failure == "fail_batch"
        self._batches: BatchReader
        self._out: SpoutCollector[object]
        self._sync_letters: Callable[[], None] | None = None
        self._most_pending: int | None = None
        self._name = ""
        self._line = ""
        self._is_durable = False
        self._done = NONE_DONE
        """The last batch that is durable in the state."""
        self._epoch: SourceEpoch | None = None
        self._error: SparkFailed | None = None
        """The reason that the batch in hand cannot be read."""

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start the query. Raises :class:`~stormlet.errors.StateUnusable` for the state of another one."""
        if not self._fails_batch:
            check_letters(context)
        self._sync_letters = context.sync_dead_letters
        self._most_pending = context.config.max_spout_pending
        self._name = f"{context.topology}: {context.component}"
        self._out = out
        self._is_durable = context.is_durable
        self._batches = self._batches_of(context, out)
        await self._batches.open()
        self._line = f"query-{self._batches.query}"
        try:
            self._go_on_after(context.resume.get(None))
        except BaseException:
            await self._batches.close()
            raise

    def _go_on_after(self, position: object) -> None:
        if position is None:
            return
        line, number = cast("tuple[str, int]", position)
        if line != self._line:
            raise StateUnusable(
                f"{self._name}: the state has the position of another query, {line}, and the checkpoint is that of "
                f"{self._line}; give the stream the checkpoint that it had, or run with another state="
            )
        self._done = number

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Emit the next rows of the batch, or wait for one; at its end wait until it is durable."""
        epoch = self._epoch
        if self._batches.batch is None:
            return self._next_batch()
        if epoch is None:
            self._epoch = out.begin_epoch(self._batches.batch.number, self._line)
        elif epoch.ended or epoch.is_told:
            return self._conclude(epoch)
        self._emit(out)
        return None

    async def _next_batch(self) -> None:
        batch = await self._batches.next_batch(self._done)
        if self._is_durable and batch.number > self._done + 1:
            raise StateUnusable(_missing(self._name, self._done, batch.number))

    def _emit(self, out: SpoutCollector[object]) -> None:
        assert self._epoch is not None, "it was begun"
        try:
            values, origins = self._batches.rows(rows_per_call(out, self._most_pending))
        except SparkFailed as error:
            self._error = error
            self._epoch.give_back(Failure(FailureKind.FAILED, reason=str(error), exception=error))
            return
        out.emit_many(values, message_ids=origins, origins=origins)
        if self._batches.whole:
            self._epoch.end()

    async def _conclude(self, epoch: SourceEpoch) -> None:
        failure = await epoch.told()
        if self._out.pending:  # dead letters are on their way to their sink
            self._out.pause_until_own_settled()
            return
        if failure is not None:
            await self._batches.fail(self._error or row_failed(self._name, epoch.blamed, failure))
        else:
            await self._sync()
            self._finish(epoch)
        self._epoch = self._error = None
        self._out.wake()

    async def _sync(self) -> None:
        if self._sync_letters is not None and not self._is_durable:  # else the state has them
            await in_thread(self._sync_letters, "stormlet dead letters")

    def _finish(self, epoch: SourceEpoch) -> None:
        assert self._batches.batch is not None, "it has just become durable"
        if self._is_durable:
            self._done = self._batches.batch.number
        self._batches.done()

    async def drain(self) -> None:
        """End the batch, if all of it was read, or give it back: it comes again in the next run."""
        epoch = self._epoch
        if epoch is None or epoch.ended or epoch.is_told:
            return
        if await self._batches.was_read():
            epoch.end()
        else:
            assert self._batches.batch is not None, "an epoch is a batch"
            number = self._batches.batch.number
            logger.warning(
                "%s: the run ends within batch %d, which comes again in the next one", self._name, number
            )
            epoch.give_back(STOPPED)

    async def close(self) -> None:
        """Note the batch if it is durable; otherwise it comes again. Stop the query."""
        epoch = self._epoch
        try:
            if epoch is not None and epoch.is_told and await epoch.told() is None and not self._out.pending:
                await self._sync()
                self._finish(epoch)
        finally:
            await self._batches.close()


def _missing(name: str, done: int, number: int) -> str:
    has = "no batch of this query" if done == NONE_DONE else f"its batches up to {done}"
    return (
        f"{name}: the state has {has}, and Spark has noted all before {number} as done, so that those between would be "
        f"missing; put an older copy of the checkpoint in its place as well, or begin anew with another checkpoint and "
        f"another state="
    )
