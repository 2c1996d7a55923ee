"""An exactly-once sink that writes into memory: everything of it but Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from stormlet.core.schema import Schema
from stormlet.errors import SparkFailed
from stormlet.model.components import BatchBolt
from stormlet.model.state.committers import CommitterFactory, RowSpec
from stormlet.spark.arrow.tables import Batch
from stormlet.spark.sink.committed import CommittedSink
from stormlet.spark.sink.writer import EpochWriter, SourceKey


class Store:
    """What outlives a run: the epochs that were written."""

    def __init__(self) -> None:
        self.written: dict[tuple[str, int], list[Any]] = {}
        """By directory and epoch, the rows that stand there."""
        self.events: list[Any] = []
        self.failing = 0
        """How many writes will fail."""

    @property
    def rows(self) -> list[Any]:
        """All rows, in order."""
        return sorted(row for rows in self.written.values() for row in rows)


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

    def old_epochs(self) -> Iterator[str]:
        return iter(())

    def write_nothing(self, source: SourceKey) -> None:
        """Nobody reads columns here."""

    def claim_line(self, what: str, query: str, owner: str) -> None:
        """There is no other query."""

    def epochs_by_line(self, owner: str) -> Iterator[tuple[str, str, int]]:
        lines = {name for name, _ in self.store.written if name.startswith(f"{owner}-")}
        for name in sorted(lines):
            last = max(epoch for place, epoch in self.store.written if place == name)
            yield f"out/source={name}", name.removeprefix(f"{owner}-"), last

    def write_epoch(self, source: SourceKey, epoch: int, tables: Sequence[pa.Table]) -> None:
        if self.store.failing:
            self.store.failing -= 1
            raise SparkFailed("the disk is full")
        rows = [number for table in tables for number in table.column("number").to_pylist()]
        self.store.events.append(("written", epoch))
        self.store.written[str(source), epoch] = rows

    def interrupt(self) -> None:
        self.store.events.append("interrupted")


class Sink(CommitterFactory):
    """Makes the bolts of a sink that writes into a store."""

    needs_epochs = True

    def __init__(self, store: Store, destination: str = "out", size: int = 10) -> None:
        self.store = store
        self.destination = destination
        self.size = size

    @property
    def rows_kept(self) -> RowSpec:
        return RowSpec(bytes, replaces=True, has_tasks_elsewhere=True)

    def __call__(self) -> BatchBolt[Any, None]:
        return CommittedSink(StoreWriter(self.store, self.destination), self.size, 10.0)
