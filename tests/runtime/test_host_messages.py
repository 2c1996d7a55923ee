"""How fast the host hears of its messages."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Stream, Topology, Tree


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
