"""Bolts whose code runs in threads: their collectors, their counts, and the end of their threads.

In real time, for in simulated time it does not run in threads (law B9).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    Running,
    StartFailed,
    Stream,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tree,
    Tuple,
    TupleFailed,
)
from tests.cast import Forget
from tests.helpers import run_to_end

pytestmark = pytest.mark.asyncio

Operation = Callable[[Collector[Any], Tuple[int]], object]


class Kept(Bolt[int, int]):
    """Does something with every input in its thread, and keeps its collector and the input for the test."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.out: Collector[int]
        self.tup: Tuple[int]

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Keep both."""
        self.out, self.tup = out, tup
        self.operation(out, tup)


class KeptBatch(BatchBolt[int, int]):
    """The same with batches of one."""

    size = 1

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.out: Collector[int]
        self.tup: Tuple[int]

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        """Keep both."""
        self.out, self.tup = out, tups[0]
        self.operation(out, tups[0])


def nothing(out: Collector[int], tup: Tuple[int]) -> None:
    """What is done where the test does it."""


@asynccontextmanager
async def threaded(bolt: Kept | KeptBatch) -> AsyncIterator[tuple[Running, Stream[int], list[int]]]:
    """A topology around one such bolt; also what the bolt emits."""
    seen: list[int] = []
    topology = Topology("threads", drain_timeout=5.0)
    spout: Stream[int] = topology.spout("spout")
    stream = topology.bolt("kept", lambda: bolt, spout.shuffle(), executor="thread")
    topology.bolt("see", seen.append, stream.shuffle())
    async with topology.run() as running:
        yield running, spout, seen


async def called(running: Running) -> None:
    """Wait until the bolt has been called."""
    while not running.statistics().components["kept"].executed:  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0)


async def test_ack_threadsafe_within_a_call() -> None:
    """The collector of a thread bolt has ack_threadsafe, and it may be called in execute (F3)."""
    async with threaded(Kept(lambda out, tup: out.ack_threadsafe(tup))) as (running, spout, _):
        assert await (await running.emit(spout, 1)) == []


async def test_fail_threadsafe_within_a_call() -> None:
    """The collector of a thread bolt has fail_threadsafe, with everything that fail says (F3)."""
    bolt = Kept(lambda out, tup: out.fail_threadsafe(tup, "refused", permanent=True))
    async with threaded(bolt) as (running, spout, _):
        with pytest.raises(TupleFailed, match="refused"):
            await (await running.emit(spout, 1))


async def test_emit_threadsafe_within_a_call() -> None:
    """The collector of a thread bolt has emit_threadsafe; what it emits has arrived before its tree ends."""

    def emit(out: Collector[int], tup: Tuple[int]) -> None:
        out.emit_threadsafe(7, anchors=tup)
        out.ack_threadsafe(tup)

    async with threaded(Kept(emit)) as (running, spout, seen):
        await (await running.emit(spout, 1))
        assert seen == [7]


async def test_emit_threadsafe_of_a_batch_bolt() -> None:
    """The collector of a batch bolt in a thread has the _threadsafe methods too (F3)."""
    bolt = KeptBatch(lambda out, tup: out.emit_threadsafe(7, anchors=tup))
    async with threaded(bolt) as (running, spout, seen):
        await (await running.emit(spout, 1))
        assert seen == [7]


async def test_a_kept_collector_works_between_calls() -> None:
    """On the loop's thread a collector kept from a call emits and acks at any time, at once (F3)."""
    bolt = Kept(nothing)
    async with threaded(bolt) as (running, spout, seen):
        tree = await running.emit(spout, 1)
        await called(running)
        reached = bolt.out.emit(7, anchors=bolt.tup)
        bolt.out.ack(bolt.tup)
        assert await tree == []
        assert (len(reached), seen) == (1, [7])


async def test_a_kept_collector_fails_between_calls() -> None:
    """On the loop's thread a collector kept from a call fails an input that is held (F3)."""
    bolt = Kept(nothing)
    async with threaded(bolt) as (running, spout, _):
        tree = await running.emit(spout, 1)
        await called(running)
        bolt.out.reset_timeout(bolt.tup)
        bolt.out.fail(bolt.tup, "late")
        with pytest.raises(TupleFailed, match="late"):
            await tree


@pytest.mark.parametrize("make", [Kept, KeptBatch])
async def test_a_foreign_thread_is_told_what_to_use(make: Callable[[Operation], Kept | KeptBatch]) -> None:
    """A thread that runs no call of the bolt is refused, and sent to the _threadsafe methods (F3)."""
    bolt = make(nothing)
    async with threaded(bolt) as (running, spout, _):
        _ = await running.emit(spout, 1)
        await called(running)
        with pytest.raises(RuntimeError, match="_threadsafe"):
            await asyncio.to_thread(bolt.out.emit, 7)
        _ = await asyncio.to_thread(bolt.out.emit_threadsafe, 7)
        if isinstance(bolt, Kept):
            _ = await asyncio.to_thread(bolt.out.ack_threadsafe, bolt.tup)


class Gate:
    """A function that waits in its thread until the test lets it go on."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.pass_on = threading.Semaphore(0)

    def __call__(self, value: int) -> None:
        self.entered.release()
        self.pass_on.acquire()


async def test_what_is_in_the_thread_is_not_counted_as_acked() -> None:
    """At any moment a thread bolt has executed and acked only inputs that came back from its thread."""
    gate = Gate()
    topology = Topology("counts")
    topology.bolt("gate", gate, topology.spout("spout", range(9)).shuffle(), executor="thread")
    async with topology.run() as running:
        for back in range(9):
            await asyncio.to_thread(gate.entered.acquire)
            counts = running.statistics().components["gate"]
            assert counts.executed == counts.acked <= back
            gate.pass_on.release()
        await running.finished()
        assert running.statistics().components["gate"].acked == 9


class Unprepared(Forget):
    """Fails its start."""

    def prepare(self, context: TaskContext) -> None:
        """Raise."""
        raise ValueError("no")


class UnpreparedBatch(BatchBolt[int, None]):
    """Fails its start."""

    prepare = Unprepared.prepare

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Never called."""


def threads_of(component: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(f"{component}[")]


@pytest.mark.parametrize("bolt", [Unprepared, UnpreparedBatch])
async def test_threads_end_when_the_start_fails(bolt: type[Bolt[int, None]]) -> None:
    """A prepare that raises leaves no thread behind."""
    topology = Topology("start")
    topology.bolt("unprepared", bolt, topology.spout("spout", [1]).shuffle(), executor="thread")
    with pytest.raises(StartFailed) as kept:  # with all that it refers to
        async with topology.run():
            pass
    assert isinstance(kept.value.__cause__, ValueError)
    for thread in threads_of("unprepared"):
        thread.join(30)
    assert threads_of("unprepared") == []


async def test_cleanup_comes_after_all_calls_of_an_instance_that_is_killed() -> None:
    """Their threads go on, and would find closed what they use."""
    begun, may_end = threading.Semaphore(0), [threading.Event(), threading.Event()]
    running, found = list[int](), list[int]()

    class Slow(BasicBolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            running.append(tup.value)
            begun.release()
            assert may_end[tup.value].wait(60)
            running.remove(tup.value)

        def cleanup(self) -> None:
            found.append(len(running))

    topology = Topology("slow", drain_timeout=0)
    numbers = topology.spout("numbers", range(2))
    topology.bolt("slow", Slow, numbers.shuffle(), executor="thread", concurrency=2)
    async with topology.run() as instance:
        for _ in range(2):
            assert await asyncio.to_thread(begun.acquire, timeout=60)
        instance.stop()
        instance.stop()
        may_end[0].set()
        threading.Timer(0.2, may_end[1].set).start()
    assert found == [0]


async def test_a_loop_that_another_thread_runs_takes_its_topology_along() -> None:
    """Collectors belong to the loop, not to the thread that it began in (F3)."""
    loop, bolt = asyncio.new_event_loop(), Kept(nothing)
    topology = Topology("moves")
    spout: Stream[int] = topology.spout("spout")
    topology.bolt("kept", lambda: bolt, spout.shuffle())
    run = topology.run()

    async def begin() -> Tree[object]:
        running = await run.__aenter__()
        tree = await running.emit(spout, 1)
        await called(running)
        return tree

    async def end(tree: Tree[object]) -> None:
        bolt.out.ack(bolt.tup)
        await tree
        await run.__aexit__(None, None, None)

    tree = await asyncio.to_thread(loop.run_until_complete, begin())
    with ThreadPoolExecutor(1) as another:
        another.submit(loop.run_until_complete, end(tree)).result()
    loop.close()
    assert tree.done


def returns(given: object) -> type[Any]:
    """A class of bolts, whose execute returns this."""

    def execute(self: object, tup: object, out: object) -> object:
        return given

    return type("Returns", (BasicBolt,), {"execute": execute})


def returns_batch(given: object) -> type[Any]:
    """The same for batches of one."""

    def execute_batch(self: object, tups: object, out: object) -> object:
        return given

    return type("ReturnsBatch", (BatchBolt,), {"size": 1, "execute_batch": execute_batch})


@pytest.mark.parametrize("bolt", [returns(5), returns_batch(5)])
async def test_what_execute_returns_in_a_thread_is_refused(bolt: type[Any]) -> None:
    """Nothing would take it, so its input fails (B4)."""
    topology = Topology("returns", max_attempts=1)
    topology.bolt("five", bolt, topology.spout("numbers", [1]).shuffle(), executor="thread")
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert "five[0] returned 5, which nothing takes" in str(letter.failure)


async def test_an_async_generator_of_a_function_in_a_thread_is_refused() -> None:
    """As a coroutine is: it would be emitted as a value."""

    async def later(value: int) -> AsyncIterator[int]:
        yield value

    topology = Topology("returns", max_attempts=1)
    topology.bolt(
        "five", lambda value: later(value), topology.spout("numbers", [1]).shuffle(), executor="thread"
    )
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert 'asynchronous code cannot run with executor="thread"' in str(letter.failure)


@pytest.mark.parametrize("bolt", [Bolt, BatchBolt])
@pytest.mark.parametrize("method", ["tick", "flush", "finish"])
async def test_what_other_methods_return_in_a_thread_is_refused(bolt: type[Any], method: str) -> None:
    """The task dies of it (C5)."""
    execute = "execute_batch" if bolt is BatchBolt else "execute"
    made = type("Returns", (bolt,), {method: lambda self, out: 5, execute: lambda self, given, out: None})
    tick = {"tick": 0.01} if method == "tick" else {}
    topology = Topology("returns", max_restarts=0, message_timeout=None)
    topology.bolt("five", made, topology.spout("numbers", [1]).shuffle(), executor="thread", **tick)
    with pytest.raises(TopologyCrashed, match=rf"{method} of five\[0\] returned 5, which nothing takes"):
        async with topology.run():
            await asyncio.sleep(5)


async def test_a_factory_that_is_called_with_a_value_in_a_thread_ends_the_run() -> None:
    """As one does on the loop."""
    topology = Topology("factories")
    spout = topology.spout("numbers", [1])
    topology.bolt("kept", lambda operation=nothing: Kept(operation), spout.shuffle(), executor="thread")
    with pytest.raises(TopologyCrashed, match=r"'kept' has a parameter .* makes a bolt, Kept"):
        await run_to_end(topology)


async def test_a_coroutine_that_a_thread_gets_fails_the_input() -> None:
    """No loop runs there that could await it (B9)."""

    async def later() -> None:
        """Never awaited."""

    topology = Topology("threads", max_attempts=1)
    numbers = topology.spout("numbers", [1])
    topology.bolt("bolt", lambda value: later(), numbers.shuffle(), executor="thread")
    assert (await run_to_end(topology)).statistics().dead_letters == 1
