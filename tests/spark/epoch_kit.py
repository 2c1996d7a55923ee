"""A source of numbers that gives epochs, and a sink that writes them into memory: everything of an exactly-once run
but Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from threading import Event
from typing import Any

import pyarrow as pa

from stormlet import SpoutCollector, TaskContext, Topology
from stormlet.core.schema import Schema
from stormlet.errors import SparkFailed
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.epoch_emitter import EpochEmitter, EpochSpout, Record
from stormlet.spark.epochs import SourceKey
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
        self.sealed: list[int] = []
        """The epochs that have succeeded, whether they are written or not."""
        self.letters: list[int] = []
        """Of a run that buries them here."""
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
        self.emitter = EpochEmitter(context, out, KEY, self.seal)
        self.epoch = self.store.next_epoch
        self.within = context.config.drain_timeout

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        emitter = self.emitter
        if not emitter.to_do:
            epoch = self.epoch
            numbers = range(epoch * self.size, min((epoch + 1) * self.size, self.total))
            if not numbers:
                return emitter.end()
            emitter.begin(epoch)
            for number in numbers:
                emitter.add(Origin(0, number, epoch), number)
            emitter.complete()
        return emitter.proceed(7)

    async def close(self) -> None:
        await self.emitter.close(self.within)

    def seal(self, epoch: int) -> Record:
        self.store.sealed.append(epoch)
        self.epoch = epoch + 1
        return partial(self.record, epoch)

    async def record(self, epoch: int) -> None:
        self.store.events.append(("recorded", epoch))
        self.store.next_epoch = epoch + 1


class Source:
    """The factory as ``DataFrameSpout`` is one: it says of itself what its spouts are."""

    gives_epochs = True
    resumes = True

    def __init__(self, store: Store, total: int, size: int, kind: type[Numbers] = Numbers) -> None:
        self.kind = kind
        self.arguments = store, total, size

    def __call__(self) -> Numbers:
        return self.kind(*self.arguments)


class StoreWriter(EpochWriter):
    """Writes into a store; what is negative does not fit."""

    def __init__(self, store: Store, destination: str) -> None:
        self.store = store
        self.destination = destination
        self.gate = Event()
        """Set while writes may go on."""
        self.gate.set()

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """Nothing to open."""

    def convert(self, values: Sequence[Any]) -> Batch:
        misfits = {place: "negative" for place, value in enumerate(values) if value < 0}
        return Batch(pa.table({"number": [value for value in values if value >= 0]}), misfits)

    def check(self, source: SourceKey) -> None:
        """Everything can be written."""

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[pa.Table]) -> None:
        assert source == self.store.key
        self.gate.wait(timeout=5.0)
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


class SlowSink(Sink):
    """Writes for so many seconds."""

    def __init__(self, store: Store, seconds: float) -> None:
        super().__init__(store)
        self.seconds = seconds

    def __call__(self) -> EpochSink:
        class Slow(EpochSink):
            async def write_epoch(bolt, source: SourceKey, epoch: int, tables: Any) -> None:  # noqa: N805
                await asyncio.sleep(self.seconds)
                await super().write_epoch(source, epoch, tables)

        return Slow(StoreWriter(self.store, self.destination), self.size, 10.0)


def slowly_written(store: Store, seconds: float, **options: Any) -> Topology:
    topology = Topology("slow", **options)
    numbers = topology.spout("numbers", Source(store, 20, 10), outputs=int)
    topology.bolt("write", SlowSink(store, seconds), numbers.shuffle())
    return topology
