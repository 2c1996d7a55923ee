"""The spout that reads a DataFrame and notes what is done, so that another run goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from stormlet.core.components import SpoutCollector, TaskContext
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.errors import EndOfStream, InvalidTopology
from stormlet.spark.beside import beside
from stormlet.spark.checkpoint import Checkpoint, CheckpointFile, Fingerprint
from stormlet.spark.done_rows import DoneRows
from stormlet.spark.fingerprint import fingerprint_in_order, fingerprint_of
from stormlet.spark.keys import Key
from stormlet.spark.ordering import WHOLE, OrderedRead
from stormlet.spark.origins import Origin
from stormlet.spark.packing import ALL
from stormlet.spark.reader import FrameReader
from stormlet.spark.reading import Done, Read

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

SAVE_EVERY = 1.0
"""Seconds between two checkpoints: what was done since the last one may come again."""


class ResumingReader(FrameReader):
    """Reads what the checkpoint does not have, and keeps the checkpoint."""

    needs_acks = True
    resumes = True

    def __init__(
        self, frame: DataFrame, read: Read, file: CheckpointFile, columns: Sequence[str], *, in_batches: bool
    ) -> None:
        super().__init__(frame, read)
        self._ordered = read if isinstance(read, OrderedRead) else None
        self._file = file
        self._columns = columns
        self._in_batches = in_batches
        self._fingerprint: Fingerprint | None = None
        self._done = DoneRows({})
        self._sync_letters: Callable[[], None] = lambda: None
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._has_letters = False
        self._read_to_end = False

    async def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        """Load the checkpoint, and pull what is not in it."""
        if context.sync_dead_letters is None:
            raise InvalidTopology(
                "checkpoint= needs a place where dead letters outlive the process; run with dead_letters=..."
            )
        self._sync_letters = context.sync_dead_letters
        done = await beside(self._load, "stormlet spark checkpoint")
        self._done = DoneRows(done)
        self.pull(done, context, out)

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
        """A message is done."""
        origin = cast("Origin", message_id)
        self._done.settled(origin.partition, origin.row)
        self._check_saved()
        if self._saving is None:
            self._saving = asyncio.get_running_loop().create_task(
                self._save_soon(), name="stormlet checkpoint"
            )

    def fail(self, message_id: object, failure: Failure) -> None:
        """The dead letters have it, and so it is done; what is left over at the end is not."""
        if failure.kind is not FailureKind.SHUTDOWN:
            self._has_letters = True
            self.ack(message_id)

    async def close(self) -> None:
        """Stop to pull, and save what is done."""
        try:
            await super().close()
            self._closing.set()
            if self._saving is not None:
                await self._saving
                await self._save()
        finally:
            self._file.release()

    def _load(self) -> Done:
        ordered = self._ordered
        if ordered is None:
            self._fingerprint = fingerprint_of(self.frame, self._columns)
            return self._file.load(self._fingerprint).done
        self._fingerprint = fingerprint_in_order(self.frame, self._columns, ordered.order_by)
        found = self._file.load(self._fingerprint)
        ordered.trail.begin(found.done.get(WHOLE, 0), found.key)
        return found.done

    def _check_saved(self) -> None:
        """Raises what the last checkpoint has failed with."""
        if self._saving is not None and self._saving.done():
            saving, self._saving = self._saving, None
            saving.result()

    async def _save_soon(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), SAVE_EVERY)
        await self._save()

    async def _save(self) -> None:
        fingerprint = self._fingerprint
        assert fingerprint is not None, "it was loaded first"
        has_letters, self._has_letters = self._has_letters, False
        done = self._done.prefixes(fingerprint.partitions if self._read_to_end else self.partition)
        checkpoint = Checkpoint(fingerprint, done, self._key_of(done))

        def save() -> None:
            if has_letters:  # they must be there before the checkpoint says so
                self._sync_letters()
            self._file.save(checkpoint)

        await beside(save, "stormlet spark checkpoint")

    def _key_of(self, done: Done) -> Key:
        """The key of the last row that is done; none where there is no order by a key, or nothing left to read."""
        rows = done.get(WHOLE, 0)
        if self._ordered is None or rows == ALL:
            return ()
        self._ordered.trail.forget(rows)
        return self._ordered.trail.last_of(rows)
