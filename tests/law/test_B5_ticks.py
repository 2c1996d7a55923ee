"""Ticks (law B5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stormlet import BasicBolt, Bolt, Collector, InvalidTopology, TaskContext, Topology, Tuple
from tests.cast import Ignore, ignore, refuse
from tests.helpers import now, run_to_end


def ticking(log: list[tuple[int, float]]) -> type[BasicBolt[object, object]]:
    """A bolt that notes task and time of its ticks."""

    class Note(BasicBolt[object, object]):
        def prepare(self, context: TaskContext) -> None:
            self.index = context.task_index

        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            pass

        def tick(self, out: Collector[object]) -> None:
            log.append((self.index, now()))

    return Note


@pytest.mark.simulated_time
async def test_B5_each_task_ticks_every_so_many_seconds() -> None:
    """Both tasks tick at 2.5, 5 and 7.5 s, with nothing to execute."""
    log: list[tuple[int, float]] = []
    topology = Topology("ticks")
    topology.bolt("note", ticking(log), topology.spout("fed").shuffle(), parallelism=2, tick=2.5)
    async with topology.run():
        await asyncio.sleep(9)
    assert sorted(log, key=lambda each: each[1]) == [
        (task, moment) for moment in (2.5, 5, 7.5) for task in (0, 1)
    ]


@pytest.mark.simulated_time
async def test_B5_the_topology_can_set_the_ticks_of_all_bolts() -> None:
    """``tick=`` of the topology holds for every bolt with the method, and troubles no other."""
    log: list[tuple[int, float]] = []
    topology = Topology("ticks", tick=2.0)
    fed = topology.spout("fed")
    topology.bolt("note", ticking(log), fed.shuffle())
    topology.bolt("ignore", ignore, fed.shuffle())
    topology.bolt("own", ticking(log), fed.shuffle(), tick=3.0)
    async with topology.run():
        await asyncio.sleep(3.5)
    assert [moment for _, moment in log] == [2, 3]


@pytest.mark.simulated_time
async def test_B5_a_run_can_set_the_ticks_of_all_bolts() -> None:
    """``run(tick=)`` holds for every bolt with the method that has no ``tick=`` of its own, factories included."""
    log: list[tuple[int, float]] = []
    topology = Topology("ticks")
    fed = topology.spout("fed")
    topology.bolt("note", lambda: ticking(log)(), fed.shuffle())
    topology.bolt("own", ticking(log), fed.shuffle(), tick=3.0)
    topology.bolt("none", lambda: Ignore(), fed.shuffle())
    async with topology.run(tick=2.0):
        await asyncio.sleep(5)
    assert [at for _, at in log] == [2.0, 3.0, 4.0]


@pytest.mark.simulated_time
@pytest.mark.parametrize("base", [Bolt, BasicBolt])
async def test_B5_what_a_tick_emits_is_untracked(base: Any) -> None:
    """Even between the executions of tracked inputs no tree is touched, and nothing fails."""

    class Tick(base):  # type: ignore[misc]
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            if base is Bolt:
                out.ack(tup)

        def tick(self, out: Collector[str]) -> None:
            out.emit("tick")

    async def slow() -> AsyncIterator[str]:
        for value in "abc":
            yield value
            await asyncio.sleep(1)

    topology = Topology("untracked")
    stream = topology.bolt("tick", Tick, topology.spout("slow", slow).shuffle(), tick=0.5)
    topology.bolt("refuse", refuse, stream.shuffle())
    running = await run_to_end(topology)
    assert running.statistics().components["refuse"].failed >= 5
    assert running.statistics().components["slow"].acked == 3
    assert running.statistics().components["slow"].failed == 0


@pytest.mark.simulated_time
async def test_B5_at_most_one_tick_of_a_task_is_outstanding() -> None:
    """Ticks that fall due while one runs, or while execute runs, are not made up for."""
    ticks: list[float] = []

    class Slow(BasicBolt[object, object]):
        async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            await asyncio.sleep(10.5)

        async def tick(self, out: Collector[object]) -> None:
            ticks.append(now())
            await asyncio.sleep(3.4)

    topology = Topology("slow")
    topology.bolt("slow", Slow, topology.spout("one", ["a"]).shuffle(), tick=1.0)
    async with topology.run():
        await asyncio.sleep(22)
    assert ticks == [10.5, 14, 18, 22][: len(ticks)]
    assert len(ticks) >= 3


@pytest.mark.simulated_time
async def test_B5_ticks_come_between_inputs_that_fail() -> None:
    """Each input takes a second and fails; the queue is never empty."""
    ticks: list[float] = []

    class Fails(BasicBolt[object, object]):
        async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            await asyncio.sleep(1)
            raise ValueError

        def tick(self, out: Collector[object]) -> None:
            ticks.append(now())

    topology = Topology("fails", max_attempts=1, message_timeout=None, drain_timeout=0)
    topology.bolt("fails", Fails, topology.spout("many", range(100)).shuffle(), tick=10.0)
    async with topology.run():
        await asyncio.sleep(55)
    assert ticks == [10, 20, 30, 40, 50]


@pytest.mark.parametrize("logic", [Ignore, ignore])
def test_B5_tick_without_the_method_is_an_error(logic: Any) -> None:
    """It is found when the topology is built, and names the bolt."""
    topology = Topology("none")
    words = topology.spout("words", ["a"])
    with pytest.raises(InvalidTopology, match=r"'bolt' has tick=1\.0"):
        topology.bolt("bolt", logic, words.shuffle(), tick=1.0)


@pytest.mark.simulated_time
async def test_B5_tick_without_the_method_is_an_error_of_a_factory_too() -> None:
    """What a factory makes is known only at the start; then it is refused."""
    topology = Topology("none")
    topology.bolt("bolt", lambda: Ignore(), topology.spout("words", ["a"]).shuffle(), tick=1.0)
    with pytest.raises(InvalidTopology, match=r"'bolt' has tick=1\.0"):
        await run_to_end(topology)
