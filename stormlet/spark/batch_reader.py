"""Reads the rows of the micro-batches that a query offers, one batch after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from stormlet.errors import EndOfStream, SparkFailed
from stormlet.spark.chunks import Chunks
from stormlet.spark.keeping import QueryKeeper
from stormlet.spark.micro_batches import MicroBatch
from stormlet.spark.origins import Origin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Pull: TypeAlias = Callable[["DataFrame"], Chunks]
"""Begins to pull a batch."""


LOOKS = 100
LOOK = 0.01
"""Seconds between them."""


class BatchReader:
    """The batch in hand, if there is one, and how far it was read."""

    def __init__(self, keeper: QueryKeeper, pull: Pull) -> None:
        self.batch: MicroBatch | None = None
        """The one that is read, or waits for its verdict."""
        self.whole = False
        """Whether all its rows were read."""
        self._keeper = keeper
        self._pull = pull
        self._chunks: Chunks
        self._values: Iterator[object] = iter(())
        self._partition = 0
        self._row = 0

    @property
    def query(self) -> str:
        """The id of the query, the same in each run from one checkpoint."""
        return self._keeper.id

    async def open(self) -> None:
        """Start the query; raises what that has failed with."""
        await self._keeper.open()

    async def next_batch(self) -> MicroBatch:
        """Wait for a batch, and begin to read it. See :meth:`stormlet.spark.keeping.QueryKeeper.next_batch`."""
        batch = await self._keeper.next_batch()
        self._chunks = self._pull(batch.frame)
        self.batch, self.whole, self._values = batch, False, iter(())
        return batch

    def rows(self, most: int) -> list[tuple[Origin, object]]:
        """The next rows, at most so many, if they are there. Raises :class:`~stormlet.errors.SparkFailed`."""
        values = list(islice(self._values, most))
        if not values and self._next_chunk():
            values = list(islice(self._values, most))
        first, self._row = self._row, self._row + len(values)
        return [(self._origin(first + place), value) for place, value in enumerate(values)]

    async def was_read(self) -> bool:
        """Whether nothing more is to be read: to be asked at the end, as a row that comes nevertheless is lost. Waits a
        moment for Spark to say so."""
        for _ in range(LOOKS):
            try:
                if self.rows(1) or self.whole:
                    break
            except SparkFailed:
                break
            await asyncio.sleep(LOOK)
        return self.whole

    def done(self) -> None:
        """Everything of the batch in hand is settled."""
        self._in_hand.done()
        self.batch = None

    async def fail(self, error: Exception) -> None:
        """The batch in hand shall come again."""
        await self._chunks.close()
        self._in_hand.fail(error)
        self.batch = None

    async def close(self) -> None:
        """Stop the query. A batch in hand fails."""
        if self.batch is not None:
            await self.fail(
                SparkFailed(f"the topology has stopped in the middle of batch {self.batch.number}")
            )
        await self._keeper.close()

    @property
    def _in_hand(self) -> MicroBatch:
        assert self.batch is not None, "no batch is in hand"
        return self.batch

    def _origin(self, row: int) -> Origin:
        return Origin(self._partition, row, self._in_hand.number)

    def _next_chunk(self) -> bool:
        try:
            chunk = self._chunks.take()
        except EndOfStream:
            self.whole = True
            return False
        if chunk is None:
            return False
        self._values, self._partition, self._row = iter(chunk.values), chunk.partition, chunk.first_row
        return True
