"""The time budget that the tasks of a topology share: bolts (law F2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any, ClassVar

import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Topology, Tuple
from stormlet.runtime.slices import Pace, Slices, TimedSlices
from tests.law.work import COST, LONGEST, SLICE, TASKS, longest_wait, on_work_time, waits, work, work_loop


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
