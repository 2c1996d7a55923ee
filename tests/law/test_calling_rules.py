"""When and from where collectors may be called, and that acks never queue behind data (law F3, F4)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from stormlet import (
    AlreadySettled,
    Bolt,
    Collector,
    FailureKind,
    InvalidEmit,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    Topology,
    Tuple,
    TupleFailed,
)
from stormlet.runtime.wire.thread_calls import MOST
from tests.cast import ignore, take_a_second, wait_for_ever
from tests.law.puppets import AnyTuple, Puppet, Puppets, now, open_trees, script, settle, threads, until


def two_levels() -> tuple[Topology, Stream[Any], Puppets, Puppets]:
    """A bolt that the test acts for, and another one behind it."""
    topology, first, second = Topology("calls"), Puppets(), Puppets()
    feed = topology.spout("feed")
    topology.bolt("second", second, topology.bolt("first", first, feed.shuffle()).shuffle())
    return topology, feed, first, second


def pass_on(puppet: Puppet) -> None:
    """Emit what it got, anchored, and ack it."""
    for tup in puppet.got:
        puppet.out.emit(tup.value, anchors=tup)
    puppet.ack_all()


# F3: at any time.

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


# F3: from other threads.


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


# F3: room.


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


# F4.


class ByFirstLetter:
    """A custom grouping: "fast" to the first task, "slow" to the second."""

    def prepare(self, targets: Sequence[int]) -> None:
        self.targets = targets

    def choose(self, value: Any) -> Sequence[int]:
        return self.targets[:1] if str(value).startswith("fast") else self.targets[1:]


async def slow_if_told(value: str) -> None:
    if value.startswith("slow"):
        await asyncio.sleep(100)


@pytest.mark.simulated_time
async def test_F4_outcomes_pass_a_full_queue() -> None:
    """A spout whose queue is full of data, and which waits for room, is told of acks at once."""
    topology = Topology("full", queue_capacity=1, drain_timeout=0)
    spout, stream = script(topology, "slow 1", "slow 2", "slow 3", "fast 1", "fast 2")
    topology.bolt("bolt", slow_if_told, stream.custom(ByFirstLetter()), parallelism=2)
    async with topology.run():
        await until(1)
        assert spout.told == [(0, "ack", "fast 1"), (0, "ack", "fast 2")]


@pytest.mark.simulated_time
async def test_F4_acks_pass_a_full_queue() -> None:
    """A bolt that waits for room can ack, and what it acks is acked; its data wait."""

    class Forward(Bolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.tup, self.out = tup, out
            if tup.value == "crowd":
                for number in range(5):
                    out.emit(f"slow {number}")
                asyncio.get_running_loop().call_later(1, lambda: out.ack(tup))
            else:
                out.ack(tup)

    topology = Topology("full", queue_capacity=1, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("slow", slow_if_told, topology.bolt("forward", Forward, feed.shuffle()).shuffle())
    async with topology.run() as running:
        first, crowd = [await running.emit(feed, value) for value in ("fast", "crowd")]
        await until(0.5)
        assert (first.done, crowd.done) == (True, False)
        await until(1.5)
        assert crowd.done


@pytest.mark.simulated_time
async def test_F4_control_messages_are_not_bounded() -> None:
    """However small the queues for data are, thousands of acks in one call do not wait, and all arrive."""

    class Collect(Bolt[int, Any]):
        def __init__(self) -> None:
            self.held: list[AnyTuple] = []

        def execute(self, tup: Tuple[int], out: Collector[Any]) -> None:
            self.held.append(tup)
            if len(self.held) == 3000:
                for each in self.held:
                    out.ack(each)

    topology = Topology("bounded", queue_capacity=1, max_spout_pending=3000, ackers=2)
    topology.bolt("collect", Collect, topology.spout("numbers", range(3000)).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert running.statistics().components["numbers"].acked == 3000
        assert now() == 0


@pytest.mark.simulated_time
async def test_F4_acks_are_not_behind_the_data_of_others() -> None:
    """A message is acked in the moment its bolt is done, though thousands of tuples wait elsewhere."""
    topology = Topology("busy", max_spout_pending=5000, queue_capacity=5000, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("stuck", slow_if_told, topology.spout("many", [f"slow {n}" for n in range(3000)]).shuffle())
    topology.bolt("quick", ignore, feed.shuffle())
    async with topology.run() as running:
        await until(1)
        await (await running.emit(feed, "x"))
        assert now() == 1
