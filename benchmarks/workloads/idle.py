"""Wake-ups of the loop while a topology has nothing to do (law S4)."""

from __future__ import annotations

import asyncio
import selectors

from stormlet.bench.workload import Figures, Workload, expect
from stormlet.core.tuples import Tuple
from stormlet.model.components import Bolt, Collector
from stormlet.topology import Topology

ROTATION = 0.1
"""Seconds between two rotations, with as many buckets as keep a tree from timing out."""
SETTLING = 0.05


class CountingSelector(selectors.DefaultSelector):
    """Counts how often the loop has looked for events: once an iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events."""
        self.looks += 1
        return super().select(timeout)


class Keep(Bolt[int, None]):
    """Never settles its inputs."""

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Leave the tree open."""


def idle(size: int) -> Figures:
    """Wake-ups of a topology that the host feeds, in so many milliseconds: with nothing open, and with one open tree,
    for which the acker's map must rotate. On asyncio's own loop, as only that shows them."""
    selector = CountingSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(_idle(max(ROTATION * 2, size / 1000), selector))


async def _idle(seconds: float, selector: CountingSelector) -> Figures:
    alone = await _looks(seconds, selector)
    nothing_open = await _with_topology(seconds, selector, trees=0)
    one_open = await _with_topology(seconds, selector, trees=1)
    rotations = seconds / ROTATION
    return {"idle_wakeups": nothing_open - alone, "wakeups_per_rotation": (one_open - alone) / rotations}


async def _with_topology(seconds: float, selector: CountingSelector, trees: int) -> int:
    topology = Topology("bench", message_timeout=ROTATION * 1000, timeout_buckets=1001, drain_timeout=0)
    fed = topology.spout("fed", outputs=int)
    same = topology.bolt("same", _same, fed.shuffle())
    topology.bolt("keep", Keep, same.shuffle())
    async with topology.run() as running:
        for number in range(trees):
            await running.emit(fed, number)
        looks = await _looks(seconds, selector)
        expect(running.statistics().components["__acker"].pending, trees, "open trees")
    return looks


async def _looks(seconds: float, selector: CountingSelector) -> int:
    await asyncio.sleep(SETTLING)
    before = selector.looks
    await asyncio.sleep(seconds)
    return selector.looks - before


def _same(number: int) -> int:
    return number


WORKLOADS = (Workload("idle", "an idle topology, in one second", idle, 1000),)
