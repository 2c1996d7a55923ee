"""Calls of collectors at any time, on the loop's thread (law F3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from stormlet import Bolt, Collector, Spout, SpoutCollector, TaskContext, Topology, Tuple, TupleFailed
from tests.cast import Note, ignore
from tests.engines import Engine
from tests.law.puppets import Puppet, now, script, settle, two_levels, until


def pass_on(puppet: Puppet) -> None:
    """Emit what it got, anchored, and ack it."""
    for tup in puppet.got:
        puppet.out.emit(tup.value, anchors=tup)
    puppet.ack_all()


When = Callable[[Callable[[], None]], object]


def at_once(call: Callable[[], None]) -> None:
    call()


def call_soon(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(call)


def call_later(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(3, call)


def done_callback(call: Callable[[], None]) -> None:
    future = asyncio.get_running_loop().create_future()
    future.add_done_callback(lambda _: call())
    future.set_result(None)


def call_soon_threadsafe(call: Callable[[], None]) -> None:
    thread = threading.Thread(target=asyncio.get_running_loop().call_soon_threadsafe, args=(call,))
    thread.start()
    thread.join()


@pytest.mark.parametrize("when", [at_once, call_soon, call_later, done_callback, call_soon_threadsafe])
@pytest.mark.simulated_time
async def test_F3_bolts_may_emit_and_ack_at_any_time(when: When) -> None:
    """From any callback on the loop's thread, long after ``execute`` has returned."""
    topology, feed, first, second = two_levels()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        when(lambda: pass_on(first[0]))
        await until(5)
        assert (tree.done, [tup.value for tup in second.got]) == (False, ["x"])
        when(second.ack_all)
        assert await tree == []


@pytest.mark.parametrize("when", [at_once, call_soon, call_later, done_callback, call_soon_threadsafe])
@pytest.mark.simulated_time
async def test_F3_bolts_may_fail_at_any_time(when: When) -> None:
    """A fail from any callback is told at once."""
    topology, feed, first, _ = two_levels()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        when(lambda: first[0].out.fail(first[0].got[0], "late"))
        with pytest.raises(TupleFailed, match="late"):
            await tree


@pytest.mark.parametrize("when", [at_once, call_soon, call_later, done_callback, call_soon_threadsafe])
@pytest.mark.simulated_time
async def test_F3_spouts_may_emit_at_any_time(when: When) -> None:
    """From any callback, also when the spout has nothing more to say itself."""
    topology = Topology("calls")
    spout, stream = script(topology)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run():
        await until(10)
        when(lambda: spout.reached.append(spout.out.emit("x", message_id="x")))
        await until(20)
    assert spout.acked == ["x"]
    assert len(spout.reached[0]) == 1


@pytest.mark.simulated_time
async def test_F3_a_task_of_the_users_may_settle() -> None:
    """A bolt may hand its inputs to tasks of its own, that settle them in any order."""

    class Pool(Bolt[int, Any]):
        def prepare(self, context: TaskContext) -> None:
            self.tasks: list[asyncio.Task[None]] = []

        def execute(self, tup: Tuple[int], out: Collector[Any]) -> None:
            self.tasks.append(asyncio.create_task(self.work(tup, out)))

        async def work(self, tup: Tuple[int], out: Collector[Any]) -> None:
            await asyncio.sleep(10 - tup.value)
            out.ack(tup)

    topology = Topology("pool")
    feed = topology.spout("feed")
    topology.bolt("pool", Pool, feed.shuffle())
    async with topology.run() as running:
        for tree in [await running.emit(feed, number) for number in range(9, -1, -1)]:
            await tree
            assert tree.done
        assert now() == 10


@pytest.mark.parametrize("when", [call_soon, call_later, done_callback])
@pytest.mark.simulated_time
async def test_F3_what_a_callback_emits_and_acks_counts(engine: Engine, when: When) -> None:
    """Of three inputs that a bolt gets one after another, long after it has returned."""

    class Later(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            def settle() -> None:
                out.emit(tup.value, anchors=tup)
                out.ack(tup)

            when(settle)

    seen: list[int] = []
    topology = Topology("later")
    later = topology.bolt("later", Later, topology.spout("numbers", range(3)).shuffle())
    topology.bolt("note", partial(Note, seen), later.shuffle())
    ended = await engine.run_to_end(topology)
    assert (sorted(seen), ended.statistics().components["numbers"].acked) == ([0, 1, 2], 3)


@pytest.mark.simulated_time
async def test_F3_one_component_may_call_the_collector_of_another() -> None:
    """A spout's emit inside of a bolt's ``execute`` is sent, though the spout does not run then."""
    topology = Topology("through")
    spout, stream = script(topology)
    feed = topology.spout("feed")
    topology.bolt("through", lambda value: spout.out.emit(value, message_id=value) and None, feed.shuffle())
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run() as running:
        for number in range(5):
            await running.emit(feed, number)
        await settle()
        assert spout.acked == list(range(5))


@pytest.mark.simulated_time
async def test_F3_a_spout_may_emit_while_its_next_tuple_awaits() -> None:
    """A push source may emit from its own callbacks, while ``next_tuple`` waits for something else."""

    class Push(Spout[str]):
        def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
            asyncio.get_running_loop().call_later(5, lambda: out.emit("pushed", message_id=1))

        async def next_tuple(self, out: SpoutCollector[str]) -> None:
            await asyncio.sleep(1000)

    done: list[tuple[float, str]] = []
    topology = Topology("push")
    topology.bolt("bolt", lambda value: done.append((now(), value)), topology.spout("push", Push).shuffle())
    async with topology.run() as running:
        await until(6)
        assert running.statistics().components["push"].acked == 1
    assert done == [(5, "pushed")]
