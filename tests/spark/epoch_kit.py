"""A source of numbers that gives epochs, and a sink that writes them into memory: everything of an exactly-once run
but Spark."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import pyarrow as pa

from stormlet import EndOfStream, SpoutCollector, TaskContext
from stormlet.core.schema import Schema
from stormlet.errors import SparkFailed
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.epoch_emitter import EpochEmitter, EpochSpout
from stormlet.spark.epochs import EpochAccount, SourceKey
from stormlet.spark.frames import Origin
from stormlet.spark.sink.bolts import EpochSink
from stormlet.spark.sink.writer import EpochWriter

KEY = SourceKey("numbers")


class Store:
    """What outlives a run: the epochs that were written, and how many of them the source knows of."""

    def __init__(self) -> None:
        self.written: dict[tuple[str, int], list[Any]] = {}
        """By destination and epoch, the rows that stand there."""
        self.events: list[Any] = []
        self.next_epoch = 0
        self.key = KEY
        """The source that is expected."""
        self.failing = 0
        """How many writes will fail."""

    def rows(self, destination: str = "out") -> list[Any]:
        """All rows of a destination, in order."""
        return sorted(
            row for (place, _), rows in self.written.items() if place == destination for row in rows
        )


class Numbers(EpochSpout):
    """Emits 0 … in epochs of so many, on from where the store's next epoch begins."""

    def __init__(self, store: Store, total: int, size: int) -> None:
        self.store = store
        self.total = total
        self.size = size

    def open(self, context: TaskContext, out: SpoutCollector[object]) -> None:
        self.emitter = EpochEmitter(context, out, KEY, self.record)
        self.within = context.config.drain_timeout

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        emitter = self.emitter
        if not emitter.to_do:
            epoch = self.store.next_epoch
            numbers = range(epoch * self.size, min((epoch + 1) * self.size, self.total))
            if not numbers:
                raise EndOfStream
            emitter.begin(epoch)
            for number in numbers:
                emitter.add(Origin(0, number, epoch), number)
            emitter.complete()
        return emitter.proceed(7)

    async def close(self) -> None:
        await self.emitter.close(self.within)

    async def record(self, account: EpochAccount) -> None:
        self.store.events.append(("recorded", account.number))
        self.store.next_epoch = account.number + 1


class StoreWriter(EpochWriter):
    """Writes into a store; what is negative does not fit."""

    def __init__(self, store: Store, destination: str) -> None:
        self.store = store
        self.destination = destination

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """Nothing to open."""

    def convert(self, values: Sequence[Any]) -> Batch:
        misfits = {place: "negative" for place, value in enumerate(values) if value < 0}
        return Batch(pa.table({"number": [value for value in values if value >= 0]}), misfits)

    def check(self, source: SourceKey) -> None:
        """Everything can be written."""

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[pa.Table]) -> None:
        assert source == self.store.key
        if self.store.failing:
            self.store.failing -= 1
            raise SparkFailed("the disk is full")
        rows = [number for table in tables for number in table.column("number").to_pylist()]
        self.store.events.append(("written", epoch))
        self.store.written[self.destination, epoch] = rows

    def interrupt(self) -> None:
        self.store.events.append("interrupted")


class Sink:
    """Makes the bolts of a sink that writes into a store."""

    needs_epochs = True

    def __init__(self, store: Store, destination: str = "out", size: int = 10) -> None:
        self.store = store
        self.destination = destination
        self.size = size

    def __call__(self) -> EpochSink:
        return EpochSink(StoreWriter(self.store, self.destination), self.size, 10.0)
