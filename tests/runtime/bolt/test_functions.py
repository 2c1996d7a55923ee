"""Function bolts: async generators."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any, cast

import pytest

from stormlet import BasicBolt, Bolt, Collector, Reject, Topology, Tuple
from tests.cast import wait_for_ever
from tests.helpers import leave_by, now, run_to_end

pytestmark = pytest.mark.simulated_time


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """The garbage collector, too, would close a generator some time."""
    gc.disable()
    yield
    gc.enable()


class Generating:
    """An async generator bolt that notes when it has been closed, which takes it a quarter of a second."""

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self.closed: list[float] = []

    async def __call__(self, value: int) -> AsyncIterator[object]:
        try:
            yield "does not fit"
            await asyncio.sleep(self.pause)
        finally:
            await asyncio.sleep(0.25)
            self.closed.append(now())


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_generator_is_closed_when_its_output_is_refused(concurrency: int) -> None:
    """A failed emit closes the async generator, whose finally runs before its input fails (B1, B4)."""
    bolt = Generating(0.0)
    failed: list[float] = []
    topology = Topology("generators", max_attempts=1)
    spout = topology.spout("spout", [1])
    topology.bolt("bolt", bolt.__call__, spout.shuffle(), outputs=["a", "b"], concurrency=concurrency)
    await run_to_end(topology, dead_letters=lambda letter: failed.append(now()))
    assert (bolt.closed, failed) == ([0.25], [0.25])


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_generator_is_closed_when_its_call_is_cancelled(concurrency: int) -> None:
    """A cancelled topology closes the async generators that wait, and is over when they are (C3)."""
    bolt = Generating(100.0)
    topology = Topology("generators")
    topology.bolt("bolt", bolt.__call__, topology.spout("spout", [1]).shuffle(), concurrency=concurrency)
    with pytest.raises(KeyError):
        await leave_by(KeyError(), topology, after=1.0)
    assert bolt.closed == [1.25]


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_generator_is_closed_when_its_call_is_cancelled_at_an_output(concurrency: int) -> None:
    """A generator whose output waits for room is closed too when the topology is cancelled (C3)."""

    async def many(value: int) -> AsyncIterator[int]:
        try:
            for number in range(100):
                yield number
        finally:
            closed.append(now())

    closed: list[float] = []
    topology = Topology("generators")
    stream = topology.bolt("bolt", many, topology.spout("spout", [1]).shuffle(), concurrency=concurrency)
    topology.bolt("block", wait_for_ever, stream.shuffle(), queue_capacity=1)
    with pytest.raises(KeyError):
        await leave_by(KeyError(), topology, after=1.0)
    assert closed == [1.0]


class Join(Bolt[int, int]):
    """Emits the sum of two inputs, anchored to both."""

    def __init__(self) -> None:
        self.first: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Wait for the second one."""
        if not self.first:
            self.first.append(tup)
            return
        pair = (self.first.pop(), tup)
        out.emit(sum(each.value for each in pair), anchors=pair)
        for each in pair:
            out.ack(each)


class Pass(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Emit the same value."""
        out.emit(tup.value)


@pytest.mark.parametrize("below", [Pass, lambda value: value], ids=["BasicBolt", "function"])
async def test_a_tuple_of_several_trees_is_acked_in_each(below: Callable[..., Any]) -> None:
    """By functions and basic bolts too, which settle plain tuples on a shorter way (L7)."""
    topology = Topology("joins", max_attempts=1)
    joined = topology.bolt("join", Join, topology.spout("numbers", range(6)).shuffle())
    topology.bolt("below", cast("Any", below), joined.shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["numbers"].acked == 6


VARIABLE = ContextVar("variable", default="")


async def test_a_tuple_with_context_variables_waits_for_room_like_any_other() -> None:
    """It goes a more careful way through the bolt, and that is bounded too (B6, B10)."""

    def number() -> Iterator[int]:
        for value in range(20):
            VARIABLE.set(str(value))
            yield value

    async def slow(value: int) -> None:
        await asyncio.sleep(1)

    topology = Topology("bounded", message_timeout=None)
    passed = topology.bolt("pass", lambda value: value, topology.spout("numbers", number).shuffle())
    topology.bolt("slow", slow, passed.shuffle(), queue_capacity=1)
    async with topology.run() as running:
        for _ in range(10):
            await asyncio.sleep(1)
            assert running.statistics().components["slow"].queued <= 2


async def test_a_tuple_with_context_variables_fails_like_any_other() -> None:
    """What is raised on it fails its message (B1, B10)."""

    def number() -> Iterator[int]:
        VARIABLE.set("set")
        yield 1

    def refuse(value: int) -> None:
        raise Reject(VARIABLE.get())

    topology = Topology("refused")
    topology.bolt("refuse", refuse, topology.spout("numbers", number).shuffle())
    running = await run_to_end(topology)
    assert [str(letter.failure.exception) for letter in running.dead_letters] == ["set"]
