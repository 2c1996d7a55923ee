"""Tuples that are with user code in a thread. Real time: under simulated time such code runs inline (law B9)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from stormlet import BatchBolt, Collector, Explanation, Place, Topology, Tuple


async def explained(bolt: Any, begun: threading.Event, go_on: threading.Event, **options: Any) -> Explanation:
    """What is told while the bolt is in its thread."""
    topology = Topology("threads")
    source = topology.spout("source")
    topology.bolt("bolt", bolt, source.shuffle(), executor="thread", **options)
    async with topology.run() as running:
        try:
            tree = await running.emit(source, "a")
            await asyncio.to_thread(begun.wait)
            return tree.explain()
        finally:
            go_on.set()


@pytest.mark.asyncio
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_the_stack_is_that_of_the_thread(concurrency: int) -> None:
    """The user's function that blocks is named, with what it has called."""
    begun, go_on = threading.Event(), threading.Event()

    def block(value: object) -> None:
        begun.set()
        go_on.wait()

    explanation = await explained(block, begun, go_on, concurrency=concurrency)
    (outstanding,) = explanation.outstanding
    assert outstanding.place is Place.EXECUTING
    assert [each.function for each in outstanding.stack][:2] == ["block", "Event.wait"]


@pytest.mark.asyncio
async def test_a_batch_in_a_thread_shows_where_it_is() -> None:
    """Also where whole batches are handed over."""
    begun, go_on = threading.Event(), threading.Event()

    class Batches(BatchBolt[object, None]):
        size = 1

        def execute_batch(self, tups: Sequence[Tuple[object]], out: Collector[None]) -> None:
            begun.set()
            go_on.wait()

    explanation = await explained(Batches, begun, go_on)
    (outstanding,) = explanation.outstanding
    assert outstanding.stack[0].function == "Batches.execute_batch"


@pytest.mark.asyncio
async def test_of_several_batches_each_shows_its_own_thread() -> None:
    """A thread is known by the inputs that it was handed, whatever its code calls them."""
    begun, go_on = threading.Barrier(3), threading.Event()

    class Batches(BatchBolt[str, None]):
        size = 1

        def execute_batch(self, tups: Sequence[Tuple[str]], out: Collector[None]) -> None:
            getattr(self, tups[0].value)()

        def left(self) -> None:
            self.block()

        def right(self) -> None:
            self.block()

        def block(self) -> None:
            begun.wait()
            go_on.wait()

    topology = Topology("threads")
    source = topology.spout("source")
    topology.bolt("bolt", Batches, source.shuffle(), executor="thread", concurrency=2)
    async with topology.run() as running:
        try:
            trees = [await running.emit(source, value) for value in ("left", "right")]
            await asyncio.to_thread(begun.wait)
            stacks = [tree.explain().outstanding[0].stack for tree in trees]
        finally:
            go_on.set()
    assert [stack[1].function for stack in stacks] == ["Batches.left", "Batches.right"]
