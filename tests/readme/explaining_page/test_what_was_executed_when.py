"""The page "Why is it stuck?": the executions of a tree, with their times."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from stormlet import BatchBolt, Collector, Ending, Timeline, Topology, Tuple
from tests.cast import Hold
from tests.readme.explaining_page.kit import one_bolt


async def take_two_seconds(value: object) -> None:
    await asyncio.sleep(2)
    if value == "wrong":
        raise ValueError(value)


def timeline_of(timeline: Timeline | None) -> Timeline:
    assert timeline is not None
    return timeline


@pytest.mark.simulated_time
async def test_a_timeline() -> None:
    """The recorder also notes when your code is called. `explanation.timeline`, and `failure.timeline` of an attempt
    that has failed, has an `Execution` for each tuple that a bolt was called with: the task, when the call began and
    ended by the clock of the run, how many seconds the tuple had waited until then, and whether it was acked, has
    failed, is held or is running.
    """
    async with one_bolt(take_two_seconds, record=1) as (running, source):
        wrong = await running.emit(source, "wrong", attempts=2)
        later = await running.emit(source, "right")
        await asyncio.sleep(3)
        (failure,) = wrong.explain().failures
        (failed,) = timeline_of(failure.timeline).executions
        (runs,) = timeline_of(later.explain().timeline).executions
    assert (failed.name, failed.ended, failed.ending) == ("bolt[0]", failed.began + 2, Ending.FAILED)
    assert (runs.began, runs.ended, runs.waited, runs.ending) == (failed.began + 2, None, 2, Ending.RUNNING)


class Pairs(BatchBolt[object, None]):
    size, within = 2, 60.0

    async def execute_batch(self, tups: Sequence[Tuple[object]], out: Collector[None]) -> None:
        await asyncio.sleep(5)


@pytest.mark.simulated_time
async def test_the_times_of_batches() -> None:
    """The members of a batch have the times of the batch. Waits for room in a queue are no part of an execution."""
    async with one_bolt(Pairs, record=1) as (running, source):
        first = await running.emit(source, 1)
        await asyncio.sleep(3)
        second = await running.emit(source, 2)
        await asyncio.sleep(1)
        (one,), (other,) = (timeline_of(each.explain().timeline).executions for each in (first, second))
    assert (one.began, one.waited, other.waited) == (other.began, 3, 0)


@pytest.mark.simulated_time
async def test_how_many_executions() -> None:
    """A timeline has the first 200 executions of an attempt, a failure keeps 20 of them; `left_out` counts the
    others.
    """

    def many(value: object) -> Iterator[int]:
        yield from range(300)

    topology = Topology("many", record_edges=1, message_timeout=5, replay_delay=1, drain_timeout=0)
    source = topology.spout("source", [1])
    topology.bolt("hold", Hold, topology.bolt("many", many, source.shuffle()).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(12)
        (explanation,) = running.explain_oldest()
    now, before = timeline_of(explanation.timeline), timeline_of(explanation.failures[0].timeline)
    assert (len(now.executions), now.left_out) == (200, 101)
    assert (len(before.executions), before.left_out) == (20, 281)


@pytest.mark.simulated_time
async def test_timelines_in_tests() -> None:
    """Tests on simulated time record what was executed only where `record_edges` is set: they leave bolts to go their
    usual ways.
    """
    for record in (0.0, 1.0):
        topology = Topology("held", record_edges=record, drain_timeout=0)
        topology.bolt("hold", Hold, topology.spout("source", [1]).shuffle())
        async with topology.run() as running:
            await asyncio.sleep(1)
            (explanation,) = running.explain_oldest()
        assert explanation.recorded
        assert (explanation.timeline is not None) == bool(record)


@pytest.mark.asyncio
async def test_tuples_that_a_thread_is_handed_together() -> None:
    """Tuples that a thread is handed together have the times of all of them."""
    begun, go_on = threading.Event(), threading.Event()

    def three(value: object) -> Iterator[int]:
        yield from range(3)

    def block(value: object) -> None:
        begun.set()
        go_on.wait()

    topology = Topology("threads", record_edges=1)
    source = topology.spout("source")
    threes = topology.bolt("three", three, source.shuffle())
    topology.bolt("block", block, threes.shuffle(), executor="thread")
    async with topology.run() as running:
        try:
            tree = await running.emit(source, 1)
            await asyncio.to_thread(begun.wait)
            _, first = timeline_of(tree.explain().timeline).executions
            assert (first.name, first.ending, first.ended) == ("block[0]", Ending.RUNNING, None)
        finally:
            go_on.set()
