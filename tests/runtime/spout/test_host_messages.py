"""How fast the host hears of its messages."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stormlet import Stream, Topology, Tree
from stormlet.errors import UnroutableKey
from stormlet.runtime.slices import Pace, Slices
from tests.cast import same


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
async def test_a_lone_message_takes_an_iteration_for_each_bolt() -> None:
    """It leaves at once, and no iteration passes between the last ack, the verdict and its outcome."""
    topology, source = chain()
    async with topology.run() as running:
        assert await iterations_until_done(await running.emit(source, "x")) == 2


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts what it is asked to call."""

    asked = 0

    def call_soon(self, *arguments: Any, **options: Any) -> asyncio.Handle:
        """As usual."""
        self.asked += 1
        return super().call_soon(*arguments, **options)


def test_a_lone_message_costs_three_wake_ups() -> None:
    """Of its two bolts and of the host; slices, flushes and ackers have the loop call something now and then only."""
    messages = 200

    async def test() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        topology, source = chain()
        async with topology.run() as running:
            await (await running.emit(source, "first"))
            before = loop.asked
            for number in range(messages):
                await (await running.emit(source, str(number)))
            return loop.asked - before

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        assert 3 * messages <= runner.run(test()) <= 4 * messages


@pytest.mark.simulated_time
async def test_an_emit_that_raises_leaves_nothing_behind() -> None:
    """The next message is sent as if it had not been."""
    topology = Topology("keyed")
    source = topology.spout("source")
    topology.bolt("bolt", same, source.fields())
    async with topology.run() as running:
        for _ in range(2):
            with pytest.raises(UnroutableKey):
                await running.emit(source, object())
            assert await iterations_until_done(await running.emit(source, "x")) == 1
            assert running.health().pending == 0


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

    def begin(self, *, watched: bool = True) -> bool:
        self.times += 1
        return self._slices.begin(watched=watched)

    def watch(self) -> None:
        self._slices.watch()

    def spent(self, pace: Pace, executed: int, *, awaited: bool = True, now: float | None = None) -> bool:
        return self._slices.spent(pace, executed, awaited=awaited)

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


@pytest.mark.simulated_time
async def test_nobody_overtakes_a_message_that_waits_for_room() -> None:
    """Not even one that comes at the very moment at which there is room (C4)."""
    seen: list[str] = []

    async def see(value: str) -> None:
        seen.append(value)
        await asyncio.sleep(1)

    topology = Topology("turns", max_spout_pending=1)
    source = topology.spout("source", outputs=str)
    topology.bolt("see", see, source.shuffle())
    async with topology.run() as running:
        first = await running.emit(source, "first")
        second = asyncio.ensure_future(running.emit(source, "second"))
        await first
        await running.emit(source, "third")
        await second
    assert seen == ["first", "second", "third"]
