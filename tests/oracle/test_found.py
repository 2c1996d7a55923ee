"""What the random topologies have found wrong in the engine, each as a topology of a few lines."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import (
    DirectStream,
    EndOfStream,
    Failure,
    FailureKind,
    Spout,
    SpoutCollector,
    TaskContext,
    To,
    Topology,
)
from stormlet.testing import run_simulated
from tests.cast import take_a_second
from tests.helpers import now


def add_one(value: int) -> int:
    return value + 1


@pytest.mark.simulated_time
async def test_each_tree_collects_from_its_own_stream() -> None:
    """Two trees that collect two streams do not get each other's values (C4)."""
    topology = Topology("t")
    numbers = topology.spout("numbers")
    first = topology.bolt("first", add_one, numbers.shuffle())
    second = topology.bolt("second", add_one, first.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(numbers, 10, collect=each) for each in (numbers, first, second)]
        assert [await tree for tree in trees] == [[10], [11], [12]]


class Refused(Spout[int]):
    """Emits on a direct stream: three messages at once, of which the last is one too many, and a fourth when they are
    settled."""

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.receiver = context.task + 1
        self.reached: list[tuple[int, ...]] = []
        self.told: list[tuple[object, FailureKind | None]] = []
        OPENED.append(self)

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if out.pending:
            return
        for _ in range(1 if self.reached else 3):
            self.reached.append(out.emit(0, message_id=len(self.reached), task=self.receiver))
        if len(self.reached) > 3:
            raise EndOfStream

    def ack(self, message_id: object) -> None:
        self.told.append((message_id, None))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.told.append((message_id, failure.kind))


OPENED: list[Refused] = []


@pytest.mark.simulated_time
async def test_a_direct_stream_after_an_overflow() -> None:
    """Later emits are delivered and tracked as before, and what was refused is not counted as emitted (L11, L13)."""
    topology = Topology("t", acker_high_water=1)
    spout = topology.spout("spout", Refused, outputs=DirectStream())
    topology.bolt("bolt", lambda value: None, spout.direct())
    async with topology.run() as running:
        await running.finished()
    refused = OPENED.pop()
    assert [bool(each) for each in refused.reached] == [True, True, False, True]
    assert dict(refused.told) == {0: None, 1: None, 2: FailureKind.OVERFLOW, 3: None}
    counted = running.statistics().components["spout"]
    assert (counted.emitted, counted.transferred, counted.overflowed) == (3, 3, 1)


class Endless(Spout[int]):
    """Never has nothing."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


@pytest.mark.parametrize("seed", range(5))
def test_a_stop_while_spouts_wait_for_their_slice(seed: int) -> None:
    """They are not asked for tuples any more, which could only raise TopologyStopping (C3)."""

    async def run() -> None:
        topology = Topology("t")
        topology.bolt("bolt", lambda value: None, topology.spout("spout", Endless, parallelism=5).shuffle())
        async with topology.run(seed=seed) as running:
            for _ in range(seed):
                await asyncio.sleep(0)
            running.stop()
            await running.finished()

    run_simulated(run(), seed)


class Slow(Spout[int]):
    """Emits, and sleeps before it does so again; all its messages are acked at once."""

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.emitted_at: dict[object, float] = {}

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        if len(self.emitted_at) == 4:
            raise EndOfStream
        await asyncio.sleep(len(self.emitted_at) % 2)
        number = len(self.emitted_at)
        self.emitted_at[number] = now()
        out.emit(number, message_id=number)

    def ack(self, message_id: object) -> None:
        assert now() == self.emitted_at[message_id]


@pytest.mark.parametrize("seed", range(20))
def test_an_outcome_while_a_spout_waits_for_its_slice(seed: int) -> None:
    """It is told before ``next_tuple``, which may then take its time (S7)."""

    async def run() -> None:
        topology = Topology("t")
        topology.bolt("bolt", lambda value: None, topology.spout("spout", Slow, parallelism=8).shuffle())
        async with topology.run(seed=seed) as running:
            await running.finished()

    run_simulated(run(), seed)


async def to_its_stream(value: str) -> To[str]:
    return To(value, value)


@pytest.mark.simulated_time
async def test_a_coroutine_is_acked_before_there_is_room() -> None:
    """Its input is done when it returns, although another call beside it has filled a queue (B1, B6)."""
    topology = Topology("t", queue_capacity=1)
    words = topology.spout("words")
    sorted_words = topology.bolt(
        "sorter", to_its_stream, words.shuffle(), outputs={"slow": None, "quick": None}, concurrency=4
    )
    topology.bolt("slow", take_a_second, sorted_words.named("slow").shuffle())
    topology.bolt("quick", lambda value: None, sorted_words.named("quick").shuffle())
    async with topology.run() as running:
        trees = [await running.emit(words, word) for word in ("slow", "slow", "slow", "quick")]
        await trees[-1]
        assert now() == 0.0
