"""Bolts that settle by themselves, and the order of executions (law B2, B3)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Iterator

import pytest

from stormlet import BasicBolt, Bolt, Collector, TaskContext, Topology, Tuple
from tests.cast import Join, ignore, refuse, twice
from tests.engines import UNFUSED, Engine
from tests.helpers import now

# B2: Bolt classes settle by themselves.


@pytest.mark.simulated_time
async def test_B2_a_bolt_may_hold_inputs_across_calls() -> None:
    """The first input of a pair stays pending until the second one comes, even much later."""

    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(20)
        yield 2

    topology = Topology("pairs")
    topology.bolt("pairs", Join, topology.spout("numbers", numbers).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(19)
        assert running.statistics().components["numbers"].pending == 1
        await running.finished()
        assert running.statistics().components["numbers"].acked == 2


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_B2_returning_acks_nothing(engine: Engine, asynchronous: bool) -> None:
    """An input that a ``Bolt`` neither acked nor failed is not settled by its return."""

    class Forget(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> Awaitable[None] | None:
            return asyncio.sleep(0) if asynchronous else None

    topology = Topology("forget", message_timeout=5.0, max_attempts=1)
    topology.bolt("forget", Forget, topology.spout("one", ["a"]).shuffle())
    running = await engine.run_to_end(topology)
    assert [each.failure.kind.name for each in running.dead_letters] == ["TIMEOUT"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("anchored", [False, True])
async def test_B2_a_bolt_anchors_explicitly(engine: Engine, anchored: bool) -> None:
    """Only an output that names its anchor can fail the message."""

    class Forward(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            out.emit(tup.value, anchors=tup if anchored else ())
            out.emit("by default")
            out.ack(tup)

    topology = Topology("explicit")
    stream = topology.bolt("forward", Forward, topology.spout("one", ["a"]).shuffle())
    topology.bolt("refuse", refuse, stream.shuffle())
    running = await engine.run_to_end(topology)
    assert len(running.dead_letters) == anchored
    assert running.statistics().components["refuse"].failed == 2


@pytest.mark.simulated_time
async def test_B2_explicit_anchors_join_all_held_inputs(engine: Engine) -> None:
    """When the output of a pair is refused, both messages fail."""
    topology = Topology("pairs")
    stream = topology.bolt("pairs", Join, topology.spout("numbers", [1, 2]).shuffle())
    topology.bolt("refuse", refuse, stream.shuffle())
    running = await engine.run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1, 2]


# B3: order.


def busy(topology: Topology) -> None:
    """Another chain in the topology, so that tasks find their share of the loop used up."""
    stream = topology.spout("busy", range(300))
    for number in range(3):
        stream = topology.bolt(f"busy {number}", twice if number < 2 else ignore, stream.shuffle())


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 2, 7])
@pytest.mark.parametrize("seed", range(6))
@UNFUSED
async def test_B3_executions_start_in_the_order_of_the_emits(
    engine: Engine, concurrency: int, seed: int
) -> None:
    """For every pair of producer and consumer task, whatever the interleaving and the concurrency."""
    started = defaultdict[tuple[int, int], list[int]](list)

    class Note(BasicBolt[tuple[int, int], object]):
        def prepare(self, context: TaskContext) -> None:
            self.task = context.task

        async def execute(self, tup: Tuple[tuple[int, int]], out: Collector[object]) -> None:
            producer, number = tup.value
            started[producer, self.task].append(number)
            await asyncio.sleep(0.01 * (number % 3))

    def share(context: TaskContext) -> Iterator[tuple[int, int]]:
        for number in range(120):
            yield context.task_index, number

    topology = Topology("order")
    busy(topology)
    spout = topology.spout("numbers", share, parallelism=2)
    topology.bolt("note", Note, spout.shuffle(), parallelism=2, concurrency=concurrency)
    await engine.run_to_end(topology, seed=seed)
    assert len(started) == 4
    assert all(numbers == sorted(numbers) for numbers in started.values())


@pytest.mark.simulated_time
async def test_B3_concurrent_calls_complete_in_any_order(engine: Engine) -> None:
    """With concurrency 3 the shortest call ends first, and no more than three run at a time."""
    ended: list[float] = []
    running = most = 0

    async def sleep(seconds: float) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(seconds)
        running -= 1
        ended.append(seconds)

    topology = Topology("any order")
    topology.bolt("sleep", sleep, topology.spout("seconds", [30, 20, 10, 1, 1]).shuffle(), concurrency=3)
    await engine.run_to_end(topology)
    assert ended == [10, 1, 1, 20, 30]
    assert most == 3


@pytest.mark.simulated_time
async def test_B3_one_call_at_a_time_is_the_default(engine: Engine) -> None:
    """Without ``concurrency`` the second input waits for the end of the first call."""
    ended: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append(seconds)

    topology = Topology("one")
    topology.bolt("sleep", sleep, topology.spout("seconds", [3, 1]).shuffle())
    await engine.run_to_end(topology)
    assert ended == [3, 1]
    assert now() == 4


@pytest.mark.simulated_time
async def test_B3_each_concurrent_call_has_a_collector_of_its_own(engine: Engine) -> None:
    """What a call emits after its await is anchored to its own input, not to that of the last call."""

    class Wait(BasicBolt[int, int]):
        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            await asyncio.sleep(1)
            out.emit(tup.value)

    topology = Topology("own")
    stream = topology.bolt("wait", Wait, topology.spout("numbers", range(4)).shuffle(), concurrency=4)
    topology.bolt("refuse", lambda value: refuse(value) if value == 1 else None, stream.shuffle())
    running = await engine.run_to_end(topology)
    assert [each.value for each in running.dead_letters] == [1]
