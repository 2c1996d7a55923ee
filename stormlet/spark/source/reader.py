"""The spouts that read a DataFrame: from its beginning, after what is durable in a state, from a checkpoint on, or in
epochs whose state is the checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import EndOfStream
from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.spark.destinations import Destinations
from stormlet.spark.files import sync_of_letters
from stormlet.spark.frames import Origin
from stormlet.spark.source.checkpoint import Bookmark, DoneRows
from stormlet.spark.source.positions import FramePositions
from stormlet.spark.source.puller import Chunks, Rows, rows_per_call
from stormlet.spark.source.reading import Chunk, Done, Read, divided, rows_of
from stormlet.spark.threads import in_thread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SAVE_EVERY = 1.0
"""Seconds between two checkpoints; rows done since the last one may come again."""


class FrameReader(ReliableSpout[object]):
    """Emits the rows of a DataFrame, from its beginning."""

    single_task = True
    restartable = False  # another one would read from the beginning
    resumable = True

    def __init__(self, frame: DataFrame, read: Read, columns: Sequence[str], *, in_batches: bool) -> None:
        self.frame = frame
        self.in_batches = in_batches
        """True if a value has many rows."""
        self._positions = FramePositions(frame, read, columns)
        self._chunks = Chunks(frame, read)
        self._rows = Rows(self._chunks.take)
        """The rows to emit."""
        self._most_pending: int | None = None

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start to pull, with ``state=`` after the rows that are durable."""
        done: Done = {}
        if context.is_durable:
            done = await in_thread(partial(self._positions.load, context.resume), "stormlet spark position")
        self.pull(done, context, out)

    def position_of(self, message_id: object) -> object:
        """Return the position after a message, by which another run goes on."""
        return self._positions.after(cast("Origin", message_id))

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
        if self.in_batches:
            self._positions.emitted(values, origins)
        out.emit_many(values, message_ids=origins, origins=origins)

    async def close(self) -> None:
        """Cancel Spark's jobs and wait for the puller, without blocking the loop."""
        await self._chunks.close()


class ResumingReader(FrameReader):
    """Emits the rows that the checkpoint does not have, and keeps the checkpoint up to date."""

    needs_acks = True
    resumes = True
    resumable = False

    def __init__(
        self, frame: DataFrame, read: Read, columns: Sequence[str], bookmark: Bookmark, *, in_batches: bool
    ) -> None:
        super().__init__(frame, read, columns, in_batches=in_batches)
        self._bookmark = bookmark
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
            rows = rows_of(value) if self.in_batches else 1
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


class EpochReader(FrameReader):
    """Emits rows in epochs, which are kept at the checkpoint of the spout."""

    def __init__(
        self, frame: DataFrame, read: Read, columns: Sequence[str], epoch_rows: int, *, in_batches: bool
    ) -> None:
        super().__init__(frame, read, columns, in_batches=in_batches)
        self._rows = Rows(self._up_to_the_end)
        self._epoch_rows = self._left = epoch_rows
        """Rows that the epoch still takes."""
        self._rest: Chunk | None = None

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Start to pull after the rows that are durable. Raises :class:`~stormlet.errors.InvalidTopology` where another
        sink would lack what was written before."""
        sync_of_letters(context, "checkpoint=")
        self._positions.sinks = context.shared.one(Destinations).all
        await super().open(context, out)

    def emit(self, values: Sequence[object], origins: Sequence[Origin], out: SpoutCollector[object]) -> None:
        """Emit these values, and end the epoch after its last row."""
        super().emit(values, origins, out)
        self._left -= sum(map(rows_of, values)) if self.in_batches else len(values)
        if not self._left:
            self._left = self._epoch_rows
            out.end_epoch()

    def _up_to_the_end(self) -> Chunk | None:
        """The next chunk, without what is beyond the end of the epoch; the one before was emitted."""
        chunk = self._rest or self._chunks.take()
        if chunk is not None:
            chunk, self._rest = divided(chunk, self._left)
        return chunk
