"""The spout of a stream whose batches are epochs, which exactly-once sinks write (see
:mod:`stormlet.spark.epochs`)."""

from __future__ import annotations

from collections.abc import Awaitable

from stormlet.core.outcomes import Failure
from stormlet.errors import SparkFailed
from stormlet.model.components import SpoutCollector, TaskContext
from stormlet.spark.epoch_emitter import EpochEmitter, EpochSpout, Record
from stormlet.spark.epochs import Epochs, SourceKey
from stormlet.spark.source.puller import MOST_ROWS
from stormlet.spark.stream.reader import (
    BatchReader,
    OnFailure,
    OpenBatches,
    check_letters,
    row_failed,
)


class EpochStreamReader(EpochSpout):
    """Emits the rows of a batch until an attempt succeeds. The batch is done once the sinks have written it; its
    number is that of the epoch."""

    def __init__(self, batches_of: OpenBatches, on_failure: OnFailure) -> None:
        self._batches_of = batches_of
        self._fails_batch = on_failure == "fail_batch"
        self._batches: BatchReader
        self._drain_timeout: float | None = None
        self._name = ""
        self._error: Exception | None = None
        self._settling = False

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start the query."""
        if not self._fails_batch:
            check_letters(context)
        self._name = f"{context.topology}: {context.component}"
        self._drain_timeout = context.config.drain_timeout
        self._batches = self._batches_of(context, out)
        await self._batches.open()
        source = SourceKey(f"query-{self._batches.query}")
        self.emitter = EpochEmitter(context, out, source, self._seal)
        try:
            await context.shared.one(Epochs).check(source)
        except BaseException:
            await self._batches.close()
            raise

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Emit the next rows of the batch, or wait for one. When all are emitted, wait until everything is settled;
        then have the sinks write the epoch, or emit the rows again."""
        if self._error is not None:
            return self._give_back(self._error, out)
        if self.emitter.committing:  # Spark gives the next batch when this one is done
            return self.emitter.committed()
        if self._batches.batch is None:
            return self._next_batch()
        if not self._batches.whole:
            self._read()
        return self.emitter.proceed(MOST_ROWS) if self.emitter.to_do else None

    def fail(self, message_id: object, failure: Failure) -> None:
        """Note that a row has failed, and with it this attempt. If it is given up, the batch may fail as well."""
        super().fail(message_id, failure)
        account = self.emitter.account
        if self._fails_batch and self._error is None and account is not None and any(account.given_up()):
            self._error = row_failed(self._name, message_id, failure)

    async def close(self) -> None:
        """Finish the batch if everything is settled; otherwise it comes again. Stop the query."""
        try:
            if self._error is None:
                await self._finish()
        finally:
            await self._batches.close()

    async def _finish(self) -> None:
        emitted = not self.emitter.committing and self._batches.batch is not None
        if emitted and await self._batches.was_read():
            self.emitter.complete()
        await self.emitter.close(self._drain_timeout)

    async def _next_batch(self) -> None:
        batch = await self._batches.next_batch()
        self.emitter.begin(batch.number)

    def _read(self) -> None:
        try:
            values, origins = self._batches.rows(MOST_ROWS)
        except SparkFailed as error:
            self._error = error
            return
        self.emitter.add_all(origins, values)
        if self._batches.whole:
            self.emitter.complete()

    def _give_back(self, error: Exception, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Have the batch come again, once nothing of it is under way: a bolt that holds a row of it would join it
        with those of the next attempt."""
        if not self._settling:
            self._settling = True
            out.pause_until_settled()
            return None
        self._settling = False
        return self._fail(error, out)

    async def _fail(self, error: Exception, out: SpoutCollector[object]) -> None:
        await self._batches.fail(error)
        self.emitter.abandon()
        self._error = None
        out.wake()

    def _seal(self, epoch: int) -> Record:
        return self._written

    async def _written(self) -> None:
        self._batches.done()
