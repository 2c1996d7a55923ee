"""Components of the cases of Storm's states and transactions: bolts that count, and sinks that note the epochs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from stormlet import (
    Collector,
    Committer,
    EndOfStream,
    Epoch,
    EpochBolt,
    KeyedBolt,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    Topology,
    Tuple,
    Value,
)
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.model.state.keyed import states_of
from stormlet.state.memory import MemoryStore

Committed: TypeAlias = list[tuple[int, Any]]
"""Rows, each with the number of its epoch."""


class Count(KeyedBolt[str, str, tuple[str, int]]):
    """Counts words in state."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[tuple[str, int]]) -> None:
        self.total += 1
        out.emit((tup.value, self.total))


class EpochCount(EpochBolt[Any, int]):
    """Storm's Count as a batch bolt: emits how many inputs the epoch has."""

    def __init__(self) -> None:
        self.count = 0

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        self.count += 1

    def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
        out.emit(self.count)


class EpochSum(EpochCount):
    """Sums up its inputs."""

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        self.count += tup.value


class KeyedSum(EpochBolt[tuple[str, int], tuple[str, int]]):
    """Storm's KeyedCountingBatchBolt: sums of an epoch by word."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}

    def execute(self, tup: Tuple[tuple[str, int]], out: Collector[tuple[str, int]]) -> None:
        word, number = tup.value
        self.sums[word] = self.sums.get(word, 0) + number

    def end_epoch(self, epoch: Epoch, out: Collector[tuple[str, int]]) -> None:
        for each in self.sums.items():
            out.emit(each)


class Note(Committer[Any]):
    """Notes rows with the number of their epoch."""

    def __init__(self, rows: Committed) -> None:
        self.rows = rows

    def commit(self, epoch: Epoch, rows: Sequence[Any]) -> None:
        self.rows += [(epoch.number, each) for each in rows]


class NotePairs(Committer[tuple[str, int]]):
    """Notes words and numbers with the number of their epoch. ``left`` has an epoch that fails once."""

    def __init__(self, rows: Committed, left: dict[str, int]) -> None:
        self.rows = rows
        self.left = left

    def commit(self, epoch: Epoch, rows: Sequence[tuple[str, int]]) -> None:
        _strike(self.left, "commit", epoch)
        self.rows += [(epoch.number, each) for each in rows]


def committed(topology: Topology, stream: Stream[Any]) -> Committed:
    """The rows of a stream, as a committer gets them."""
    rows: Committed = []
    topology.bolt(f"notes {stream.component}", partial(Note, rows), stream.global_())
    return rows


class Batches(Spout[Any]):
    """Storm's MemoryTransactionalSpout: gives so many values of each partition at once, every two seconds."""

    resumable = True

    def __init__(self, partitions: Mapping[int, Sequence[Any]], size: int, times: int) -> None:
        self.partitions = partitions
        self._size = size
        self._times = times

    def open(self, context: TaskContext, out: SpoutCollector[Any]) -> None:
        self._next = {each: _after(context.resume.get(each)) for each in self.partitions}

    async def next_tuple(self, out: SpoutCollector[Any]) -> None:
        if not self._times:
            raise EndOfStream
        self._times -= 1
        for partition, values in self.partitions.items():
            first = self._next[partition]
            for place in range(first, min(first + self._size, len(values))):
                out.emit(values[place], message_id=(partition, place))
                self._next[partition] = place + 1
        await asyncio.sleep(2)

    def partition(self, message_id: object) -> int:
        return cast("tuple[int, int]", message_id)[0]


def _after(last: object) -> int:
    return 0 if last is None else cast("tuple[int, int]", last)[1] + 1


def kept(store: MemoryStore, bolt: str = "count", name: str = "total") -> dict[Any, Any]:
    """What is committed of a state of :class:`Count`."""
    state = State(StateId(bolt, name), states_of(Count)[name])
    state.load(store.load().states.get(state.id, ()))
    return dict(state.tables[0].committed_items())


async def whole_run(topology: Topology, store: MemoryStore | None = None, **options: Any) -> Running:
    """Run until all sources have ended."""
    async with topology.run(state=store, **options) as running:
        await running.finished()
    return running


def summed(
    topology: Topology, make: Callable[[], Spout[Any]], fails: dict[str, int] | None = None
) -> tuple[Committed, Committed]:
    """Sums by word and the number of tuples of each epoch, as committers get them. ``fails`` has the epoch whose
    ``end`` or ``commit`` fails once."""
    left = dict(fails or {})

    class Sums(KeyedSum):
        def end_epoch(self, epoch: Epoch, out: Collector[tuple[str, int]]) -> None:
            super().end_epoch(epoch, out)
            _strike(left, "end", epoch)

    source = topology.spout("source", make)
    sums = topology.bolt("sums", Sums, source.fields(word_of), parallelism=2)
    counted = topology.bolt("partial", EpochCount, source.shuffle(), parallelism=3)
    counts = topology.bolt("counts", EpochSum, counted.global_())
    rows: Committed = []
    topology.bolt("notes", partial(NotePairs, rows, left), sums.global_())
    return rows, committed(topology, counts)


def word_of(pair: tuple[str, int]) -> str:
    return pair[0]


def _strike(left: dict[str, int], where: str, epoch: Epoch) -> None:
    if left.get(where) == epoch.number:
        del left[where]
        raise OSError("once")
