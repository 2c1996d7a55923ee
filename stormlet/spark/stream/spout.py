"""The spout of a stream, which reads it in epochs where messages belong to epochs."""

from __future__ import annotations

from collections.abc import Awaitable

from stormlet.core.outcomes import Failure
from stormlet.model.components import EpochSpout, SpoutCollector, TaskContext
from stormlet.spark.stream.epoch_reader import EpochStreamReader
from stormlet.spark.stream.reader import OnFailure, OpenBatches, StreamReader


class StreamSpout(EpochSpout[object]):
    """Has a reader that emits the rows of batches at least once, or batches as epochs."""

    needs_acks = True
    single_task = True
    restartable = False  # the query has a policy of its own
    resumes = True

    def __init__(self, batches_of: OpenBatches, on_failure: OnFailure) -> None:
        self.buries = on_failure == "dead_letter"
        self._batches_of = batches_of
        self._on_failure: OnFailure = on_failure
        self._reader: StreamReader | EpochStreamReader

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start the query."""
        kind = EpochStreamReader if context.in_epochs else StreamReader
        self._reader = kind(self._batches_of, self._on_failure)
        await self._reader.open(context, out)

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Emit the next rows, or wait for a batch."""
        return self._reader.next_tuple(out)

    def fail(self, message_id: object, failure: Failure) -> None:
        """Note that a row is not replayed any more."""
        if isinstance(self._reader, StreamReader):
            self._reader.fail(message_id, failure)

    async def drain(self) -> None:
        """End the epoch that is open, or give it back."""
        await self._reader.drain()

    async def close(self) -> None:
        """Stop the query."""
        await self._reader.close()
