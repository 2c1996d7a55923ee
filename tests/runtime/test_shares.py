"""The time shares of tasks, in topologies whose shares are computed by hand: on simulated time code takes none but by
``work``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Collector,
    ComponentStatistics,
    Running,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
)
from stormlet.testing import Simulation, work


def shares(running: Running, component: str) -> dict[str, float]:
    """Seconds by what they are spent for, without those that are 0."""
    of = running.statistics().components[component]
    found = {
        "executing": of.executing_seconds,
        "awaiting": of.awaiting_seconds,
        "blocked": of.blocked_seconds,
        "limited": of.limited_seconds,
        "idle": of.idle_seconds,
    }
    return {name: seconds for name, seconds in found.items() if seconds > 1e-6}


def adds_up(running: Running) -> bool:
    """No second of any task is counted twice: the shares are those of its uptime."""
    tasks = [
        task for each in running.statistics().components.values() for task in (each.tasks or {}).values()
    ]
    return all(_busy(task) <= task.uptime + 1e-6 for task in tasks)


def _busy(of: object) -> float:
    names = ("executing_seconds", "awaiting_seconds", "blocked_seconds", "limited_seconds")
    return sum(getattr(of, name) for name in names)


def close(**seconds: float) -> object:
    return pytest.approx(seconds, rel=1e-6, abs=1e-6)


def compute(number: int) -> int:
    work(0.1)
    return number


async def await_and_compute(number: int) -> None:
    await asyncio.sleep(0.3)
    work(0.1)


async def await_a_second(number: int) -> None:
    await asyncio.sleep(1)


async def await_a_minute(number: int) -> None:
    await asyncio.sleep(60)


@pytest.mark.simulated_time
async def test_a_bolt_that_computes_executes() -> None:
    """A hundred inputs of a tenth of a second each, at once: it executes for all of the ten seconds."""
    topology = Topology("computing")
    numbers = topology.spout("numbers", range(100), outputs=int)
    topology.bolt("compute", compute, numbers.shuffle())
    async with topology.run() as running:
        await running.finished()
        assert shares(running, "compute") == close(executing=10)
        assert shares(running, "numbers") == close(idle=10)
        assert adds_up(running)


@pytest.mark.simulated_time
async def test_an_await_is_no_execution_and_a_step_is() -> None:
    """Of 0.4 seconds of each call 0.3 are awaited, and what runs between two awaits is executed."""
    topology = Topology("awaiting")
    numbers = topology.spout("numbers", range(10), outputs=int)
    topology.bolt("both", await_and_compute, numbers.shuffle())
    async with topology.run() as running:
        await running.finished()
        assert shares(running, "both") == close(executing=1, awaiting=3)
        assert adds_up(running)


@pytest.mark.simulated_time
async def test_places_that_are_half_taken_are_half_a_wait(sim: Simulation) -> None:
    """Two of four calls await something all the time."""
    topology = Topology("half", message_timeout=100)
    numbers = topology.spout("numbers", range(2), outputs=int)
    topology.bolt("await", await_a_minute, numbers.shuffle(), concurrency=4)
    async with topology.run() as running:
        await sim.advance(seconds=60)
        assert shares(running, "await") == close(awaiting=30, idle=30)
        assert adds_up(running)


@pytest.mark.simulated_time
async def test_while_one_call_executes_no_other_is_idle_or_awaits(sim: Simulation) -> None:
    """Ten calls at a time, of a tenth of a second and an await of nine: they wait for the loop, until the last ones end
    one by one."""
    topology = Topology("both")

    async def both(number: int) -> None:
        work(0.1)
        await asyncio.sleep(0.9)

    numbers = topology.spout("numbers", range(100), outputs=int)
    topology.bolt("both", both, numbers.shuffle(), concurrency=10)
    async with topology.run() as running:
        await running.finished()
        assert shares(running, "both") == close(executing=10, awaiting=0.45, idle=0.45)
        assert adds_up(running)


@pytest.mark.simulated_time
async def test_the_producer_of_a_full_queue_is_blocked() -> None:
    """With room for one tuple, and a second for each of twenty, the bolt before waits in all but the last second."""
    topology = Topology("blocked", queue_capacity=1)
    numbers = topology.spout("numbers", range(20), outputs=int)
    same = topology.bolt("same", lambda number: number, numbers.shuffle(), outputs=int)
    topology.bolt("slow", await_a_second, same.shuffle())
    async with topology.run() as running:
        await running.finished()
        assert shares(running, "slow") == close(awaiting=20)
        assert shares(running, "same") == close(blocked=19, idle=1)
        assert shares(running, "numbers") == close(blocked=18, idle=2)
        waits = {each.consumer: each.waited_seconds for each in running.statistics().edges}
        assert waits == close(same=18, slow=19)
        assert adds_up(running)


@pytest.mark.simulated_time
async def test_a_queue_that_has_room_is_not_waited_for() -> None:
    """Of two consumers of one stream, the slow one alone is waited for."""
    topology = Topology("two", queue_capacity=1)
    numbers = topology.spout("numbers", range(10), outputs=int)
    same = topology.bolt("same", lambda number: number, numbers.shuffle(), outputs=int)
    topology.bolt("fast", lambda number: None, same.shuffle())
    topology.bolt("slow", await_a_second, same.shuffle())
    async with topology.run() as running:
        await running.finished()
        edges = {each.consumer: each for each in running.statistics().edges if each.producer == "same"}
    assert edges["slow"].waited_seconds == pytest.approx(9)
    assert edges["fast"].waited_seconds == 0
    assert [edges[name].transferred for name in ("fast", "slow")] == [10, 10]


@pytest.mark.simulated_time
async def test_a_spout_whose_messages_are_all_pending_is_limited() -> None:
    """One message at a time, each of a second: the spout could give more all the time."""
    topology = Topology("limited", max_spout_pending=1)
    numbers = topology.spout("numbers", range(10), outputs=int)
    topology.bolt("slow", await_a_second, numbers.shuffle())
    async with topology.run() as running:
        await running.finished()
        assert shares(running, "numbers") == close(limited=10)
        assert adds_up(running)


@pytest.mark.simulated_time
async def test_a_topology_without_input_is_idle(sim: Simulation) -> None:
    """The spout that the host feeds, the bolt, and the acker, for ten seconds."""
    topology = Topology("idle")
    fed = topology.spout("fed", outputs=int)
    topology.bolt("compute", compute, fed.shuffle())
    async with topology.run() as running:
        await sim.advance(seconds=10)
        for component in ("fed", "compute", "__acker"):
            assert shares(running, component) == close(idle=10)


@pytest.mark.simulated_time
@pytest.mark.parametrize("option", ["queue_capacity", "max_spout_pending"])
async def test_a_spout_whose_host_waits_for_room_waits_with_it(option: str, sim: Simulation) -> None:
    """By the full queue it is blocked, by the number of pending messages limited."""
    topology = Topology("fed", **{option: 1})
    fed = topology.spout("fed", outputs=int)
    topology.bolt("slow", await_a_second, fed.shuffle())
    async with topology.run() as running:
        for number in range(5):
            await running.emit(fed, number)
        now = asyncio.get_running_loop().time()
        found = shares(running, "fed")
    assert found == close(**{"blocked" if option == "queue_capacity" else "limited": now})
    assert now >= 3


async def ticking() -> AsyncIterator[int]:
    for number in range(10):
        await asyncio.sleep(1)
        work(0.5)
        yield number


@pytest.mark.simulated_time
async def test_an_async_source_awaits_and_executes() -> None:
    """A second is awaited for each value, and half of one computed."""
    topology = Topology("source")
    topology.spout("numbers", ticking, outputs=int)
    async with topology.run() as running:
        await running.finished()
        assert shares(running, "numbers") == close(awaiting=10, executing=5)
        assert adds_up(running)


class Polled(Spout[int]):
    """Takes a tenth of a second for a message and two tenths for its ack, and has one every second."""

    def open(self, context: object, out: SpoutCollector[int]) -> None:
        self.next = 0

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self.next:
            self.next += 1
            work(0.1)
            out.emit(self.next, message_id=self.next)

    def ack(self, message_id: object) -> None:
        work(0.2)


@pytest.mark.simulated_time
async def test_a_polled_spout_executes_in_next_tuple_and_in_ack(sim: Simulation) -> None:
    """What it sleeps between two calls is idle."""
    topology = Topology("polled", idle_max=0.01)
    numbers = topology.spout("numbers", Polled, outputs=int)
    topology.bolt("same", lambda number: None, numbers.shuffle())
    async with topology.run() as running:
        await sim.advance(seconds=9.9)
        assert shares(running, "numbers") == close(executing=3, idle=6.9)
        assert adds_up(running)


class Dying(BasicBolt[int, None]):
    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        work(1)
        if tup.value == 2:
            raise ValueError("it is two")


@pytest.mark.simulated_time
async def test_a_death_costs_what_it_takes_and_no_more(sim: Simulation) -> None:
    """A restart has no sums begin anew; the pause before it is idle."""
    topology = Topology("dying", restart_delay=2, max_attempts=1)
    numbers = topology.spout("numbers", range(5), outputs=int)
    topology.bolt("dying", Dying, numbers.shuffle(), on_error="restart")
    async with topology.run() as running:
        await sim.advance(seconds=20)
        found = running.statistics().components["dying"]
        assert (found.restarts, found.uptime) == (1, pytest.approx(20))
        assert found.executing_seconds == pytest.approx(found.executed + 0)
        assert adds_up(running)


class Held(BatchBolt[int, None]):
    size = 100
    within = 1000.0

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        work(2)


@pytest.mark.simulated_time
async def test_a_flush_at_the_drain_executes(sim: Simulation) -> None:
    """The batch that waited is executed at the end; until the drain the bolt was idle, and its inputs were held."""
    topology = Topology("held")
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("held", Held, numbers.shuffle())
    async with topology.run() as running:
        await running.emit(numbers, 1)
        await sim.advance(seconds=8)
        running.stop()
        await running.finished()
    assert shares(running, "held") == close(executing=2, idle=8)
    process = running.statistics().components["held"].process_times
    assert process is not None
    assert (process.count, process.total) == (1, pytest.approx(10))


class Beside(BatchBolt[int, None]):
    size = 1
    at_once = 4

    async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        await asyncio.sleep(10)


@pytest.mark.simulated_time
async def test_batches_that_are_executed_beside_the_bolt_are_its_places(sim: Simulation) -> None:
    """One batch of at most four is awaited."""
    topology = Topology("beside")
    numbers = topology.spout("numbers", range(1), outputs=int)
    topology.bolt("beside", Beside, numbers.shuffle())
    async with topology.run() as running:
        await sim.advance(seconds=8)
        assert shares(running, "beside") == close(awaiting=2, idle=6)


class Ticking(BasicBolt[int, None]):
    def execute(self, tup: Tuple[int], out: Collector[None]) -> None: ...

    def tick(self, out: Collector[None]) -> None:
        work(0.5)


@pytest.mark.simulated_time
async def test_ticks_are_executed(sim: Simulation) -> None:
    """Half a second of each."""
    topology = Topology("ticks")
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("ticking", Ticking, numbers.shuffle(), tick=1)
    async with topology.run() as running:
        await sim.advance(seconds=10.5)
        assert shares(running, "ticking") == close(executing=5, idle=5.5)


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_call_that_goes_on_is_counted(concurrency: int, sim: Simulation) -> None:
    """Half-way through an await of a minute, half a minute was awaited."""
    topology = Topology("minute")
    numbers = topology.spout("numbers", range(4), outputs=int)
    topology.bolt("await", await_a_minute, numbers.shuffle(), concurrency=concurrency)
    async with topology.run() as running:
        await sim.advance(seconds=30)
        assert shares(running, "await") == close(awaiting=30)


@pytest.mark.simulated_time
async def test_a_step_that_goes_on_is_counted() -> None:
    """User code that asks in the midst of its execution sees what it has executed so far."""
    topology, seen = Topology("asks"), list[float]()

    def asks(number: int) -> None:
        work(1)
        seen.append(running.statistics().components["asks"].executing_seconds)

    numbers = topology.spout("numbers", range(2), outputs=int)
    topology.bolt("asks", asks, numbers.shuffle())
    async with topology.run() as running:
        await running.finished()
    assert seen == pytest.approx([1, 2])


@pytest.mark.simulated_time
async def test_the_end_is_the_end() -> None:
    """What was counted does not change after the run."""
    topology = Topology("over")
    numbers = topology.spout("numbers", range(10), outputs=int)
    topology.bolt("compute", compute, numbers.shuffle())
    async with topology.run() as running:
        await running.finished()
    before = running.statistics()
    await asyncio.sleep(100)
    assert running.statistics().components == before.components
    assert before.components["compute"].uptime == pytest.approx(1)


@pytest.mark.simulated_time
async def test_open_trees_are_told_by_their_age(sim: Simulation) -> None:
    """One tree each second is never settled: those that have seen one rotation are at least as old as that."""
    topology = Topology("ages", message_timeout=30, timeout_buckets=4)
    fed = topology.spout("fed", outputs=int)
    topology.bolt("await", await_a_minute, fed.shuffle(), concurrency=100)
    async with topology.run() as running:
        for number in range(25):
            await running.emit(fed, number)
            await sim.advance(seconds=1)
        ages = [(each.seconds, each.trees) for each in running.statistics().pending_by_age]
    assert sum(trees for _, trees in ages) == 25
    assert ages == [
        (0, 5),
        (pytest.approx(5), 10),
        (pytest.approx(15), 10),
        (pytest.approx(25), 0),
        (pytest.approx(35), 0),
    ]


def split(sentence: str) -> Iterator[str]:
    yield from sentence.split()


@pytest.mark.simulated_time
async def test_the_times_of_calls_are_in_histograms() -> None:
    """Each input has its time, and what acks on return is processed when it was executed."""
    topology = Topology("times")
    numbers = topology.spout("numbers", range(8), outputs=int)
    topology.bolt("compute", lambda number: work(0.5 if number == 7 else 0.1), numbers.shuffle())
    async with topology.run() as running:
        await running.finished()
        compute = running.statistics().components["compute"]
        numbers_ = running.statistics().components["numbers"]
    assert isinstance(compute, ComponentStatistics)
    assert compute.execute_times is not None
    assert compute.execute_times.count == 8
    assert compute.execute_times.total == pytest.approx(1.2)
    assert compute.process_times == compute.execute_times
    assert numbers_.execute_times is None
    assert numbers_.complete_times is not None
    assert numbers_.complete_times.total == numbers_.complete_seconds > 0


def test_time_in_threads_is_executed() -> None:
    """A thread that blocks executes user code: in real time, as simulated time stands still for it."""

    async def run() -> dict[str, float]:
        topology = Topology("threads")
        numbers = topology.spout("numbers", range(10), outputs=int)
        topology.bolt("block", lambda number: time.sleep(0.02), numbers.shuffle(), executor="thread")
        async with topology.run() as running:
            await running.finished()
            assert adds_up(running)
            return shares(running, "block")

    found = asyncio.run(run())
    assert found["executing"] >= 0.2
    assert "awaiting" not in found
