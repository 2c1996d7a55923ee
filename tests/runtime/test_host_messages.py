"""How fast the host hears of its messages."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Stream, Topology, Tree
from stormlet.runtime.slices import Pace, Slices


def same(value: str) -> str:
    return value


async def iterations_until_done(tree: Tree[object]) -> int:
    iterations = 0
    while not tree.done:
        await asyncio.sleep(0)
        iterations += 1
    return iterations


def chain() -> tuple[Topology, Stream[str]]:
    topology = Topology("chain")
    source = topology.spout("source", outputs=str)
    topology.bolt("second", same, topology.bolt("first", same, source.shuffle()).shuffle())
    return topology, source


@pytest.mark.simulated_time
async def test_a_lone_message_takes_an_iteration_for_each_step() -> None:
    """Two bolts and the acker: it leaves at once, and its outcome is told in the iteration of its verdict."""
    topology, source = chain()
    async with topology.run() as running:
        assert await iterations_until_done(await running.emit(source, "x")) <= 4


@pytest.mark.simulated_time
async def test_messages_in_a_burst_leave_together() -> None:
    """Only a message that is alone leaves at once: the others are sent with one flush."""
    topology, source = chain()
    async with topology.run() as running:
        for number in range(100):
            await running.emit(source, str(number))
        sent = [
            len(running._tasks.bolts["first"][0].inbox.items),
            len(running._tasks.spouts["source"][0].outbox.inits),
        ]
        assert sent == [100, 99]


class Asked:
    """Slices that count how often they are asked for."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self.times = 0

    def begin(self) -> bool:
        self.times += 1
        return self._slices.begin()

    def spent(self, pace: Pace, executed: int) -> bool:
        return self._slices.spent(pace, executed)

    async def turn(self) -> None:
        await self._slices.turn()


@pytest.mark.simulated_time
async def test_the_acker_asks_for_a_slice_when_there_is_more_than_one_message() -> None:
    """To ask for one takes longer than what a lone message is; many share the time of the loop with others (law
    F2)."""
    topology, source = chain()
    async with topology.run() as running:
        (acker,) = running._tasks.ackers
        acker.slices = asked = Asked(acker.slices)
        await (await running.emit(source, "x"))
        assert asked.times == 0
        trees = [await running.emit(source, str(number)) for number in range(100)]
        await asyncio.gather(*trees)
        assert asked.times > 0
