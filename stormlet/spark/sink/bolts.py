"""The bolts of ``DataFrameSink``: one writes each row at least once, one keeps rows until their epoch is committed.

See :mod:`stormlet.spark.epochs` for the theory of operation of the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stormlet.core.tuples import HELD, Tuple
from stormlet.errors import InvalidEmit, NotExactlyOnce, SparkFailed, StormletError
from stormlet.model.components import BatchBolt, Collector, TaskContext
from stormlet.report.statistics import Progress
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.epochs import Epochs, EpochTarget, SourceKey
from stormlet.spark.frames import Origin
from stormlet.spark.sink.portions import FIRST_AT_ONCE, Portions
from stormlet.spark.sink.writer import EpochWriter, SparkWriter
from stormlet.spark.threads import CallThread

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table

R = TypeVar("R")
W = TypeVar("W", bound=SparkWriter)


class Begun:
    """The sinks of a run that have begun: a restarted task must not replace rows that were written before."""

    def __init__(self) -> None:
        self._components = set[str]()

    def is_first(self, component: str) -> bool:
        """True for the first task of the sink that asks."""
        first = component not in self._components
        self._components.add(component)
        return first


class WritingBolt(BatchBolt[Any, None], Generic[W]):
    """Converts batches and has them written by a writer, which blocks, each in a thread of its own: rows are converted
    while others are being written."""

    needs_acks = True
    resets_timeouts = True

    def __init__(self, writer: W, size: int, within: float) -> None:
        self.size = size
        self.within = within
        self._writer = writer
        self._thread: CallThread
        self._conversions: CallThread
        self._report: Callable[[Progress], None]
        self._many: type[RecordBatch]
        self._written = 0

    def weight(self, value: object) -> int:
        """The number of rows in a value: a record batch has many, anything else is one."""
        return value.num_rows if isinstance(value, self._many) else 1

    async def prepare(self, context: TaskContext) -> None:
        """Find Spark, or start it, and check that the columns can be written."""
        from pyarrow import RecordBatch

        self._many = RecordBatch
        self._report = context.report_progress
        task = f"{context.component}[{context.task_index}]"
        self._thread, self._conversions = CallThread(task), CallThread(f"{task} rows")
        first = context.shared.one(Begun).is_first(context.component)
        try:
            await self._thread.call(partial(self._writer.open, context.inputs, first=first))
            self._opened(context)
        except BaseException:
            self._thread.abandon()
            raise

    async def cleanup(self) -> None:
        """Wait for the end of what was interrupted, and end the threads."""
        await self._conversions.close()
        await self._thread.close()

    def _opened(self, context: TaskContext) -> None:
        """Go on with the start: the writer is open."""

    async def _convert(self, values: Sequence[object]) -> Batch:
        return await self._conversions.call(partial(self._writer.convert, values))

    async def _write(self, write: Callable[[], R]) -> R:
        """Write in the thread; if the wait is cancelled, the write is interrupted."""
        try:
            return await self._thread.call(write)
        except asyncio.CancelledError:
            self._writer.interrupt()
            raise

    def _note(self, rows: int) -> None:
        """Report that so many more rows are written."""
        self._written += rows
        self._report(Progress(self._written, None, "rows written"))


class BatchWriter(WritingBolt[SparkWriter]):
    """Writes each row at least once. Its batches are portions of a write, and converted while another one goes on."""

    def __init__(self, writer: SparkWriter, size: int, within: float) -> None:
        super().__init__(writer, size, within)
        self.at_once = FIRST_AT_ONCE
        self._portions: Portions

    def _opened(self, context: TaskContext) -> None:
        self._portions = Portions(self._convert, self._write_tables, self._allow)

    async def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> None:
        """Write the batch, and reject the rows that do not fit. Raises :class:`~stormlet.errors.InvalidEmit` for such
        a row without a message, as it could not become a dead letter."""
        batch = await self._portions.written([tup.value for tup in tups])
        misfits = batch.misfits
        self._note(batch.table.num_rows)
        for place, why in misfits.items():
            out.fail(tups[place], why, permanent=True)
        unowned = [why for place, why in misfits.items() if not tups[place].roots]
        if unowned:
            self._ack(tups, out)  # else what is written would fail with them
            raise InvalidEmit(
                f"rows that belong to no message do not fit their columns, the first of {len(unowned):,}: {unowned[0]}"
            )

    def _ack(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> None:
        for tup in tups:
            if tup.state <= HELD:
                out.ack(tup)

    async def _write_tables(self, tables: Sequence[Table]) -> None:
        await self._write(partial(self._writer.write, tables))

    def _allow(self, at_once: int) -> None:
        self.at_once = at_once


class Stale(StormletError):
    """A row that reached a sink belongs to an attempt that is over."""


class EpochSink(WritingBolt[EpochWriter]):
    """Acks a row once it is kept for its attempt. The source's commit writes the rows kept."""

    needs_epochs = True

    def __init__(self, writer: EpochWriter, size: int, within: float) -> None:
        super().__init__(writer, size, within)
        self._epochs: Epochs
        self._component = ""
        self._ended = False

    def _opened(self, context: TaskContext) -> None:
        self._component = context.component
        self._epochs = context.shared.one(Epochs)
        target = EpochTarget(self._writer.destination, self._check, self.write_epoch)
        self._epochs.register(context.component, target)

    async def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> None:
        """Keep the rows of the attempt under way. Raises :class:`~stormlet.errors.NotExactlyOnce` for a row without
        an epoch."""
        attempt = self._epochs.attempt
        of_attempt = [tup for tup in tups if self._counts(tup, out)]
        batch = await self._convert([tup.value for tup in of_attempt])
        if attempt != self._epochs.attempt:
            raise Stale("the attempt at its epoch does not count any more")
        for place, why in batch.misfits.items():
            out.fail(of_attempt[place], why, permanent=True)
        self._epochs.keep(self._component, batch.table)

    async def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[Table]) -> None:
        """Replace all rows of the epoch by these. Raises :class:`~stormlet.errors.SparkFailed`."""
        if self._ended:
            raise SparkFailed(f"a task of {self._component!r} has died, and the next one is not ready yet")
        await self._write(partial(self._writer.write_epoch, source, epoch, tables))
        self._note(sum(table.num_rows for table in tables))

    async def cleanup(self) -> None:
        """Wait for the calls under way, and end the threads."""
        self._ended = True
        await super().cleanup()

    async def _check(self, source: SourceKey) -> None:
        await self._thread.call(partial(self._writer.check, source))

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
        if origin.epoch == attempt.epoch and tup.attempt == attempt.number:
            return True
        out.fail(tup, "it comes of an attempt at its epoch that does not count any more")
        return False
