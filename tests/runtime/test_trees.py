"""Waiting for the trees of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from stormlet import Bolt, Collector, Topology, Tree, Tuple

pytestmark = pytest.mark.simulated_time


class Hold(Bolt[int, None]):
    """Settles its inputs when nothing else happens."""

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Keep."""
        self.held.append(tup)

    def finish(self, out: Collector[None]) -> None:
        """Ack."""
        for tup in self.held:
            out.ack(tup)


async def outcome(tree: Tree[object]) -> Sequence[object]:
    return await tree


async def test_cancelled_waits_leave_nothing_behind() -> None:
    """However often a wait for a tree is given up, the tree remembers only who still waits."""
    topology = Topology("waits")
    spout = topology.spout("spout")
    topology.bolt("hold", Hold, spout.shuffle())
    async with topology.run() as running:
        tree = await running.emit(spout, 1)
        patient = asyncio.ensure_future(outcome(tree))
        for _ in range(100):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(outcome(tree), 0.01)
        assert len(tree._waiters) == 1  # pyright: ignore[reportPrivateUsage] - memory has no public face
    assert await patient == []


@pytest.mark.simulated_time
async def test_a_tree_shows_its_outcome() -> None:
    """Printed, it says whether it is open, acked or failed, and why."""

    def odd_fails(value: int) -> None:
        if value % 2:
            raise ValueError("odd")

    topology = Topology("shown")
    spout = topology.spout("spout", outputs=int)
    topology.bolt("odd", odd_fails, spout.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(spout, number) for number in range(2)]
        shown = [repr(tree) for tree in trees]
        await running.emit(spout, 2)
    assert shown == ["<Tree open>", "<Tree open>"]
    assert [repr(tree) for tree in trees] == [
        "<Tree acked>",
        "<Tree failed: failed in 'odd' (task 3): ValueError('odd')>",
    ]
