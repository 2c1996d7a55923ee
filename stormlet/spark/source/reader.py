"""The spouts that read a DataFrame row by row: from its beginning, or from a checkpoint on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import EndOfStream
from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.spark.files import sync_of_letters
from stormlet.spark.frames import Origin
from stormlet.spark.source.checkpoint import Bookmark, DoneRows
from stormlet.spark.source.puller import Chunks, Rows, rows_per_call
from stormlet.spark.source.reading import Done, Read
from stormlet.spark.threads import in_thread

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

SAVE_EVERY = 1.0
"""Seconds between two checkpoints; rows done since the last one may come again."""


class FrameReader(ReliableSpout[object]):
    """Emits the rows of a DataFrame, from its beginning."""

    single_task = True
    restartable = False  # another one would read from the beginning

    def __init__(self, frame: DataFrame, read: Read) -> None:
        self.frame = frame
        self._chunks = Chunks(frame, read)
        self._rows = Rows(self._chunks.take)
        """The rows to emit."""
        self._most_pending: int | None = None

    def open(self, context: TaskContext, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Start to pull."""
        self.pull({}, context, out)
        return None

    def pull(self, done: Done, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start to pull the rows that are not done."""
        self._most_pending = context.config.max_spout_pending
        self._chunks.open(done, context, out)

    def next_tuple(self, out: SpoutCollector[object]) -> None:
        """Emit the next rows, if they have come."""
        values, origins = self._rows.next(rows_per_call(out, self._most_pending))
        self.emit(values, origins, out)

    def emit(self, values: Sequence[object], origins: Sequence[Origin], out: SpoutCollector[object]) -> None:
        """Emit these values, each with its origin."""
        out.emit_many(values, message_ids=origins, origins=origins)

    async def close(self) -> None:
        """Cancel Spark's jobs and wait for the puller, without blocking the loop."""
        await self._chunks.close()


class ResumingReader(FrameReader):
    """Emits the rows that the checkpoint does not have, and keeps the checkpoint up to date."""

    needs_acks = True
    resumes = True

    def __init__(self, frame: DataFrame, read: Read, bookmark: Bookmark, *, in_batches: bool) -> None:
        super().__init__(frame, read)
        self._bookmark = bookmark
        self._in_batches = in_batches
        self._done = DoneRows({})
        self._sync_letters: Callable[[], None] = lambda: None
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._has_letters = False
        self._unsaved = False
        self._read_to_end = False

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Load the checkpoint, and start to pull the other rows."""
        self._sync_letters = sync_of_letters(context, "checkpoint=")
        found = await in_thread(self._bookmark.load, "stormlet spark checkpoint")
        self._done = DoneRows(found.done)
        self.pull(found.done, context, out)

    def emit(self, values: Sequence[object], origins: Sequence[Origin], out: SpoutCollector[object]) -> None:
        """Emit these values, and note that they are open."""
        for value, origin in zip(values, origins, strict=True):
            rows = cast("RecordBatch", value).num_rows if self._in_batches else 1
            self._done.emitted(origin.partition, origin.row, rows)
        super().emit(values, origins, out)

    def next_tuple(self, out: SpoutCollector[object]) -> None:
        """Emit the next rows."""
        self._check_saved()
        try:
            super().next_tuple(out)
        except EndOfStream:
            self._read_to_end = True
            raise

    def ack(self, message_id: object) -> None:
        """Note that a message is done."""
        origin = cast("Origin", message_id)
        self._done.settled(origin.partition, origin.row)
        self._unsaved = True
        self._check_saved()
        if self._saving is None:
            self._saving = asyncio.get_running_loop().create_task(
                self._save_soon(), name="stormlet checkpoint"
            )

    def fail(self, message_id: object, failure: Failure) -> None:
        """Note that a message is among the dead letters, and so done. One that is left over at the end is not."""
        if failure.kind is not FailureKind.SHUTDOWN:
            self._has_letters = True
            self.ack(message_id)

    async def close(self) -> None:
        """Stop pulling, and save the checkpoint."""
        try:
            await super().close()
            self._closing.set()
            if self._saving is not None:
                await self._saving
                await self._save()
        finally:
            self._bookmark.release()

    def _check_saved(self) -> None:
        """Raise the error of the last save, if it had one."""
        if self._saving is not None and self._saving.done():
            saving, self._saving = self._saving, None
            saving.result()

    async def _save_soon(self) -> None:
        while self._unsaved:  # more may be done while it is being written
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), SAVE_EVERY)
            await self._save()

    async def _save(self) -> None:
        self._unsaved = False
        has_letters, self._has_letters = self._has_letters, False
        partitions = self._bookmark.fingerprint.partitions
        done = self._done.prefixes(partitions if self._read_to_end else self._rows.partition)

        def save() -> None:
            if has_letters:  # first: the checkpoint counts them as done
                self._sync_letters()
            self._bookmark.save(done)

        await in_thread(save, "stormlet spark checkpoint")
