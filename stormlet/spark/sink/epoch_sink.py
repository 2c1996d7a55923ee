"""The sink of ``exactly_once=True``: a bolt that keeps rows until their epoch is committed, and a writer of epochs.

See :mod:`stormlet.spark.epochs` for the theory of operation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from stormlet.core.schema import Schema
from stormlet.core.tuples import Tuple
from stormlet.errors import InvalidTopology, NotExactlyOnce, SparkFailed, StormletError
from stormlet.model.components import BatchBolt, Collector, TaskContext
from stormlet.report.statistics import Progress
from stormlet.spark.arrow.batches import rows_in
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.epochs import Attempt, Epochs, SourceKey
from stormlet.spark.files import Folder
from stormlet.spark.frames import Origin
from stormlet.spark.sink.writer import SparkWriter
from stormlet.spark.threads import CallThread

if TYPE_CHECKING:
    from pyarrow import Table

SOURCE, EPOCH = "source", "epoch"
"""The columns that a reader finds in addition to the sink's own, from the names of directories."""
ROWS_PER_FILE = 1_000_000


class Stale(StormletError):
    """A row that reached a sink belongs to an attempt that is over."""


class EpochWriter(Protocol):
    """The writer of one task of an exactly-once sink. Methods block."""

    destination: str
    """The place it writes to, once it is open."""

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """Prepare for writes; ``first`` is true in one task of the sink."""
        ...

    def convert(self, values: Sequence[object]) -> Batch:
        """The table of the values that fit."""
        ...

    def check(self, source: SourceKey) -> None:
        """See :meth:`stormlet.spark.epochs.EpochTarget.check`."""
        ...

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[Table]) -> None:
        """See :meth:`stormlet.spark.epochs.EpochTarget.write`."""
        ...

    def interrupt(self) -> None:
        """Make a write that is under way in another thread fail soon."""
        ...


class EpochSink(BatchBolt[Any, None]):
    """Acks a row once it is kept for its attempt. The source's commit writes the rows kept."""

    needs_acks = True
    needs_epochs = True
    resets_timeouts = True

    def __init__(self, writer: EpochWriter, size: int, within: float) -> None:
        self.size = size
        self.within = within
        self._writer = writer
        self._thread: CallThread
        self._epochs: Epochs
        self._component = ""
        self._ended = False
        self._report: Callable[[Progress], None]
        self._written = 0

    def weight(self, value: object) -> int:
        """The number of rows in a value."""
        return rows_in(value)

    @property
    def destination(self) -> str:
        """See :attr:`stormlet.spark.epochs.EpochTarget.destination`."""
        return self._writer.destination

    async def prepare(self, context: TaskContext) -> None:
        """Find Spark, or start it, and check that the columns can be written."""
        self._component = context.component
        self._report = context.report_progress
        self._epochs = context.shared.one(Epochs)
        self._thread = CallThread(f"{context.component}[{context.task_index}]")
        try:
            await self._thread.call(partial(self._writer.open, context.inputs, first=context.task_index == 0))
            self._epochs.register(context.component, self)
        except BaseException:
            self._thread.abandon()
            raise

    async def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> None:
        """Keep the rows of the attempt under way. Raises :class:`~stormlet.errors.NotExactlyOnce` for a row without
        an epoch."""
        attempt = self._epochs.attempt
        of_attempt = [tup for tup in tups if self._counts(tup, out)]
        batch = await self._thread.call(partial(self._writer.convert, [tup.value for tup in of_attempt]))
        if attempt != self._epochs.attempt:
            raise Stale("the attempt at its epoch does not count any more")
        for place, why in batch.misfits.items():
            out.fail(of_attempt[place], why, permanent=True)
        self._epochs.keep(self._component, batch.table)

    async def check(self, source: SourceKey) -> None:
        """See :meth:`stormlet.spark.epochs.EpochTarget.check`."""
        await self._thread.call(partial(self._writer.check, source))

    async def write(self, source: SourceKey, epoch: int, tables: Sequence[Table]) -> None:
        """See :meth:`stormlet.spark.epochs.EpochTarget.write`."""
        if self._ended:
            raise SparkFailed(f"a task of {self._component!r} has died, and the next one is not ready yet")
        try:
            await self._thread.call(partial(self._writer.write_epoch, source, epoch, tables))
        except asyncio.CancelledError:
            self._writer.interrupt()
            raise
        self._written += sum(table.num_rows for table in tables)
        self._report(Progress(self._written, None, "rows written"))

    async def cleanup(self) -> None:
        """Wait for the call under way, and end the thread."""
        self._ended = True
        await self._thread.close()

    def _counts(self, tup: Tuple[Any], out: Collector[None]) -> bool:
        """True if the row belongs to the attempt under way. A row of an older one is failed, not dropped: what it is
        joined with would be lost."""
        origin, attempt = tup.origin, self._epochs.attempt
        if not tup.roots or not isinstance(origin, Origin) or origin.epoch is None or attempt.epoch is None:
            self._epochs.spoilt = True
            raise NotExactlyOnce(
                f"bolt {self._component!r} writes exactly once and has got {tup!r}, which comes from no row of the "
                f"source: anchor what is emitted to the inputs it comes of, and send what finish, tick or running.emit "
                f"emit, and dead letters that are replayed, to a sink without exactly_once"
            )
        if Attempt(origin.epoch, tup.attempt) == attempt:
            return True
        out.fail(tup, "it comes of an attempt at its epoch that does not count any more")
        return False


class SparkEpochWriter(SparkWriter):
    """Writes an epoch as the directory ``source=<key>/epoch=<number>``, which is replaced as a whole."""

    destination = ""
    """See :attr:`EpochWriter.destination`."""
    _folder: Folder

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """See :meth:`stormlet.spark.sink.writer.SparkWriter.open`."""
        super().open(inputs, first=first)
        taken = [name for name in self._schema.names if name.lower() in (SOURCE, EPOCH)]
        if taken:
            raise InvalidTopology(
                f"exactly_once=True writes to directories source=.../epoch=..., which are columns to a reader, and "
                f"there is a column {taken[0]!r} already; rename it"
            )
        path = self._destination.path
        assert path is not None, "a table is refused before"
        self._folder = Folder(self._session, path)
        self.destination = f"{self._destination.format} at {self._folder}"

    def convert(self, values: Sequence[object]) -> Batch:
        """See :meth:`EpochWriter.convert`."""
        return self._tables.of(values)

    def check(self, source: SourceKey) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` if the same source was written there in epochs of another
        size: its rows would be there twice."""
        ours = f"{SOURCE}={source}"
        for other in self._folder.names():
            if other.startswith(f"{SOURCE}={source.name}-") and other != ours:
                raise InvalidTopology(
                    f"{self._folder}/{other} has rows of the same DataFrame in epochs of another size, and they would "
                    f"be there twice; give the same epoch_rows= as then, write elsewhere, or remove it"
                )

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[Table]) -> None:
        """See :meth:`stormlet.spark.epochs.EpochTarget.write`."""
        import pyarrow as pa

        rows = sum(table.num_rows for table in tables)
        names = (f"{SOURCE}={source}", f"{EPOCH}={epoch}")
        folder = self._destination.below(*names)

        def replace() -> None:
            frame = self._frame(pa.concat_tables(tables) if rows else [], self._schema)
            folder.replace(frame.coalesce(1 + rows // ROWS_PER_FILE))
            self._folder.sync(*names)

        self._in_turn(f"writing {rows:,} rows to {folder}", replace)
