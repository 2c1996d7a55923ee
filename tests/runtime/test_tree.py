"""Waiting for the trees of messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from stormlet import Bolt, Collector, Failure, FailureKind, Topology, Tree, Tuple, TupleTimedOut
from stormlet.core.outcomes import Outstanding, Place
from tests.cast import HoldUntilFinished

pytestmark = pytest.mark.simulated_time


async def outcome(tree: Tree[object]) -> Sequence[object]:
    return await tree


async def test_cancelled_waits_leave_nothing_behind() -> None:
    """However often a wait for a tree is given up, the tree remembers only who still waits."""
    topology = Topology("waits")
    spout = topology.spout("spout")
    topology.bolt("hold", HoldUntilFinished, spout.shuffle())
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
        "<Tree failed: failed in odd[0]: ValueError('odd')>",
    ]


@pytest.mark.simulated_time
async def test_a_tree_tells_of_every_attempt() -> None:
    """The history has the failures of all attempts, whatever the outcome, once that is known."""

    class FailTwice(Bolt[str, None]):
        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            if tup.value == "never" or tup.attempt <= 2:
                out.fail(tup, f"attempt {tup.attempt}")
            else:
                out.ack(tup)

    topology = Topology("history")
    spout = topology.spout("spout", outputs=str)
    topology.bolt("fail", FailTwice, spout.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(spout, value, attempts=3) for value in ("never", "third")]
        assert [tree.history for tree in trees] == [(), ()]
    reasons = [[failure.reason for failure in tree.history] for tree in trees]
    assert reasons == [["attempt 1", "attempt 2", "attempt 3"], ["attempt 1", "attempt 2"]]
    assert trees[1].failure is None


async def test_the_error_of_a_tree_says_where_its_tuples_were() -> None:
    """A note for each that was recorded as outstanding."""
    tree: Tree[object] = Tree(tracked=True)
    where = Outstanding("row", "save", 4, "save[0]", Place.HELD, ("read[0]",))
    tree.settle(Failure(FailureKind.TIMEOUT).recorded(30.0, (where,)), ())
    with pytest.raises(TupleTimedOut) as caught:
        await tree
    assert caught.value.__notes__ == ["'row' is held by save[0], by way of read[0]"]
