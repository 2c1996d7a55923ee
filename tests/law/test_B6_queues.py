"""Queues are bounded, and emit is a plain call (law B6)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Running, TaskContext, Topology, Tuple
from tests.cast import Note, Slow, ignore
from tests.engines import Engine
from tests.helpers import run_to_end


@pytest.mark.simulated_time
async def test_B6_emit_is_a_plain_call_that_gives_the_target_tasks(engine: Engine) -> None:
    """It returns the ids of the tasks that the value was delivered to, and nothing to await."""
    given: list[object] = []

    class Emit(BasicBolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            given.append(out.emit(tup.value))
            given.append(out.emit(tup.value, stream="unheard"))

    topology = Topology("plain")
    source = topology.spout("one", ["a"])
    stream = topology.bolt("emit", Emit, source.shuffle(), outputs={"default": None, "unheard": None})
    topology.bolt("ignore", ignore, stream.all(), parallelism=2)
    await engine.run_to_end(topology)
    assert given == [(4, 5), ()]


class NotesQueued(BasicBolt[object, object]):
    """Takes a while for each input, and notes how much is queued or in hand meanwhile."""

    def __init__(self, most: list[int], running: Callable[[], Running]) -> None:
        self.most = most
        self.running = running

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        self.most.append(self.running().statistics().components["slow"].pending)
        await asyncio.sleep(0.01)


class Burst(BasicBolt[object, object]):
    """Emits many values for each input."""

    count = 50

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        for number in range(self.count):
            out.emit(number)


class BurstAsync(Burst):
    """Emits the same in the middle of an await."""

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().execute(tup, out)
        await asyncio.sleep(0.001)


class BurstHeld(Bolt[object, object]):
    """Emits the same as an explicit bolt."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        for number in range(Burst.count):
            out.emit(number, anchors=tup)
        out.ack(tup)


class BurstBatch(BatchBolt[object, object]):
    """Emits the same for each batch of one."""

    size = 1

    def execute_batch(self, tups: Any, out: Collector[object]) -> None:
        for number in range(Burst.count):
            out.emit(number)


class BurstTick(Burst):
    """Emits the same at a tick."""

    def tick(self, out: Collector[object]) -> None:
        for number in range(self.count):
            out.emit(number)


def flood(value: object) -> Iterator[object]:
    """Yields ten times as many."""
    yield from range(10 * Burst.count)


async def flood_async(value: object) -> AsyncIterator[object]:
    for number in flood(value):
        yield number


async def most_queued(
    logic: Any, *, capacity: int, producers: int, seed: int, values: int = 8, **options: Any
) -> int:
    """The most tuples that a slow bolt has queued or in hand, behind so many tasks of another one."""
    most: list[int] = []
    handle: list[Running] = []
    topology = Topology("bound", queue_capacity=capacity, message_timeout=None)
    source = topology.spout("values", range(values))
    stream = topology.bolt("burst", logic, source.shuffle(), parallelism=producers, **options)
    topology.bolt("slow", lambda: NotesQueued(most, lambda: handle[0]), stream.shuffle())
    async with topology.run(seed=seed) as running:
        handle.append(running)
        await running.finished()
    return max(most)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [Burst, BurstAsync, BurstHeld, BurstBatch])
@pytest.mark.parametrize("producers", [1, 3])
@pytest.mark.parametrize("capacity", [1, 10, 40])
async def test_B6_the_bound_is_twice_the_capacity_and_one_executes_outputs_per_producer(
    logic: Any, producers: int, capacity: int
) -> None:
    """However fast the producers and slow the consumer, no more tuples than that are ever there."""
    most = await most_queued(logic, capacity=capacity, producers=producers, seed=producers)
    assert most <= 2 * capacity + producers * Burst.count


class Fails(Burst):
    """Emits the same and raises."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        super().execute(tup, out)
        raise ValueError(tup.value)


class FailsAsync(BurstAsync):
    """The same, after an await."""

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:  # type: ignore[override]
        await super().execute(tup, out)
        raise ValueError(tup.value)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [Fails, FailsAsync])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B6_an_input_that_fails_waits_for_room_like_any_other(logic: Any, concurrency: int) -> None:
    """What it emitted before it raised fills queues, too."""
    most = await most_queued(
        logic, capacity=10, producers=1, seed=1, values=50, concurrency=concurrency, on_error="fail"
    )
    assert most <= 2 * 10 + concurrency * Burst.count


@pytest.mark.asyncio
async def test_B6_an_input_that_fails_in_a_thread_waits_for_room() -> None:
    """In real time, as simulated time runs threads inline."""
    most: list[int] = []
    handle: list[Running] = []
    topology = Topology("bound", queue_capacity=10, max_attempts=1, drain_timeout=0)
    stream = topology.bolt("fails", Fails, topology.spout("values", range(50)).shuffle(), executor="thread")
    topology.bolt("slow", lambda: NotesQueued(most, lambda: handle[0]), stream.shuffle())
    async with topology.run() as running:
        handle.append(running)
        await asyncio.sleep(0.2)
    assert most
    assert max(most) <= 2 * 10 + Burst.count


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [flood, flood_async])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B6_a_generator_waits_between_its_values(logic: Any, concurrency: int) -> None:
    """Of five hundred values of one call, no more than twice the capacity and one are ever there."""
    most = await most_queued(logic, capacity=10, producers=1, seed=1, values=1, concurrency=concurrency)
    assert most <= 2 * 10 + 1


class Holding:
    """Generators that hold something until they are over."""

    def __init__(self, values: int, *, raises: bool) -> None:
        self.values, self.raises = values, raises
        self.held = 0

    def many(self, value: int) -> Iterator[int]:
        """Hold something meanwhile."""
        self.held += 1
        try:
            yield from range(self.values)
        finally:
            self.held -= 1
            if self.raises:
                raise ValueError


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
@pytest.mark.parametrize("end", ["drain", "stop", "body", "host", "kill"])
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("values", [1, 500])
async def test_B6_a_generator_that_is_cut_short_while_it_waits_runs_its_finally(
    end: str, raises: bool, concurrency: int, values: int
) -> None:
    """Before the run is over, and not when the garbage collector comes, whatever that code raises."""
    holding = Holding(values, raises=raises)
    topology = Topology("bound", queue_capacity=1, max_attempts=1, message_timeout=None, drain_timeout=1)
    source = topology.spout("some", range(20))
    stream = topology.bolt("many", holding.many, source.shuffle(), concurrency=concurrency)
    topology.bolt("slow", lambda value: asyncio.sleep(100), stream.shuffle())

    async def host() -> None:
        async with topology.run() as running:
            await asyncio.sleep(0.5)
            assert holding.held > 0
            if end == "stop":
                running.stop()
                running.stop()
            elif end == "body":
                raise KeyError
            elif end == "host":
                await asyncio.sleep(100)
            elif end == "kill":
                running.kill("many")
                await asyncio.sleep(0.01)
                assert holding.held == 0

    entered = asyncio.ensure_future(host())
    await asyncio.sleep(0.6)
    if end == "host":
        entered.cancel()
    await asyncio.wait([entered])
    assert holding.held == 0
    assert entered.cancelled() or isinstance(entered.exception(), KeyError | None)


@pytest.mark.simulated_time
async def test_B6_ticks_wait_for_room_too() -> None:
    """A bolt whose ticks emit faster than the consumer works is held up like any other."""
    most: list[int] = []
    handle: list[Running] = []
    topology = Topology("ticks", queue_capacity=10, drain_timeout=0.1)
    stream = topology.bolt("burst", BurstTick, topology.spout("fed").shuffle(), tick=0.01)
    topology.bolt("slow", lambda: NotesQueued(most, lambda: handle[0]), stream.shuffle())
    async with topology.run() as running:
        handle.append(running)
        await asyncio.sleep(10)
    assert max(most) <= 2 * 10 + Burst.count


@pytest.mark.simulated_time
async def test_B6_a_task_waits_for_every_queue_it_has_filled() -> None:
    """One free consumer does not help where another one is stuck; with it everything goes on."""
    done: list[object] = []

    async def stuck(value: int) -> None:
        await asyncio.sleep(10 if value == 0 else 0)

    topology = Topology("every", queue_capacity=2)
    stream = topology.bolt("forward", lambda value: value, topology.spout("numbers", range(50)).shuffle())
    topology.bolt("stuck", stuck, stream.shuffle())
    topology.bolt("free", partial(Note, done), stream.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(9)
        assert len(done) <= 2 * 2 + 1
        await running.finished()
    assert len(done) == 50


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_B6_a_task_that_has_died_waits_for_the_room_that_it_waited_for(concurrency: int) -> None:
    """However often it dies, its next life adds nothing to a queue that the one before has filled."""
    topology = Topology("again", queue_capacity=2, message_timeout=None, drain_timeout=0)
    numbers = topology.spout("numbers", range(50))
    stream = topology.bolt("forward", lambda value: value, numbers.shuffle(), concurrency=concurrency)
    topology.bolt("stuck", partial(Slow, 100), stream.shuffle())
    async with topology.run() as running:
        for _ in range(8):
            await asyncio.sleep(10)
            running.kill("forward")
        assert running.statistics().components["stuck"].pending <= 2 * 2 + concurrency


@pytest.mark.simulated_time
async def test_B6_a_full_queue_starves_none_of_its_producers() -> None:
    """Of three spouts that wait for the same room again and again each gets its share."""
    seen: list[int] = []

    async def slow(value: int) -> None:
        seen.append(value)
        await asyncio.sleep(1)

    def endless(context: TaskContext) -> Iterator[int]:
        return itertools.repeat(context.task_index)

    def share(context: TaskContext) -> Iterator[int]:
        yield from endless(context)

    topology = Topology("share", queue_capacity=1)
    topology.bolt("slow", slow, topology.spout("three", share, parallelism=3).shuffle())
    async with topology.run():
        await asyncio.sleep(90)
    assert min(seen.count(task) for task in range(3)) >= 20


@pytest.mark.simulated_time
async def test_B6_edges_inside_a_cycle_do_not_wait() -> None:
    """Two bolts that feed each other more than their queues hold still come to an end."""
    topology = Topology("cycle", queue_capacity=1)
    source = topology.spout("depths", [7])
    down = topology.bolt("down", lambda depth: iter([depth] * 2), source.shuffle())
    up = topology.bolt("up", lambda depth: depth - 1 if depth else None, down.shuffle())
    topology.connect(down, up.shuffle())
    running = await asyncio.wait_for(run_to_end(topology), 60)
    assert running.statistics().components["depths"].acked == 1
    assert running.statistics().components["up"].executed == sum(2**n for n in range(1, 9))


@pytest.mark.simulated_time
async def test_B6_in_a_cycle_max_spout_pending_is_the_bound() -> None:
    """However many values the source has, only that many trees run round in it at a time."""
    open_trees: list[int] = []
    handle: list[Running] = []

    async def again(depth: int) -> int | None:
        open_trees.append(handle[0].statistics().components["depths"].pending)
        await asyncio.sleep(0.01)
        return depth - 1 if depth else None

    topology = Topology("cycle", max_spout_pending=3)
    looped = topology.bolt("again", again, topology.spout("depths", [4] * 20).shuffle())
    topology.connect(looped, looped.shuffle())
    async with topology.run() as running:
        handle.append(running)
        await running.finished()
    assert max(open_trees) == 3
    assert len(open_trees) == 100
