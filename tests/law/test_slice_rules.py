"""All tasks of a topology share a time budget per loop iteration (law F2).

Most of these tests run on a loop whose clock is moved by *work*: a call that costs a millisecond moves it by
a millisecond, and nothing else does. What a host then waits is exact.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import count, pairwise
from random import Random
from typing import Any, ClassVar

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    EndOfStream,
    Failure,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
)
from stormlet.runtime.slices import Pace, Slices, TimedSlices
from stormlet.testing import SimulatedLoop
from tests.cast import ignore, raise_value_error
from tests.law.puppets import Puppets, ackers, script, settle

SLICE = 0.002
COST = 0.001
"""Seconds that one call of user code takes."""
TASKS = 40

LONGEST = SLICE + 2 * COST
"""What a host may wait: a slice, and the calls that began within it."""


class WorkLoop(SimulatedLoop):
    """A loop whose clock user code moves by working; the engine takes it for a real one."""

    simulated_time: ClassVar[bool] = False
    worked = 0
    """How often."""

    def work(self, seconds: float) -> None:
        """Spend time."""
        self.worked += 1
        self._clock.now += seconds


def work_loop() -> WorkLoop:
    """The running one."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WorkLoop)
    return loop


def work(value: object = None) -> None:
    """What user code does in these tests."""
    work_loop().work(COST)


def on_work_time(test: Coroutine[Any, Any, None]) -> None:
    """Run on such a loop."""
    with asyncio.Runner(loop_factory=WorkLoop) as runner:
        runner.run(test)


async def waits(calls: int) -> list[float]:
    """How long a host waits for each of its turns, until so many calls have worked."""
    loop, waited = work_loop(), list[float]()
    while loop.worked < calls:
        before = loop.time()
        await asyncio.sleep(0)
        waited.append(loop.time() - before)
    return waited


async def longest_wait(calls: int) -> float:
    """The longest of these."""
    return max(await waits(calls))


# What bolts do.


def function(value: object) -> None:
    work()


def generator(value: object) -> Iterator[object]:
    work()
    yield value


async def coroutine(value: object) -> None:
    work()


async def suspending(value: object) -> None:
    work()
    await asyncio.sleep(0)


class Explicit(Bolt[Any, Any]):
    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        work()
        out.ack(tup)


class Basic(BasicBolt[Any, Any]):
    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        work()


class Batch(BatchBolt[Any, Any]):
    size = 1

    def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[Any]) -> None:
        work()


async def bolts(logic: Callable[..., Any], tasks: int, concurrency: int) -> float:
    """The longest wait while so many tasks are busy."""
    topology = Topology("busy", slice=SLICE, max_spout_pending=400)
    numbers = topology.spout("numbers", range(400))
    topology.bolt("busy", logic, numbers.shuffle(), parallelism=tasks, concurrency=concurrency)
    async with topology.run():
        return await longest_wait(400)


@pytest.mark.parametrize("tasks", [1, TASKS])
@pytest.mark.parametrize("concurrency", [1, 50])
@pytest.mark.parametrize("logic", [function, generator, coroutine, suspending, Explicit, Basic, Batch])
def test_F2_a_host_waits_for_one_slice(logic: Callable[..., Any], concurrency: int, tasks: int) -> None:
    """However many tasks are busy, with however many calls, a host in the same loop has its turn after about
    one slice."""

    async def test() -> None:
        assert await bolts(logic, tasks, concurrency) <= LONGEST

    on_work_time(test())


@pytest.mark.parametrize("part", [1 / 100, 1 / 17, 1 / 5])
def test_F2_lone_tuples_share_the_slice(part: float) -> None:
    """Each of many tasks has a single tuple, so cheap that its slice would not be worth a look; all together are."""
    cost, tasks = SLICE * part, 500

    async def suspended(value: object) -> None:
        work_loop().work(cost)
        await asyncio.sleep(0)

    def plain(value: object) -> None:
        work_loop().work(cost)

    async def test(logic: Callable[[object], object]) -> None:
        topology = Topology("busy", slice=SLICE)
        feed = topology.spout("feed")
        topology.bolt("busy", logic, feed.all(), parallelism=tasks)
        async with topology.run() as running:
            await running.emit(feed, "x")
            assert await longest_wait(tasks) <= SLICE + 2 * cost

    for logic in (plain, suspended):
        on_work_time(test(logic))


def test_F2_calls_that_a_task_dies_of_share_the_slice() -> None:
    """They have taken their time, too."""

    def deadly(value: object) -> None:
        work()
        raise ValueError(value)

    async def test() -> None:
        topology = Topology("deadly", slice=SLICE)
        feed = topology.spout("feed")
        topology.bolt("busy", deadly, feed.all(), parallelism=TASKS, on_error="restart")
        async with topology.run() as running:
            await running.emit(feed, "x")
            assert await longest_wait(TASKS) <= LONGEST

    on_work_time(test())


def test_F2_lone_tuples_of_many_iterations_have_a_slice_each() -> None:
    """What their slices use is counted together only until the next iteration is noticed."""
    cost, messages = SLICE / 8, 100

    async def test() -> None:
        topology = Topology("busy", slice=SLICE)
        feed = topology.spout("feed")
        topology.bolt("busy", lambda value: work_loop().work(cost), feed.shuffle())
        async with topology.run() as running:
            for number in range(messages):
                iterations = 0
                tree = await running.emit(feed, number)
                while not tree.done:
                    await asyncio.sleep(0)
                    iterations += 1
                assert iterations == 1

    on_work_time(test())


@pytest.mark.parametrize("budget", [0.005, 0.05])
def test_F2_the_slice_is_what_the_configuration_says(budget: float) -> None:
    """It is used up, and not more."""

    async def test() -> None:
        topology = Topology("busy", slice=budget)
        topology.bolt("busy", work, topology.spout("numbers", range(1000)).shuffle(), parallelism=8)
        async with topology.run():
            assert budget <= await longest_wait(1000) <= budget * 1.2 + 2 * COST

    on_work_time(test())


@pytest.mark.parametrize("logic", [function, suspending])
def test_F2_a_busy_host_starves_nobody(logic: Callable[..., Any]) -> None:
    """Where others hold the loop for longer than a slice in each iteration, at least one task has its turn in each."""
    tasks = TASKS

    async def test() -> None:
        topology = Topology("busy", slice=SLICE)
        feed = topology.spout("feed")
        topology.bolt("busy", logic, feed.all(), parallelism=tasks)
        async with topology.run() as running:
            trees = [await running.emit(feed, number) for number in range(5)]
            for _ in range(2 * tasks * len(trees)):
                work_loop().work(3 * SLICE)
                await asyncio.sleep(0)
            assert all(tree.done for tree in trees)

    on_work_time(test())


def test_F2_no_slice_is_too_short() -> None:
    """A task has its turn in every other iteration, even where a look at the clock takes longer than a slice."""
    ticks = count(step=SLICE)

    async def task(slices: Slices) -> None:
        pace = Pace()
        for _ in range(3):
            if not slices.begin():
                await slices.turn()
            if slices.spent(pace, 1):
                await slices.turn()

    async def test() -> None:
        slices = TimedSlices(asyncio.get_running_loop(), SLICE / 2, lambda: next(ticks))
        tasks = [asyncio.ensure_future(task(slices)) for _ in range(TASKS)]
        for _ in range(2 * (3 + 3) * TASKS):
            await asyncio.sleep(0)
        assert all(each.done() for each in tasks)

    on_work_time(test())


@pytest.mark.parametrize("budget", [1e-4, 2e-3])
@pytest.mark.parametrize("seed", range(5))
def test_F2_everybody_has_a_turn(seed: int, budget: float) -> None:
    """Whatever works, waits, is cancelled or raises in its slice, and in whatever order."""
    random = Random(seed)

    async def task(slices: Slices) -> None:
        pace = Pace()
        for _ in range(random.randint(1, 20)):
            watched = random.random() < 0.5
            if not slices.begin(watched=watched):
                await slices.turn()
            awaited = random.random() < 0.3
            work_loop().work(random.choice([0, budget / 100, budget / 3]))
            if awaited:
                slices.watch()
                await asyncio.sleep(0)
            if random.random() < 0.05:
                raise ValueError(seed)
            if slices.spent(pace, 1, awaited=awaited or watched):
                await slices.turn()

    async def test() -> None:
        loop = work_loop()
        slices = TimedSlices(loop, budget, loop.time)
        tasks = [asyncio.ensure_future(task(slices)) for _ in range(50)]
        for _ in range(20):
            await asyncio.sleep(0)
            random.choice(tasks).cancel()
        for _ in range(20_000):
            await asyncio.sleep(0)
        assert all(each.done() for each in tasks)
        assert slices.begin()

    on_work_time(test())


def test_F2_the_default_slice_is_two_milliseconds() -> None:
    """Without any setting a host waits for that long."""

    async def test() -> None:
        topology = Topology("busy")
        topology.bolt("busy", work, topology.spout("numbers", range(500)).shuffle(), parallelism=TASKS)
        async with topology.run():
            assert 0.002 <= await longest_wait(500) <= 0.004

    on_work_time(test())


class Errands(Bolt[Any, Any]):
    """Works in the method that is named here."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.held: list[Tuple[Any]] = []

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self.held.append(tup)

    def errand(self, name: str, out: Collector[Any]) -> None:
        """Do it, if it is the one."""
        if name == self.name:
            work()
            for tup in self.held:
                out.ack(tup)
            self.held.clear()

    def tick(self, out: Collector[Any]) -> None:
        self.errand("tick", out)

    def flush(self, out: Collector[Any]) -> None:
        self.errand("flush", out)

    def finish(self, out: Collector[Any]) -> None:
        self.errand("finish", out)


@pytest.mark.parametrize("name", ["tick", "flush", "finish"])
def test_F2_errands_share_the_slice(name: str) -> None:
    """Forty tasks whose ``tick``, ``flush`` or ``finish`` is due at the same moment do not call it in one
    iteration."""
    errands = type("Named", (Errands,), {"name": name})

    async def test() -> None:
        topology = Topology("errands", slice=SLICE)
        topology.bolt("errands", errands, topology.spout("one", [1]).all(), parallelism=TASKS, tick=1.0)
        async with topology.run():
            await asyncio.sleep(1.0 if name == "tick" else 0)
            assert await longest_wait(TASKS) <= LONGEST

    on_work_time(test())


async def jump() -> list[float]:
    """How long a host waits while tuples that cost nothing are followed by some that cost a millisecond."""

    def sudden(value: int) -> None:
        if value >= 5000:
            work()

    topology = Topology("sudden", slice=SLICE, max_spout_pending=10_000, queue_capacity=10_000)
    topology.bolt("sudden", sudden, topology.spout("numbers", range(6000)).shuffle())
    async with topology.run():
        return await waits(1000)


def test_F2_a_jump_in_cost_is_seen_soon() -> None:
    """The host waits for a few of the costly tuples, not for hundreds."""

    async def test() -> None:
        assert max(await jump()) <= SLICE + 40 * COST

    on_work_time(test())


def test_F2_the_pace_follows_the_cost() -> None:
    """A jump in cost is learnt: few waits are too long, and the last ones are as short as any."""

    async def test() -> None:
        waited = await jump()
        assert sum(each > LONGEST for each in waited) < 10
        assert max(waited[-100:]) <= LONGEST

    on_work_time(test())


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
