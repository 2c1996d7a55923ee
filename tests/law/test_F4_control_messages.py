"""Acks never queue behind data (law F4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from stormlet import Bolt, Collector, Topology, Tuple
from tests.cast import ignore
from tests.law.puppets import AnyTuple, now, script, until


class ByFirstLetter:
    """A custom grouping: "fast" to the first task, "slow" to the second."""

    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets

    def choose(self, value: Any) -> Sequence[int]:
        return self.targets[:1] if str(value).startswith("fast") else self.targets[1:]


async def slow_if_told(value: str) -> None:
    if value.startswith("slow"):
        await asyncio.sleep(100)


@pytest.mark.simulated_time
async def test_F4_outcomes_pass_a_full_queue() -> None:
    """A spout whose queue is full of data, and which waits for room, is told of acks at once."""
    topology = Topology("full", queue_capacity=1, drain_timeout=0)
    spout, stream = script(topology, "slow 1", "slow 2", "slow 3", "fast 1", "fast 2")
    topology.bolt("bolt", slow_if_told, stream.custom(ByFirstLetter()), parallelism=2)
    async with topology.run():
        await until(1)
        assert spout.told == [(0, "ack", "fast 1"), (0, "ack", "fast 2")]


@pytest.mark.simulated_time
async def test_F4_acks_pass_a_full_queue() -> None:
    """A bolt that waits for room can ack, and what it acks is acked; its data wait."""

    class Forward(Bolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.tup, self.out = tup, out
            if tup.value == "crowd":
                for number in range(5):
                    out.emit(f"slow {number}")
                asyncio.get_running_loop().call_later(1, lambda: out.ack(tup))
            else:
                out.ack(tup)

    topology = Topology("full", queue_capacity=1, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("slow", slow_if_told, topology.bolt("forward", Forward, feed.shuffle()).shuffle())
    async with topology.run() as running:
        first, crowd = [await running.emit(feed, value) for value in ("fast", "crowd")]
        await until(0.5)
        assert (first.done, crowd.done) == (True, False)
        await until(1.5)
        assert crowd.done


@pytest.mark.simulated_time
async def test_F4_control_messages_are_not_bounded() -> None:
    """However small the queues for data are, thousands of acks in one call do not wait, and all arrive."""

    class Collect(Bolt[int, Any]):
        def __init__(self) -> None:
            self.held: list[AnyTuple] = []

        def execute(self, tup: Tuple[int], out: Collector[Any]) -> None:
            self.held.append(tup)
            if len(self.held) == 3000:
                for each in self.held:
                    out.ack(each)

    topology = Topology("bounded", queue_capacity=1, max_spout_pending=3000, ackers=2)
    topology.bolt("collect", Collect, topology.spout("numbers", range(3000)).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert running.statistics().components["numbers"].acked == 3000
        assert now() == 0


@pytest.mark.simulated_time
async def test_F4_acks_are_not_behind_the_data_of_others() -> None:
    """A message is acked in the moment its bolt is done, though thousands of tuples wait elsewhere."""
    topology = Topology("busy", max_spout_pending=5000, queue_capacity=5000, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("stuck", slow_if_told, topology.spout("many", [f"slow {n}" for n in range(3000)]).shuffle())
    topology.bolt("quick", ignore, feed.shuffle())
    async with topology.run() as running:
        await until(1)
        await (await running.emit(feed, "x"))
        assert now() == 1
