"""The recorder of edges: what it keeps, for how long, and how it is switched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from stormlet import InvalidConfiguration, Running, Topology, UnroutableKey
from stormlet.runtime.explain.recorder import EdgeRecorder, RecordedTree
from stormlet.runtime.wire.outlets import WrappedOutlet
from tests.cast import Hold, ignore
from tests.runtime.explain.reading import one_bolt

pytestmark = pytest.mark.simulated_time


def recorder_of(run: Running) -> EdgeRecorder:
    return run._explainer.recorder  # pyright: ignore[reportPrivateUsage] - what it keeps has no public face


def trees_of(run: Running) -> dict[int, RecordedTree]:
    return recorder_of(run).trees


async def test_a_settled_tree_is_forgotten() -> None:
    """Nothing is kept of trees that are acked."""
    async with one_bolt(ignore) as (run, source):
        trees = [await run.emit(source, number) for number in range(50)]
        assert len(trees_of(run)) == 50
        for tree in trees:
            await tree
        assert trees_of(run) == {}


async def test_a_long_tree_keeps_what_is_outstanding() -> None:
    """Of a tree with thousands of tuples that were acked, nearly none are kept."""

    def many(value: object) -> Iterator[int]:
        yield from range(5000)

    topology = Topology("long", drain_timeout=0)
    source = topology.spout("source")
    numbers = topology.bolt("many", many, source.shuffle())
    topology.bolt("bolt", ignore, numbers.shuffle())
    topology.bolt("keep", Hold, source.shuffle())
    async with topology.run(queue_capacity=10) as run:
        tree = await run.emit(source, "a")
        await asyncio.sleep(5)
        (recorded,) = trees_of(run).values()
        assert len(recorded.edges) <= 64
        assert [each.name for each in tree.explain().outstanding] == ["keep[0]"]


async def test_it_can_be_switched_while_the_topology_runs() -> None:
    """What begins from then on is recorded, and no longer after it was switched off."""
    async with one_bolt(Hold) as (run, source):
        run.record_edges(0)
        before = await run.emit(source, 1)
        run.record_edges()
        during = await run.emit(source, 2)
        await asyncio.sleep(3)
        seconds = [tree.explain().seconds for tree in (before, during)]
        run.record_edges(0)
        after = during.explain()
    assert seconds == [None, 3]
    assert (after.seconds, after.recorded) == (None, False)


async def test_nothing_is_wrapped_while_it_is_off() -> None:
    """Off is free: the outlets are those of a topology that was never recorded."""
    async with one_bolt(Hold) as (run, _):
        tasks = [*run._tasks.all_spouts, *run._tasks.all_bolts]  # pyright: ignore[reportPrivateUsage]
        run.record_edges()
        depth_on = [depth(outlet) for task in tasks for outlet in task.outlets.values()]
        run.record_edges(0)
        depth_off = [depth(outlet) for task in tasks for outlet in task.outlets.values()]
    assert depth_off == [each - 1 for each in depth_on]


def depth(outlet: object) -> int:
    return 1 + depth(outlet.inner) if isinstance(outlet, WrappedOutlet) else 0


async def test_values_are_collected_once_whenever_it_is_switched() -> None:
    """Collecting the values of a tree and recording it do not disturb each other."""

    def double(value: int) -> int:
        return 2 * value

    topology = Topology("collected")
    source = topology.spout("source", outputs=int)
    doubled = topology.bolt("double", double, source.shuffle())
    async with topology.run() as run:
        run.record_edges(0)
        first = await run.emit(source, 1, collect=doubled)
        run.record_edges(1)
        second = await run.emit(source, 2, collect=doubled)
        assert [await first, await second] == [[2], [4]]


@pytest.mark.parametrize("share", [0.25, 0.75])
async def test_a_share_of_the_trees_is_recorded(share: float) -> None:
    """About so many of them; which ones is decided by their roots."""
    async with one_bolt(Hold) as (run, source):
        run.record_edges(share)
        trees = [await run.emit(source, number) for number in range(400)]
        recorded = sum(tree.explain().recorded for tree in trees)
    assert abs(recorded - 400 * share) < 50


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "all"])
async def test_a_share_is_a_number_from_0_to_1(share: Any) -> None:
    """Anything else is refused, by the method and as an option."""
    async with one_bolt(Hold) as (run, _):
        with pytest.raises(InvalidConfiguration, match=r"record_edges=.*: expected a number from 0 to 1"):
            run.record_edges(share)
    with pytest.raises(InvalidConfiguration, match=r"record_edges=.*: expected a number from 0 to 1"):
        Topology("wrong", record_edges=share)


async def test_a_message_that_cannot_be_emitted_leaves_nothing() -> None:
    """Where a grouping refuses the value there is no tree."""
    topology = Topology("refused")
    source = topology.spout("source")
    topology.bolt("bolt", ignore, source.fields())
    async with topology.run() as run:
        with pytest.raises(UnroutableKey):
            await run.emit(source, object())
        assert trees_of(run) == {}


async def test_a_message_that_reaches_no_task_is_forgotten() -> None:
    """It is acked at once (law L11)."""
    topology = Topology("nobody")
    source = topology.spout("source")
    async with topology.run() as run:
        await (await run.emit(source, 1))
        assert trees_of(run) == {}
