"""A streaming query without Spark: it offers batches, waits for their verdict and remembers what was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from stormlet import EndOfStream, SpoutCollector, Stream, TaskContext, Topology
from stormlet.core.retries import RestartPolicy
from stormlet.spark.source.reading import Chunk
from stormlet.spark.stream.keeper import QueryKeeper
from stormlet.spark.stream.query import MicroBatch, Offer, Query
from stormlet.spark.stream.reader import BatchReader, OnFailure
from stormlet.spark.stream.spout import StreamSpout

PARTITION = 4
"""How many rows of a batch are in one partition, and in one chunk."""


class FakeBatch(MicroBatch):
    """A batch whose verdict a coroutine can wait for."""

    def __init__(self, number: int, rows: Sequence[object], on_done: Callable[[], None]) -> None:
        super().__init__(number, rows)  # type: ignore[arg-type]
        self.verdict = asyncio.Event()
        self._on_done = on_done

    def done(self) -> None:
        super().done()
        self.verdict.set()
        self._on_done()

    def fail(self, error: Exception) -> None:
        super().fail(error)
        self.verdict.set()


class FakeSpark:
    """What outlives the runs of a query: its data, its checkpoint, and a journal of what happened."""

    def __init__(self, *batches: Sequence[object], endless: bool = False) -> None:
        self.batches = batches
        self.endless = endless
        """Whether it waits for more after the last batch."""
        self.committed = -1
        """The last batch that the checkpoint knows to be done."""
        self.journal: list[object] = []
        self.errors: dict[int, list[Exception]] = {}
        """By run, from 0, what it fails with before its first batch."""
        self.error_after = 0.0
        """Seconds after the start of such a run."""
        self.unstartable: list[Exception] = []
        """What the next starts fail with."""
        self.start_seconds = 0.0
        self.unreadable: list[Exception] = []
        """What reading the next batches fails with, after their first chunk."""
        self.late = 0
        """How often a batch is looked at in vain before it tells that it has ended."""
        self.on_done: Callable[[], None] = lambda: None
        """Called when a batch is told to be done."""
        self.runs: list[FakeQuery] = []

    def begin(self, offer: Offer) -> FakeQuery:
        self.runs.append(FakeQuery(self, offer, len(self.runs)))
        return self.runs[-1]

    def pull(self, rows: Sequence[object]) -> FakeChunks:
        return FakeChunks(rows, self.unreadable.pop(0) if self.unreadable else None, self.late)


class FakeQuery(Query):
    """One run."""

    def __init__(self, spark: FakeSpark, offer: Offer, number: int) -> None:
        self._spark = spark
        self._give_batch = offer
        self._number = number
        self.done: list[int] = []
        """The batches that were done, whether it was noted or not."""
        self._begun = asyncio.Event()
        self._stopped = asyncio.Event()
        self._running = asyncio.create_task(self._run(), name="fake query")

    async def started(self) -> str:
        begun = asyncio.create_task(self._begun.wait())
        await asyncio.wait([begun, self._running], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if not self._begun.is_set():
            self._running.result()
        return "1234"

    async def ended(self) -> None:
        await asyncio.shield(self._running)

    async def committed(self, batch: int) -> None:
        while self._spark.committed < batch and not self._running.done():  # noqa: ASYNC110 as Spark's has to
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._stopped.set()
        await asyncio.wait([self._running])
        self._spark.journal.append("stop")

    async def _run(self) -> None:
        spark = self._spark
        await asyncio.sleep(spark.start_seconds)
        if spark.unstartable:
            raise spark.unstartable.pop(0)
        spark.journal.append("start")
        self._begun.set()
        for error in spark.errors.pop(self._number, []):
            await asyncio.sleep(spark.error_after)
            raise error
        while not self._stopped.is_set() and spark.committed + 1 < len(spark.batches):
            await self._give(spark.committed + 1)
        if spark.endless:
            await self._stopped.wait()

    async def _give(self, number: int) -> None:
        spark = self._spark
        batch = FakeBatch(number, spark.batches[number], lambda: spark.on_done())
        spark.journal.append(f"batch {number}")
        self._give_batch(batch)
        await batch.verdict.wait()
        if batch.error is not None:
            spark.journal.append(f"failed {number}")
            raise RuntimeError("the function of foreachBatch raised")
        self.done.append(number)
        await asyncio.sleep(0.05)  # Spark writes a file
        if not self._stopped.is_set():  # as it is with Spark: the write is interrupted
            spark.journal.append(f"done {number}")
            spark.committed = number


class FakeChunks:
    """Reads a batch, four rows at a time."""

    def __init__(self, rows: Sequence[object], error: Exception | None, late: int) -> None:
        self._late = late
        parts = [list(rows[first : first + PARTITION]) for first in range(0, len(rows), PARTITION)]
        self._chunks = [Chunk(number, 0, len(part), part) for number, part in enumerate(parts)]
        self._end: Exception = error or EndOfStream()
        if error is not None:
            del self._chunks[1:]

    def take(self) -> Chunk | None:
        if not self._chunks and self._late:
            self._late -= 1
            return None
        if not self._chunks:
            raise self._end
        return self._chunks.pop(0)

    async def close(self) -> None:
        """Nothing to close."""


def batches_of(
    spark: FakeSpark, policy: RestartPolicy | None = None
) -> Callable[[TaskContext, SpoutCollector[object]], BatchReader]:
    """How a spout reads what the fake offers."""
    pull: Any = spark.pull
    return lambda context, out: BatchReader(
        QueryKeeper(spark.begin, policy or RestartPolicy(), "fake"), pull, lambda: None
    )


def fed_by(
    spark: FakeSpark,
    on_failure: OnFailure = "dead_letter",
    policy: RestartPolicy | None = None,
    **configuration: object,
) -> tuple[Topology, Stream[Any]]:
    """A topology with a spout that the fake feeds, and that spout's stream."""
    topology = Topology("streamed", **configuration)
    batches = batches_of(spark, policy)
    return topology, topology.spout("rows", lambda: StreamSpout(batches, on_failure))
