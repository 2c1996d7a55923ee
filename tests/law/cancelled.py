"""Topologies that crash, and tasks that somebody cancels."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from stormlet import Bolt, Collector, Running, SpoutCollector, Topology, TopologyCrashed, Tuple
from tests.cast import Counting, ignore, take_a_second

simulated = pytest.mark.simulated_time


def conserved(running: Running) -> bool:
    """The account of each spout adds up, and nothing is pending."""
    spouts = [each for each in running.statistics().components.values() if each.messages]
    return bool(spouts) and all(
        each.messages == each.acked + each.given_back + each.dead_letters + each.withdrawn + each.left_over
        and not each.pending
        for each in spouts
    )


async def crash(
    topology: Topology, cancelled: str | None = None, **options: Any
) -> tuple[Running, TopologyCrashed]:
    """Run it until it crashes; somebody cancels one of its tasks meanwhile."""
    block = topology.run(**options)
    running = await block.__aenter__()
    if cancelled is not None:
        asyncio.get_running_loop().call_later(0.5, cancel, cancelled)
    with suppress(asyncio.CancelledError, TopologyCrashed):
        await running.finished()
    with pytest.raises(TopologyCrashed) as caught:
        await block.__aexit__(None, None, None)
    return running, caught.value


cancelling = pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
"""No tuple answers for what a task dies of."""


def cancel(name: str) -> None:
    """As somebody else's code does."""
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == name)
    task.cancel()


class Polled(Counting):
    """Takes a second for each message."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:  # type: ignore[override]
        await asyncio.sleep(1)
        super().next_tuple(out)


def slow_topology(**options: Any) -> Topology:
    topology = Topology("t", **options)
    topology.bolt("bolt", take_a_second, topology.spout("spout", range(4)).shuffle())
    topology.bolt("polled", ignore, topology.spout("poll", Polled).shuffle())
    return topology


class SlowToStart(Bolt[int, None]):
    """Takes a second to be prepared, and to clean up; dies of its first input."""

    async def prepare(self, context: object) -> None:
        await asyncio.sleep(1)

    async def cleanup(self) -> None:
        await asyncio.sleep(1)

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        out.ack(tup)
