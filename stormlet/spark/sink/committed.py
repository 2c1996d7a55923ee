"""The bolt of ``exactly_once=True``: a committer whose rows Spark writes, epoch by epoch.

Rows are converted to Arrow in batches, and those that do not fit are rejected. The table of a batch is kept with its
epoch, as bytes (law X9). When the epoch is durable Spark writes all of its tables into a directory of their own,
``source=<topology>-<bolt>-<line>/epoch=<number>``, which is replaced as a whole: so it is the same however often it is
written. Epochs without rows have no directory. The next epoch runs meanwhile. A run that ends and has written nothing
leaves an empty ``epoch=0``, so that there is something to read.

Below a stream without ``state=`` an epoch is a batch, ``source=query-<id>/epoch=<number of the batch>``. If the process
dies before Spark has noted it, it comes again, and may have other rows: so one without rows is written, too.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from stormlet.core.state.outgoing import Epoch
from stormlet.core.tuples import Tuple
from stormlet.errors import NotExactlyOnce, SparkFailed
from stormlet.model.components import Collector, TaskContext
from stormlet.model.state.committers import BatchCommitter
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.destinations import Destinations
from stormlet.spark.sink.bolts import WritingBolt
from stormlet.spark.sink.writer import EpochWriter, SourceKey

if TYPE_CHECKING:
    from pyarrow import Table

logger = logging.getLogger(__name__)

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before each new try of a write that failed."""
NO_LINE = "none"
"""Stands for a line of epochs in the name of a directory without rows."""
DEAD = "its message has failed meanwhile"


class CommittedSink(WritingBolt[EpochWriter], BatchCommitter):
    """Keeps rows with their epoch, and writes each epoch when it is durable."""

    def __init__(self, writer: EpochWriter, size: int, within: float) -> None:
        super().__init__(writer, size, within)
        self._component = ""
        self._owner = ""
        self._is_durable = True
        self._has_ended = False
        """True if its input has ended."""
        self._others: Sequence[Epoch] | None = None
        """The last epoch of each other line that has rows there; None before they were looked for."""

    def _opened(self, context: TaskContext) -> None:
        self._component = context.component
        self._owner = owner_of(context.topology, context.component)
        self._is_durable = context.is_durable
        destinations = context.shared.one(Destinations)
        if not self._is_durable:
            destinations.check(self._component, self._writer.destination)
        destinations.add(self._component, self._writer.destination)

    async def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> None:
        """Keep the rows of the batch, and reject those that do not fit."""
        alive = self._alive(tups, out)
        batch, kept = await self._conversions.call(partial(self._packed, [tup.value for tup in alive]))
        if self.keeper.dead_among(alive):  # it has failed elsewhere in that time
            return await self.execute_batch(alive, out)
        for place, why in batch.misfits.items():
            out.fail(alive[place], why, permanent=True)
        if batch.table.num_rows:
            misfits = batch.misfits
            fitting = [tup for place, tup in enumerate(alive) if place not in misfits] if misfits else alive
            self.keeper.keep(kept, fitting)
        return None

    async def commit(self, epoch: Epoch, rows: Sequence[bytes]) -> None:
        """Write an epoch. Raises :class:`~stormlet.errors.NotExactlyOnce` if another line of epochs has rows there."""
        tables = [unpacked(each) for each in rows]
        for pause in PAUSES:
            try:
                return await self._write_epoch(epoch, tables)
            except SparkFailed as error:
                logger.warning("%s: %s is written again in %g s: %s", self._component, epoch, pause, error)
                await asyncio.sleep(pause)
        return await self._write_epoch(epoch, tables)

    async def finish(self, out: Collector[None]) -> None:
        """Note that there is no more to come."""
        self._has_ended = True

    async def cleanup(self) -> None:
        """Have a reader find the columns where there is nothing else, and end the threads."""
        try:
            if self._has_ended and self._is_durable and self._others is None:  # else there is something
                await self._write(partial(self._writer.write_nothing, SourceKey(self._owner, NO_LINE)))
        finally:
            await super().cleanup()

    async def _write_epoch(self, epoch: Epoch, tables: Sequence[Table]) -> None:
        await self._write(partial(self._replace, epoch, tables))
        self._note(sum(table.num_rows for table in tables))

    def _replace(self, epoch: Epoch, tables: Sequence[Table]) -> None:
        if self._others is None:
            self._others = self._lines_of_states(epoch) if epoch.by_source else self._checked_lines(epoch)
        if all(map(epoch.follows, self._others)):
            source = SourceKey(epoch.line) if epoch.by_source else SourceKey(self._owner, epoch.line)
            self._writer.write_epoch(source, epoch.number, tables)

    def _lines_of_states(self, epoch: Epoch) -> Sequence[Epoch]:
        """Refuse rows of batches that a state has had written, or another query."""
        for place, _, last in self._writer.epochs_by_line(self._owner):
            if last:
                raise NotExactlyOnce(
                    f"{self._component}: {place} has rows that were written by a state, and {epoch} may be one of its "
                    f"epochs; run with that state=, write elsewhere, or remove it"
                )
        self._writer.claim_line(self._component, epoch.line, self._owner)
        return ()

    def _checked_lines(self, epoch: Epoch) -> Sequence[Epoch]:
        """Refuse rows that are there already, by a state that was rewound or removed since (law X10)."""
        for place in self._writer.old_epochs():
            raise NotExactlyOnce(
                f"{self._component}: {place} has rows that an earlier version of stormlet has written, and they may be "
                f"there twice then; remove it, or rename it if it has rows of something else; or write elsewhere"
            )
        others: list[Epoch] = []
        for place, line, last in self._writer.epochs_by_line(self._owner):
            other = Epoch(last, line)
            try:
                epoch.follows(other)
            except ValueError as error:
                raise NotExactlyOnce(
                    f"{self._component}: {place} has rows that would be there twice: {error}; or write elsewhere"
                ) from error
            if line != epoch.line:
                others.append(other)
        return others

    def _alive(self, tups: Sequence[Tuple[Any]], out: Collector[None]) -> Sequence[Tuple[Any]]:
        dead = dict.fromkeys(self.keeper.dead_among(tups))
        for tup in dead:
            out.fail(tup, DEAD)
        return [tup for tup in tups if tup not in dead] if dead else tups

    def _packed(self, values: Sequence[object]) -> tuple[Batch, bytes]:
        batch = self._writer.convert(values)
        return batch, packed(batch.table)


def owner_of(topology: str, component: str) -> str:
    """Return the name of a sink in the names of directories; it begins with a letter, so that Spark reads it as
    text."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{topology}-{component}")
    return name if name[0].isalpha() else f"t{name}"


def packed(table: Table) -> bytes:
    """Return a table as bytes."""
    import pyarrow as pa

    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return stream.getvalue().to_pybytes()


def unpacked(kept: bytes) -> Table:
    """Return the table that was packed."""
    import pyarrow as pa

    return cast("Table", cast("Any", pa.ipc.open_stream(kept)).read_all())
