"""Reads the rows of the micro-batches that a query offers, one batch after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from stormlet.errors import EndOfStream, SparkFailed
from stormlet.spark.beside import beside
from stormlet.spark.chunks import Chunks
from stormlet.spark.claims import Claim
from stormlet.spark.keeping import QueryKeeper
from stormlet.spark.micro_batches import MicroBatch
from stormlet.spark.origins import Origin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Pull: TypeAlias = Callable[["DataFrame"], Chunks]
"""Begins to pull a batch."""
TakeClaim: TypeAlias = Callable[[], Claim | None]
"""Keeps other runs from the checkpoint."""

LOOKS = 100
"""How often it is looked, at the end, whether a batch has more rows than were read."""
LOOK = 0.01
"""Seconds from one look to the next."""


class BatchReader:
    """The batch in hand, if there is one, and how far it was read."""

    def __init__(self, keeper: QueryKeeper, pull: Pull, take_claim: TakeClaim) -> None:
        self.batch: MicroBatch | None = None
        """The one that is read, or waits for its verdict."""
        self.whole = False
        """Whether all its rows were read."""
        self._keeper = keeper
        self._pull = pull
        self._take_claim = take_claim
        self._claim: Claim | None = None
        self._chunks: Chunks
        self._values: Iterator[object] = iter(())
        self._partition = 0
        self._row = 0

    @property
    def query(self) -> str:
        """The id of the query, the same in each run from one checkpoint."""
        return self._keeper.id

    async def open(self) -> None:
        """Start the query; raises what that has failed with, and :class:`~stormlet.errors.InvalidTopology` if another
        run has its checkpoint."""
        self._claim = await beside(self._take_claim, "stormlet spark checkpoint")
        try:
            await self._keeper.open()
        except BaseException:
            self._release()
            raise

    async def next_batch(self) -> MicroBatch:
        """Wait for a batch, and begin to read it. See :meth:`stormlet.spark.keeping.QueryKeeper.next_batch`."""
        batch = await self._keeper.next_batch()
        self._chunks = self._pull(batch.frame)
        self.batch, self.whole, self._values = batch, False, iter(())
        return batch

    def rows(self, most: int) -> tuple[list[object], list[Origin]]:
        """The values of the next rows, at most so many, if they are there; and where each comes from. Raises
        :class:`~stormlet.errors.SparkFailed`."""
        values = list(islice(self._values, most))
        if not values and self._next_chunk():
            values = list(islice(self._values, most))
        first, self._row = self._row, self._row + len(values)
        number = self._in_hand.number
        return values, [Origin(self._partition, row, number) for row in range(first, self._row)]

    async def was_read(self) -> bool:
        """Whether nothing more is to be read: to be asked at the end, as a row that comes nevertheless is lost. Waits a
        moment for Spark to say so."""
        for _ in range(LOOKS):
            try:
                values, _ = self.rows(1)
                if values or self.whole:
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
        self._release()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()

    @property
    def _in_hand(self) -> MicroBatch:
        assert self.batch is not None, "no batch is in hand"
        return self.batch

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
