"""The spouts that read a DataFrame: from its beginning, from a checkpoint on, or in epochs (see
:mod:`stormlet.spark.epochs`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, cast

import msgspec

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import EndOfStream, InvalidTopology
from stormlet.model.components import ReliableSpout, SpoutCollector, TaskContext
from stormlet.spark.epoch_emitter import EpochEmitter, EpochSpout, Record
from stormlet.spark.epochs import Epochs, SourceKey
from stormlet.spark.files import sync_of_letters
from stormlet.spark.frames import Origin
from stormlet.spark.source.checkpoint import Bookmark, Checkpoint, DoneRows
from stormlet.spark.source.plans import Fingerprint
from stormlet.spark.source.positions import FramePositions
from stormlet.spark.source.puller import Chunks, Rows, rows_per_call
from stormlet.spark.source.reading import ALL, Chunk, Done, Read, divided, rows_of
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


DIGITS = 16
"""Digits of a fingerprint that name a source: enough for all that ever write to one place."""


class EpochReader(EpochSpout):
    """Reads the rows that the checkpoint does not have, in epochs of ``rows`` rows, in the order of partitions and
    rows."""

    def __init__(self, frame: DataFrame, read: Read, bookmark: Bookmark, rows: int) -> None:
        self._chunks = Chunks(frame, read)
        self._bookmark = bookmark
        self._rows = rows
        self._epochs: Epochs
        self._epoch = 0
        self._left_of_epoch = rows
        self._rest: Chunk | None = None
        self._done: dict[int, int] = {}
        self._most_pending: int | None = None
        self._close_within: float | None = None

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Load the checkpoint, and begin to pull the other rows. Raises :class:`~stormlet.errors.InvalidTopology` if
        the sinks cannot go on with it."""
        sync_of_letters(context, "checkpoint=")
        self._most_pending = context.config.max_spout_pending
        self._close_within = context.config.drain_timeout
        self._epochs = context.shared.one(Epochs)
        found = await in_thread(self._bookmark.load, "stormlet spark checkpoint")
        try:
            source = source_key(self._bookmark.fingerprint)
            self._check_sinks(found)
            await self._epochs.check(source)
        except BaseException:
            self._bookmark.release()
            raise
        self._epoch, self._done = found.epochs, found.done
        self.emitter = EpochEmitter(context, out, source, self._seal)
        self._chunks.open(found.done, context, out)

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        """Read, emit, pause, seal or replay, whichever is next."""
        try:
            if not self.emitter.to_do and not self._read_on():
                return None
        except EndOfStream:
            return self.emitter.end()
        return self.emitter.proceed(rows_per_call(out, self._most_pending))

    async def close(self) -> None:
        """Stop pulling, finish the commit under way, and commit the epoch if it is done."""
        try:
            await self._chunks.close()
            await self.emitter.close(self._close_within)
        finally:
            self._bookmark.release()

    def _read_on(self) -> bool:
        """Add rows to the epoch; false if none has come. Raises :class:`~stormlet.errors.EndOfStream` after the last
        epoch."""
        emitter = self.emitter
        if emitter.account is None:
            emitter.begin(self._epoch)
            self._left_of_epoch = self._rows
        try:
            chunk = self._rest or self._chunks.take()
        except EndOfStream:
            self._end()
            return True
        if chunk is None:
            return False
        self._add(chunk)
        return True

    def _add(self, chunk: Chunk) -> None:
        chunk, self._rest = divided(chunk, self._left_of_epoch)
        rows_of_each = chunk.rows // len(chunk.values)  # one, or all of them
        firsts = range(chunk.first_row, chunk.first_row + chunk.rows, rows_of_each)
        self.emitter.add_all([Origin(chunk.partition, row, self._epoch) for row in firsts], chunk.values)
        self._done.update(dict.fromkeys(range(chunk.partition), ALL))
        self._done[chunk.partition] = chunk.first_row + chunk.rows
        self._left_of_epoch -= chunk.rows
        if not self._left_of_epoch:
            self.emitter.complete()

    def _end(self) -> None:
        """Complete the last epoch, with the rows that it has. A DataFrame without rows has one epoch without rows, so
        that there is something to read in the end."""
        account = self.emitter.account
        if self._epoch and not account:
            raise EndOfStream
        self._done = dict.fromkeys(range(self._bookmark.fingerprint.partitions), ALL)
        self.emitter.complete()

    def _seal(self, epoch: int) -> Record:
        self._epoch = epoch + 1
        save = partial(self._bookmark.save, dict(self._done), self._epoch, self._epochs.destinations)
        return partial(in_thread, save, "stormlet spark checkpoint")

    def _check_sinks(self, found: Checkpoint) -> None:
        here = self._epochs.destinations
        if found.epochs and found.sinks != here:
            raise InvalidTopology(
                f"the checkpoint has {found.epochs} epochs that were written to {_said(found.sinks)}, and this "
                f"topology writes to {_said(here)}, where they would be missing; write to the same places, "
                f"or take another checkpoint"
            )


def source_key(fingerprint: Fingerprint) -> SourceKey:
    """The name of a DataFrame's epochs."""
    frame = msgspec.json.encode(msgspec.structs.replace(fingerprint, epoch_rows=None))
    return SourceKey(f"frame-{sha256(frame).hexdigest()[:DIGITS]}", str(fingerprint.epoch_rows))


def _said(destinations: tuple[str, ...]) -> str:
    return " and ".join(destinations) or "no exactly-once sink"
