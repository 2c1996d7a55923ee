"""Calls of collectors from other threads (law F3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, ClassVar

import pytest

from stormlet import (
    AlreadySettled,
    Bolt,
    BoltAckInfo,
    Collector,
    FailureKind,
    InvalidEmit,
    Running,
    Spout,
    SpoutCollector,
    TaskContext,
    TaskHook,
    Topology,
    TopologyStopping,
    Tuple,
    TupleFailed,
)
from stormlet.runtime.wire.thread_calls import MOST
from tests.cast import ignore, take_a_second, wait_for_ever
from tests.law.puppets import Puppets, open_trees, script, settle, threads, two_levels

# Any call.


async def in_thread(call: Callable[[], Future[Any]]) -> Any:
    """Call in a thread, wait there for the result, and return it."""
    return await asyncio.to_thread(lambda: call().result(10))


@pytest.mark.simulated_time
async def test_F3_bolts_may_emit_and_ack_from_threads() -> None:
    """The futures of the thread-safe calls give what the plain calls return, and the effect is the same."""
    topology, feed, first, second = two_levels()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        (tup,), out = first.got, first[0].out
        assert await in_thread(lambda: out.emit_threadsafe("y", anchors=tup)) == (second[0].context.task,)
        assert await in_thread(lambda: out.ack_threadsafe(tup)) is None
        await settle()
        assert (tree.done, [each.value for each in second.got]) == (False, ["y"])
        await in_thread(lambda: second[0].out.ack_threadsafe(second.got[0]))
        assert await tree == []


@pytest.mark.simulated_time
async def test_F3_bolts_may_fail_from_threads() -> None:
    """Reason, exception and permanence arrive."""
    topology, feed, first, _ = two_levels()
    error = OSError("disk")
    async with topology.run() as running:
        tree = await running.emit(feed, "x", attempts=5)
        await settle()
        (tup,), out = first.got, first[0].out
        await in_thread(lambda: out.fail_threadsafe(tup, "because", exception=error, permanent=True))
        with pytest.raises(TupleFailed) as caught:
            await tree
    failure = caught.value.failure
    assert (failure.kind, failure.reason, failure.exception, failure.permanent) == (
        FailureKind.FAILED,
        "because",
        error,
        True,
    )


@pytest.mark.simulated_time
async def test_F3_spouts_may_emit_from_threads() -> None:
    """With message id, stream, task and origin, as a plain emit takes them."""
    topology, puppets = Topology("threads"), Puppets()
    spout, stream = script(topology)
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run():
        emit = await in_thread(lambda: spout.out.emit_threadsafe("x", message_id=7, origin="disk"))
        await settle()
        assert emit == (puppets[0].context.task,)
        assert (puppets.got[0].value, puppets.got[0].origin) == ("x", "disk")
        puppets.ack_all()
        await settle()
    assert spout.acked == [7]


@pytest.mark.simulated_time
async def test_F3_errors_reach_the_thread() -> None:
    """What a plain call raises, the future raises; the topology goes on."""
    topology, feed, first, _ = two_levels()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        (tup,), out = first.got, first[0].out
        with pytest.raises(InvalidEmit, match="nowhere"):
            await in_thread(lambda: out.emit_threadsafe("y", stream="nowhere"))
        await in_thread(lambda: out.ack_threadsafe(tup))
        for again in (out.ack_threadsafe, out.fail_threadsafe):
            with pytest.raises(AlreadySettled):
                await in_thread(lambda again=again: again(tup))  # type: ignore[misc]
        assert await tree == []


@pytest.mark.simulated_time
async def test_F3_many_threads_may_call_at_once() -> None:
    """Eight threads that emit a hundred messages each lose none and mix up none."""
    topology, done = Topology("threads"), list[int]()
    spout, stream = script(topology)
    topology.bolt("bolt", done.append, stream.shuffle())

    def emit_all(thread: int) -> None:
        for number in range(thread * 100, thread * 100 + 100):
            spout.out.emit_threadsafe(number, message_id=number)

    async with topology.run() as running:
        await asyncio.gather(*(asyncio.to_thread(emit_all, thread) for thread in range(8)))
        await settle()
        assert open_trees(running) == 0
    assert sorted(done) == list(range(800))
    assert sorted(map(str, spout.acked)) == sorted(map(str, done))


@pytest.mark.simulated_time
async def test_F3_thread_safe_calls_are_made_on_the_loops_thread() -> None:
    """User code that they call in turn, such as the key function of a grouping, need not be thread-safe."""
    threads: list[int] = []
    topology = Topology("threads")
    spout, stream = script(topology)
    topology.bolt("bolt", ignore, stream.fields(lambda value: threads.append(threading.get_ident())))
    async with topology.run():
        await in_thread(lambda: spout.out.emit_threadsafe("x", message_id="x"))
        await settle()
    assert threads == [threading.get_ident()]
    assert spout.acked == ["x"]


@pytest.mark.simulated_time
async def test_F3_a_cancelled_call_is_not_made() -> None:
    """Who cancels the future before the loop has come to it has emitted nothing."""
    topology = Topology("threads")
    spout, stream = script(topology)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run():
        await settle()
        assert spout.out.emit_threadsafe("x", message_id="x").cancel()
        await settle()
    assert spout.told == []


# Room.


def pending(running: Running) -> int:
    """How many messages of the script are pending."""
    return running.statistics().components["script"].pending


@pytest.mark.simulated_time
async def test_F3_fifty_threads_have_no_more_pending_than_one_spout_may() -> None:
    """However many calls they make without waiting for a result, none overflows; and time passes while they wait."""
    most: list[int] = []
    topology = Topology("threads", max_spout_pending=20, message_timeout=None)
    spout, stream = script(topology)

    async def count(value: int) -> None:
        most.append(pending(running))
        await asyncio.sleep(1)

    topology.bolt("count", count, stream.shuffle(), concurrency=5)
    async with topology.run() as running:
        with threads(50, lambda number: spout.out.emit_threadsafe(number, message_id=number), 20) as done:
            await done
    assert sorted(map(str, spout.acked)) == sorted(map(str, range(1000)))
    assert (spout.failed, max(most)) == ({}, 20)


@pytest.mark.simulated_time
async def test_F3_threads_of_a_bolt_fill_no_queue() -> None:
    """They wait as long as a queue has no room that they have filled: what is on its way may come upon that."""
    most, puppets = [0], Puppets()
    topology = Topology("threads", queue_capacity=10, message_timeout=None)
    feed = topology.spout("feed")
    topology.bolt("slow", take_a_second, topology.bolt("first", puppets, feed.shuffle()).shuffle())
    async with topology.run(drain_timeout=0) as running:
        await running.emit(feed, "x")
        await settle()

        def emit(number: int) -> None:
            puppets[0].out.emit_threadsafe(number)
            most[0] = max(most[0], running.statistics().components["slow"].queued)

        with threads(50, emit, 20) as done:
            await done
        assert running.statistics().components["slow"].executed >= 1000 - 10 - MOST
    assert most[0] <= 10 + MOST


@pytest.mark.simulated_time
async def test_F3_acks_wait_for_no_room() -> None:
    """A thread whose emit waits, because an input is held, acks that input."""
    puppets = Puppets()
    topology = Topology("threads", max_spout_pending=1, message_timeout=None)
    spout, stream = script(topology)
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0):
        with threads(2, lambda number: spout.out.emit_threadsafe(number, message_id=number), 1) as done:
            await settle()
            assert (len(puppets.got), done.done()) == (1, False)
            await asyncio.to_thread(lambda: puppets[0].out.ack_threadsafe(puppets[0].got[0]).result(10))
            await done


@pytest.mark.simulated_time
async def test_F3_the_loops_own_thread_never_waits() -> None:
    """Nobody else could make room: its calls are made as soon as it comes to them."""
    topology = Topology("threads", max_spout_pending=1, message_timeout=None)
    spout, stream = script(topology)
    topology.bolt("hold", wait_for_ever, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        futures = [spout.out.emit_threadsafe(number, message_id=number) for number in range(3 * MOST)]
        await settle()
        assert all(future.done() for future in futures)
        assert pending(running) == 3 * MOST


# Threads of instances that have ended.


class Lived(Bolt[int, int]):
    """Notes the collector of each instance."""

    outs: ClassVar[list[Collector[int]]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.outs.append(out)
        out.ack(tup)


class LivedSpout(Spout[int]):
    """Notes the collector of each instance."""

    outs: ClassVar[list[SpoutCollector[int]]] = []

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.outs.append(out)

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        """Nothing: its threads emit."""


class Hooked(TaskHook):
    """Has the collector of a bolt wrapped."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Nothing."""


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("hooks", [(), (Hooked,)], ids=["plain", "hooked"])
async def test_F3_a_thread_of_a_bolt_that_has_died_is_refused_for_ever(
    hooks: tuple[type[TaskHook], ...], concurrency: int
) -> None:
    """Also when the next instance is at work, whose threads emit."""
    topology, seen, Lived.outs = Topology("threads"), list[int](), []
    feed = topology.spout("feed", outputs=int)
    lived = topology.bolt("lived", Lived, feed.shuffle(), outputs=int, concurrency=concurrency)
    topology.bolt("see", seen.append, lived.shuffle())
    async with topology.run(hooks=hooks) as running:
        for _ in range(2):
            await (await running.emit(feed, 1))
            running.kill("lived")
            await asyncio.sleep(60)
        await (await running.emit(feed, 1))
        first, second, third = Lived.outs
        for out in (first, second):
            with pytest.raises(TopologyStopping, match="has ended, and emits no more"):
                await in_thread(partial(out.emit_threadsafe, 1))
        await in_thread(partial(third.emit_threadsafe, 3))
    assert seen == [3]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_F3_a_thread_of_a_spout_that_has_died_is_refused_for_ever() -> None:
    """Also when the next instance is at work, whose threads emit."""
    topology, seen, LivedSpout.outs = Topology("threads"), list[int](), []
    topology.bolt("see", seen.append, topology.spout("lived", LivedSpout, outputs=int).shuffle())
    async with topology.run() as running:
        running.kill("lived")
        await asyncio.sleep(60)
        first, second = LivedSpout.outs
        with pytest.raises(TopologyStopping, match="has ended, and emits no more"):
            await in_thread(partial(first.emit_threadsafe, 1))
        await in_thread(partial(second.emit_threadsafe, 2))
    assert seen == [2]


class OpensLater(LivedSpout):
    """Its second instance does not open."""

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        super().open(context, out)
        if len(self.outs) == 2:
            raise OSError("not yet")


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_F3_a_thread_of_a_spout_that_could_not_be_opened_is_refused_at_once() -> None:
    """While the next instance is waited for."""
    topology, seen, LivedSpout.outs = Topology("threads", restart_delay=5.0), list[int](), []
    topology.bolt("see", seen.append, topology.spout("lived", OpensLater, outputs=int).shuffle())
    async with topology.run() as running:
        running.kill("lived")
        await asyncio.sleep(6)
        with pytest.raises(TopologyStopping, match="has ended, and emits no more"):
            await in_thread(partial(LivedSpout.outs[1].emit_threadsafe, 1))
        assert len(LivedSpout.outs) == 2
    assert seen == []
