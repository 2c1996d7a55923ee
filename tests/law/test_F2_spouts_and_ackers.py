"""The time budget that the tasks of a topology share: spouts, ackers and fairness (law F2)."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from itertools import count, pairwise
from random import Random
from typing import Any, ClassVar

import pytest

from stormlet import BasicBolt, Collector, EndOfStream, Failure, Spout, SpoutCollector, Topology, Tuple
from tests.cast import ignore, raise_value_error
from tests.law.puppets import Puppets, ackers, script, settle
from tests.law.work import LONGEST, SLICE, TASKS, longest_wait, on_work_time, waits, work, work_loop

# What spouts do.


class Source(Spout[int]):
    """Works in the methods that are named here."""

    busy: ClassVar[tuple[str, ...]]
    burst: ClassVar[int]
    last: ClassVar[int]

    def __init__(self) -> None:
        self.next = 0

    def do(self, name: str) -> None:
        """Work, if it is one of them."""
        if name in self.busy:
            work()

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == self.last:
            raise EndOfStream
        self.do("next_tuple")
        for _ in range(self.burst):
            out.emit(self.next, message_id=self.next)
            self.next += 1

    def ack(self, message_id: object) -> None:
        self.do("ack")

    def fail(self, message_id: object, failure: Failure) -> None:
        self.do("fail")


class AsyncSource(Source):
    """The same with coroutines that never wait."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        super().next_tuple(out)

    async def ack(self, message_id: object) -> None:
        self.do("ack")

    async def fail(self, message_id: object, failure: Failure) -> None:
        self.do("fail")


class SuspendedSource(Source):
    """The same with coroutines that wait for the next iteration."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        super().next_tuple(out)
        await asyncio.sleep(0)

    async def ack(self, message_id: object) -> None:
        self.do("ack")
        await asyncio.sleep(0)

    async def fail(self, message_id: object, failure: Failure) -> None:
        self.do("fail")
        await asyncio.sleep(0)


@pytest.mark.parametrize("tasks", [1, TASKS])
@pytest.mark.parametrize("busy", ["next_tuple", "ack", "fail"])
@pytest.mark.parametrize("base", [Source, AsyncSource, SuspendedSource])
def test_F2_spouts_share_the_slice(base: type[Source], busy: str, tasks: int) -> None:
    """``next_tuple`` and the callbacks count as everything else does."""
    burst, last = (20, 200 if tasks == 1 else 20) if busy != "next_tuple" else (1, 200 // tasks)
    source = type("Named", (base,), {"busy": (busy,), "burst": burst, "last": last})

    async def test() -> None:
        topology = Topology("sources", slice=SLICE)
        bolt = raise_value_error if busy == "fail" else ignore
        topology.bolt("bolt", bolt, topology.spout("source", source, parallelism=tasks).shuffle())
        async with topology.run():
            assert await longest_wait(last * tasks) <= LONGEST

    on_work_time(test())


def test_F2_hundreds_of_callbacks_share_the_slice() -> None:
    """A spout that is told three hundred outcomes at once is told them in many slices."""

    async def test() -> None:
        topology = Topology("told", ackers=0, slice=SLICE, max_spout_pending=None)
        spout, stream = script(topology, *range(300))
        spout.ack = work  # type: ignore[method-assign]
        topology.bolt("bolt", ignore, stream.shuffle())
        async with topology.run():
            assert await longest_wait(300) <= LONGEST

    on_work_time(test())


def test_F2_generators_share_the_slice() -> None:
    """Forty generators that each take a millisecond per value do not each yield in one iteration."""

    def numbers() -> Iterator[int]:
        for number in range(10):
            work()
            yield number

    async def test() -> None:
        topology = Topology("generators", slice=SLICE)
        streams = [topology.spout(f"numbers {number}", numbers) for number in range(TASKS)]
        topology.bolt("bolt", ignore, *(stream.shuffle() for stream in streams))
        async with topology.run():
            assert await longest_wait(400) <= LONGEST

    on_work_time(test())


# What ackers do.


@pytest.mark.simulated_time
async def test_F2_the_acker_shares_the_slice() -> None:
    """When forty tasks ack thousands of tuples at the same moment, the acker takes as many slices as that
    needs, and the host has its turns in between."""
    topology, puppets = Topology("acks", max_spout_pending=2000), Puppets()
    topology.bolt("puppets", puppets, topology.spout("numbers", range(2000)).shuffle(), parallelism=TASKS)
    async with topology.run() as running:
        (acker,) = ackers(running)
        await settle()
        puppets.ack_all()
        acked = [0]
        while acked[-1] < 2000:
            await asyncio.sleep(0)
            acked.append(acker.statistics().acked)
    assert max(after - before for before, after in pairwise(acked)) < 200


# Fairness, and the real clock.


def test_F2_a_spout_has_as_many_turns_as_a_bolt() -> None:
    """One whose every call takes a slice has one of them for one of each bolt task, not one for two."""
    calls, tasks, messages = list[str](), 4, 30

    def busy(component: str) -> None:
        calls.append(component)
        work_loop().work(SLICE)

    def source() -> Iterator[int]:
        for number in count():
            busy("spout")
            yield number

    async def test() -> None:
        topology = Topology("busy", slice=SLICE)
        feed = topology.spout("feed")
        topology.bolt("busy", lambda value: busy("bolt"), feed.all(), parallelism=tasks)
        topology.bolt("ignore", ignore, topology.spout("source", source).shuffle())
        async with topology.run() as running:
            trees = [await running.emit(feed, number) for number in range(messages)]
            for tree in trees:
                await tree

    on_work_time(test())
    last = len(calls) - calls[::-1].index("bolt")
    assert calls[:last].count("bolt") == tasks * messages
    assert abs(calls[:last].count("spout") - messages) <= 2


def test_F2_outcomes_after_a_switch_share_the_slice() -> None:
    """Forty spouts that come back from their ``deactivate`` together are told in many slices what was acked."""
    go, held, outcomes = asyncio.Event(), asyncio.Event(), 2

    class Switched(Spout[int]):
        def __init__(self) -> None:
            self.left = outcomes

        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            if not self.left:
                await asyncio.Event().wait()
            out.emit(self.left, message_id=self.left)
            self.left -= 1

        async def deactivate(self) -> None:
            await go.wait()

        def ack(self, message_id: object) -> None:
            work()

    async def hold(value: object) -> None:
        await held.wait()

    async def test() -> None:
        topology = Topology("switched", slice=SLICE)
        stream = topology.spout("source", Switched, parallelism=TASKS)
        topology.bolt("hold", hold, stream.shuffle(), concurrency=TASKS * outcomes)
        async with topology.run() as running:
            await settle()
            running.deactivate()
            await settle()
            held.set()
            await settle()
            go.set()
            assert await longest_wait(TASKS * outcomes) <= LONGEST

    on_work_time(test())


def test_F2_spouts_that_wake_together_share_the_slice() -> None:
    """Forty that wait for the same event do not take a slice before each iteration's beginning and one after it."""
    random, cost = Random(0), SLICE / 40
    gate = asyncio.Event()

    class Subscriber(Spout[int]):
        number = 0

        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            work_loop().work(cost)
            self.number += 1
            out.emit(self.number, message_id=self.number)
            await gate.wait()

    async def news() -> None:
        nonlocal gate
        while True:
            for _ in range(random.randint(1, 6)):
                await asyncio.sleep(0)
            gate.set()
            gate = asyncio.Event()

    async def test() -> None:
        topology = Topology("subscribers", slice=SLICE)
        stream = topology.spout("subscriber", Subscriber, parallelism=TASKS)
        topology.bolt("bolt", lambda value: work_loop().work(2 * cost), stream.shuffle(), parallelism=8)
        publisher = asyncio.create_task(news())
        async with topology.run() as running:
            waited = await waits(4000)
            publisher.cancel()
            running.stop()
            gate.set()
        assert max(waited) <= 1.75 * SLICE  # two of them are what must not be

    on_work_time(test())


def test_F2_no_task_starves() -> None:
    """Tasks that found no budget come first in the next iteration: none is a hundred calls behind."""
    calls: dict[int, int] = {}
    spread: list[int] = []

    class Count(BasicBolt[int, Any]):
        def execute(self, tup: Tuple[int], out: Collector[Any]) -> None:
            work()
            calls[id(self)] = calls.get(id(self), 0) + 1
            if len(calls) == TASKS:
                spread.append(max(calls.values()) - min(calls.values()))

    async def test() -> None:
        topology = Topology("fair", slice=SLICE, max_spout_pending=2000, queue_capacity=2000)
        topology.bolt("count", Count, script(topology, *range(2000))[1].shuffle(), parallelism=TASKS)
        async with topology.run() as running:
            await running.finished()

    on_work_time(test())
    assert len(calls) == TASKS
    assert max(spread) < 10


@pytest.mark.asyncio
async def test_F2_a_host_waits_for_one_slice_of_real_time() -> None:
    """With the real clock and thirty busy tasks a host's usual wait is nowhere near thirty slices."""

    def spin(value: object) -> None:
        until = time.perf_counter() + 0.0005
        while time.perf_counter() < until:
            pass

    topology = Topology("busy", slice=SLICE)
    topology.bolt("busy", spin, topology.spout("numbers", range(600)).shuffle(), parallelism=30)
    waited = []
    async with topology.run() as running:
        while running.statistics().components["numbers"].acked < 600:
            before = time.perf_counter()
            await asyncio.sleep(0)
            waited.append(time.perf_counter() - before)
    assert statistics.median(each for each in waited if each > SLICE / 2) < 5 * SLICE
