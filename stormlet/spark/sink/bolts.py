"""The bolt of ``DataFrameSink`` that writes each row at least once, and what it shares with that of
``exactly_once=True`` (:mod:`stormlet.spark.sink.committed`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stormlet.core.tuples import HELD, Tuple
from stormlet.errors import InvalidEmit
from stormlet.model.components import BatchBolt, Collector, TaskContext
from stormlet.report.statistics import Progress
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.sink.portions import FIRST_AT_ONCE, Portions
from stormlet.spark.sink.writer import SparkWriter
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
        self._has_ended = False
        """True if its input has ended."""

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

    async def finish(self, out: Collector[None]) -> None:
        """Note that there is no more to come."""
        self._has_ended = True

    async def cleanup(self) -> None:
        """Have a reader find the columns where there is nothing else, and end the threads."""
        try:
            if self._has_ended:
                await self._write(self._writer.write_without_rows)
        finally:
            await super().cleanup()

    def _ack(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> None:
        for tup in tups:
            if tup.state <= HELD:
                out.ack(tup)

    async def _write_tables(self, tables: Sequence[Table]) -> None:
        await self._write(partial(self._writer.write, tables))

    def _allow(self, at_once: int) -> None:
        self.at_once = at_once
