"""Sources that emit after an attempt was cut, or after an epoch came to its end (law X5, X7, X8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest

from stormlet import (
    Collector,
    Committer,
    EndOfStream,
    Epoch,
    EpochBolt,
    KeyedBolt,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    Tuple,
    Value,
)

pytestmark = pytest.mark.simulated_time(allow_leaks=["errors"])

Rows = dict[int, list[int]]


class Note(Committer[int]):
    """Notes rows by epoch."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        self.rows[epoch.number] = list(rows)


class SlowSum(EpochBolt[int, int]):
    """Sums up an epoch, and takes a moment at its end."""

    def __init__(self) -> None:
        self.total = 0

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.total += tup.value

    async def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
        out.emit(self.total)
        await asyncio.sleep(0.1)


class Late(Spout[int]):
    """Emits three numbers when it is asked, and the fourth from a timer of its own."""

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self._next = 0
        asyncio.get_running_loop().call_later(0.15, self._emit, out)

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self._next < 3:
            self._emit(out)
        elif self._next > 3:
            raise EndOfStream

    def _emit(self, out: SpoutCollector[int]) -> None:
        out.emit(self._next, message_id=self._next)
        self._next += 1


async def test_X8_a_message_that_comes_after_a_cut_does_not_overtake_those_that_were_cut_off() -> None:
    """Else its epoch would have the position of the source pass over them."""
    fails = [1]

    async def slow(value: int) -> int:
        await asyncio.sleep(0.1)
        return value

    def after(value: int) -> None:
        if value == 1 and fails:
            fails.pop()
            raise ValueError("once")

    rows: Rows = {}
    topology = Topology("late", replay_delay=0.01)
    passed = topology.bolt("slow", slow, topology.spout("numbers", Late).shuffle(), concurrency=3)
    topology.bolt("note", partial(Note, rows), passed.shuffle())
    topology.bolt("after", after, passed.shuffle())
    async with topology.run() as running:
        await running.finished()
    assert not fails
    assert {epoch: sorted(each) for epoch, each in rows.items()} == {1: [0, 1, 2, 3]}


async def test_X5_a_message_that_comes_while_an_epoch_ends_belongs_to_a_later_one() -> None:
    """A bolt that was told of the end has not counted it."""

    async def source() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0.05)
        yield 2

    rows: Rows = {}
    topology = Topology("late", epoch_seconds=0.02)
    summed = topology.bolt("sum", SlowSum, topology.spout("numbers", source).shuffle())
    topology.bolt("note", partial(Note, rows), summed.shuffle())
    async with topology.run() as running:
        await running.finished()
    assert rows == {1: [1], 2: [2]}


class Pushing(Spout[int]):
    """Emits a number each 0.01 s, whoever asks."""

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self._next = 0
        self._push(out)

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self._next == 300:
            raise EndOfStream

    def _push(self, out: SpoutCollector[int]) -> None:
        if self._next < 300:
            out.emit(self._next, message_id=self._next)
            self._next += 1
            asyncio.get_running_loop().call_later(0.01, self._push, out)


async def test_X5_a_source_that_does_not_pause_at_the_end_of_an_epoch_holds_up_none() -> None:
    """The end takes ten times as long as the source from one message to the next."""
    rows: Rows = {}
    topology = Topology("pushing", epoch_messages=50)
    summed = topology.bolt("sum", SlowSum, topology.spout("numbers", Pushing).shuffle())
    topology.bolt("note", partial(Note, rows), summed.shuffle())
    async with topology.run() as running:
        await running.finished()
    assert rows == {epoch: [sum(range(50 * epoch - 50, 50 * epoch))] for epoch in range(1, 7)}


class Reminded(KeyedBolt[int, int, int]):
    """Counts, and emits five seconds after each message."""

    count = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.count += 1
        self.set_timer(self.now + 5)

    def on_timer(self, at: float, out: Collector[int]) -> None:
        out.emit(self.key)


async def test_X7_a_message_that_comes_while_an_epoch_of_timers_alone_ends_belongs_to_it() -> None:
    """It has not failed, so that there is no pause of a replay; and it is counted once."""

    async def numbers() -> AsyncIterator[int]:
        for number in range(20):
            yield number
            await asyncio.sleep(0.9)

    async def slow(value: int) -> None:
        await asyncio.sleep(0.3)

    topology = Topology("reminded")
    reminded = topology.bolt("reminded", Reminded, topology.spout("numbers", numbers).fields(lambda n: n % 3))
    topology.bolt("slow", slow, reminded.shuffle())
    async with topology.run() as running:
        await running.finished()
        assert dict(running.state("reminded")) == {0: 7, 1: 7, 2: 6}
    spout = running.statistics().components["numbers"]
    assert (spout.acked, spout.failed) == (20, 0)
