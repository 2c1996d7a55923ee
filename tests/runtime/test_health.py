"""How a running topology says it is, and what its statistics say of now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import perf_counter

import pytest
import uvloop

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    Health,
    Reject,
    RunState,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
    run,
)
from stormlet.runtime.run.observers import OBSERVE
from tests.cast import Counting, ignore
from tests.epochs.cutting import Source
from tests.epochs.stores import Kept


class Slow(BasicBolt[object, None]):
    """Takes two seconds for each input."""

    async def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Sleep."""
        await asyncio.sleep(2)


class SlowStart(Slow):
    """Takes a second to be prepared."""

    async def prepare(self, context: TaskContext) -> None:
        """Sleep."""
        await asyncio.sleep(1)


@pytest.mark.simulated_time
async def test_a_run_from_start_to_end() -> None:
    """Each stage has its state, and only those that take messages are ready."""
    topology = Topology("stages")
    fed = topology.spout("fed")
    topology.bolt("slow", SlowStart, fed.shuffle())
    states: list[RunState] = []
    async with topology.run(active=False) as running:
        states.append(running.health().state)
        running.activate()
        states.append(running.health().state)
        running.deactivate()
        states.append(running.health().state)
        running.activate()
        await running.emit(fed, 1)
        assert running.health() == Health(RunState.RUNNING, pending=1, full=(), crash=None)
        running.stop()
        states.append(running.health().state)
        assert not running.health().ready
    states.append(running.health().state)
    assert [each.value for each in states] == ["inactive", "running", "inactive", "draining", "stopped"]
    assert running.health().pending == 0


@pytest.mark.simulated_time
async def test_a_crash_is_told() -> None:
    """A crashed topology says what crashed it, and stays crashed."""

    def values() -> object:
        yield 1
        raise ValueError("the source is gone")

    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("values", values).shuffle())  # type: ignore[arg-type]
    with pytest.raises(TopologyCrashed):
        async with topology.run() as running:
            await running.finished()
    health = running.health()
    assert (health.state, health.ready) == (RunState.CRASHED, False)
    assert health.crash is not None
    assert "the source is gone" in health.crash


@pytest.mark.simulated_time
async def test_full_queues_are_named() -> None:
    """The bolts whose queue is full are those that the others wait for."""
    topology = Topology("full")
    numbers = topology.spout("numbers", range(100))
    passed = topology.bolt("pass", lambda value: value, numbers.shuffle())
    topology.bolt("slow", Slow, passed.shuffle(), queue_capacity=3)
    async with topology.run(drain_timeout=None) as running:
        await asyncio.sleep(3)
        assert running.health().full == ("slow",)
        assert running.statistics().components["slow"].queued >= 3


@pytest.mark.simulated_time
async def test_latencies_are_measured() -> None:
    """A bolt's latency is that of its execute, a spout's from the emit of a message to its ack."""
    topology = Topology("latency")
    numbers = topology.spout("numbers", range(5), max_spout_pending=1)
    first = topology.bolt("first", Slow, numbers.shuffle(), outputs=None)
    topology.bolt("second", Slow, numbers.shuffle(), concurrency=2)
    async with topology.run() as running:
        await running.finished()
    components = running.statistics().components
    assert first.component == "first"
    assert components["first"].execute_latency == pytest.approx(2)
    assert components["second"].execute_latency == pytest.approx(2)
    assert components["numbers"].complete_latency == pytest.approx(2)
    assert components["numbers"].complete_samples == 5


@pytest.mark.simulated_time
async def test_a_wait_for_room_is_no_latency() -> None:
    """The bolt that holds up the others is the one that looks slow, not the one that feeds it."""

    async def pass_on(value: int) -> int:
        await asyncio.sleep(0.5)
        return value

    topology = Topology("crowded", message_timeout=None)
    passed = topology.bolt("pass", pass_on, topology.spout("numbers", range(20)).shuffle())
    topology.bolt("slow", Slow, passed.shuffle(), queue_capacity=1)
    async with topology.run(drain_timeout=None) as running:
        await running.finished()
    components = running.statistics().components
    assert components["pass"].execute_latency == pytest.approx(0.5)
    assert components["slow"].execute_latency == pytest.approx(2)


class FailFirst(Bolt[int, None]):
    """Fails each message's first attempt after a second, and acks the second one after three."""

    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Settle by the attempt."""
        await asyncio.sleep(1)
        if tup.attempt == 1:
            out.fail(tup, "again")
        else:
            await asyncio.sleep(2)
            out.ack(tup)


@pytest.mark.simulated_time
async def test_a_failed_attempt_is_no_sample() -> None:
    """The latency is that of attempts that were acked; the pause before a replay is not in it."""
    topology = Topology("attempts")
    topology.bolt("fail", FailFirst, topology.spout("one", [1]).shuffle())
    async with topology.run() as running:
        await running.finished()
    one = running.statistics().components["one"]
    assert (one.complete_samples, one.complete_latency) == (1, pytest.approx(3))


@pytest.mark.simulated_time
async def test_a_spout_class_is_sampled_too() -> None:
    """The message ids of a Spout class need not be unlike each other for that."""
    topology = Topology("class")
    topology.bolt("slow", Slow, topology.spout("counting", Counting, max_spout_pending=1).shuffle())
    async with topology.run() as running:
        await running.finished()
    counting = running.statistics().components["counting"]
    assert (counting.complete_samples, counting.complete_latency) == (3, pytest.approx(2))


def test_latencies_below_a_millisecond_are_measured_with_uvloop() -> None:
    """Its own clock counts whole milliseconds, which would make them none or one."""

    def spin(value: int) -> None:
        until = perf_counter() + 0.0003
        while perf_counter() < until:
            pass

    topology = Topology("fine")
    topology.bolt("spin", spin, topology.spout("one", [1]).shuffle())
    latency = run(topology, loop_factory=uvloop.new_event_loop).components["spin"].execute_latency
    assert latency is not None
    assert latency >= 0.0003
    assert abs(latency * 1000 - round(latency * 1000)) > 1e-6


@pytest.mark.simulated_time
async def test_a_forgotten_message_is_not_the_last_one_measured() -> None:
    """A message that is never settled is given up as a sample, so that the latency does not freeze."""

    class HoldFirst(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            if tup.value:
                out.ack(tup)

    topology = Topology("forgotten", message_timeout=None, drain_timeout=0)
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("hold", HoldFirst, numbers.shuffle())
    async with topology.run() as running:
        await running.emit(numbers, 0)
        await (await running.emit(numbers, 1))
        assert running.statistics().components["numbers"].complete_samples == 0
        await asyncio.sleep(61)
        running.statistics()
        await (await running.emit(numbers, 2))
        assert running.statistics().components["numbers"].complete_samples == 1


def tenths(count: int, **options: float) -> Topology:
    """A topology of numbers, of which one comes in each tenth of a second."""

    async def numbers() -> AsyncIterator[int]:
        for each in range(count):
            yield each
            await asyncio.sleep(0.1)

    OBSERVE.set(None)  # of messages that nobody looks on at most are told all at once
    topology = Topology("tenths", **options)  # type: ignore[arg-type]
    topology.bolt("ignore", ignore, topology.spout("numbers", numbers).shuffle())
    return topology


@pytest.mark.simulated_time
async def test_with_state_a_message_is_acked_at_the_end_of_its_epoch() -> None:
    """The complete latency is the time until the ack, which waits until the epoch is durable (law X3)."""
    async with tenths(100, epoch_seconds=3).run(state=Kept()) as running:
        await asyncio.sleep(3.05)
        numbers = running.statistics().components["numbers"]
        assert (numbers.complete_samples, numbers.complete_latency) == (1, pytest.approx(3))


@pytest.mark.simulated_time
async def test_messages_that_wait_for_their_epoch_are_pending() -> None:
    """Nobody has heard of their outcome (law X3): health and statistics agree."""
    async with tenths(100, epoch_seconds=3).run(state=Kept()) as running:
        await asyncio.sleep(1.05)
        assert running.health().pending == running.statistics().components["numbers"].pending == 11


@pytest.mark.simulated_time
async def test_with_state_messages_are_measured_wherever_in_their_epochs_they_are() -> None:
    """Those of an epoch are acked together, the last one after the least time, so that it must not always be the first
    one that is measured."""
    async with tenths(2000, epoch_seconds=2).run(state=Kept()) as running:
        await running.finished()
    numbers = running.statistics().components["numbers"]
    assert numbers.complete_samples > 40
    assert numbers.complete_latency == pytest.approx(1, abs=0.1)


@pytest.mark.simulated_time
async def test_epochs_longer_than_a_minute_have_their_latency() -> None:
    """Each message has its outcome with its epoch, so that none is given up as a sample."""
    async with tenths(2000, epoch_seconds=100).run(state=Kept()) as running:
        for _ in range(15):
            await asyncio.sleep(10)
            running.statistics()
        numbers = running.statistics().components["numbers"]
        assert (numbers.complete_samples, numbers.complete_latency) == (1, pytest.approx(100))


@pytest.mark.simulated_time
async def test_messages_that_a_source_gets_back_are_no_samples() -> None:
    """Others are measured after them, as the source has emitted the whole epoch anew."""
    source, refused = Source(30, 10, buries=False), [5]

    def refuse_once(value: int) -> None:
        if value in refused:
            refused.remove(value)
            raise Reject("not now")

    topology = Topology("cut")
    topology.bolt("refuse", refuse_once, topology.spout("cut", source).shuffle())
    async with topology.run(state=Kept()) as running:
        await running.finished()
    assert len(source.given_back) == 1
    assert running.statistics().components["cut"].complete_samples > 0
