"""Threads that emit wait for room, and none of them for ever."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import sleep
from typing import ClassVar, Literal

import pytest

from stormlet import (
    Bolt,
    Collector,
    Running,
    SpoutCollector,
    TaskContext,
    Topology,
    TopologyCrashed,
    TopologyStopping,
    Tuple,
)
from stormlet.runtime.wire import thread_calls
from stormlet.runtime.wire.thread_calls import MOST, ThreadCalls
from tests.cast import Silent, ignore, wait_for_ever
from tests.helpers import leave_by, until
from tests.law.puppets import Call, script, threads

End = Callable[[Running], Awaitable[None]]


@pytest.mark.simulated_time
async def test_a_call_that_is_cancelled_takes_no_room() -> None:
    """Whoever comes later gets in."""
    topology = Topology("threads", message_timeout=None)
    spout, stream = script(topology)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run():
        assert all(spout.out.emit_threadsafe(number).cancel() for number in range(3 * MOST))
        with threads(
            1, lambda number: spout.out.emit_threadsafe(number, message_id=number), 2 * MOST
        ) as done:
            await done
    assert len(spout.acked) == 2 * MOST


@pytest.mark.simulated_time
async def test_a_call_that_is_cancelled_is_not_made() -> None:
    """Unless the loop has come to it before."""
    topology = Topology("threads")
    spout, stream = script(topology)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run() as running:
        assert spout.out.emit_threadsafe(1).cancel()
        await asyncio.sleep(1)
    assert running.statistics().components["bolt"].executed == 0


# The end.


class Ending(ThreadCalls):
    """Those of an instance that ends between a thread's look for room and its call."""

    def _wait_for_room(self) -> None:
        super()._wait_for_room()
        self.close()


@pytest.mark.asyncio
async def test_a_thread_that_has_room_as_the_instance_ends_is_refused() -> None:
    """The loop may never come to what it is handed after that, and the thread would wait for it."""
    calls, made = Ending(asyncio.get_running_loop(), "bolt[0]", lambda look: MOST), list[int]()
    with pytest.raises(TopologyStopping, match=r"bolt\[0\] has ended"):
        await asyncio.to_thread(calls.emit, lambda: made.append(1))
    await asyncio.sleep(0)
    assert not made


class Worker:
    """A thread that emits for ever."""

    def __init__(self, emit: Call) -> None:
        self.raised: list[BaseException] = []
        self.emitted = 0
        self._emit = emit
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        WORKERS.append(self)

    def _work(self) -> None:
        try:
            while True:
                self._emit(0)
                self.emitted += 1
        except Exception as error:
            self.raised.append(error)

    def ended(self) -> bool:
        """Wait until it was refused; who calls this on the loop holds that up meanwhile."""
        self._thread.join(30)
        return [type(error) for error in self.raised] == [TopologyStopping]


class WorkingSpout(Silent):
    """Has a thread emit messages that are never done, and waits for it in the end."""

    worker: Worker

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.worker = Worker(lambda number: out.emit_threadsafe(number, message_id=object()))

    def close(self) -> None:
        ENDED.append(("spout", self.worker.ended()))


class WorkingBolt(Bolt[int, int]):
    """Has a thread emit more than the next bolt takes, and waits for it in the end."""

    def __init__(self) -> None:
        self.workers: list[Worker] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.workers.append(Worker(out.emit_threadsafe))
        out.ack(tup)

    def cleanup(self) -> None:
        ENDED.extend(("bolt", worker.ended()) for worker in self.workers)


WORKERS: list[Worker] = []
ENDED: list[tuple[str, bool]] = []
"""Who has waited for its thread, and whether that has ended."""


async def without_room() -> None:
    """Wait until there are two threads, and neither emits any more."""
    before = None
    while len(WORKERS) < 2 or before != (before := [each.emitted for each in WORKERS]):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def leave(running: Running) -> None:
    """Drain."""


async def fail(running: Running) -> None:
    """Cancel the topology."""
    raise KeyError


async def kill(running: Running) -> None:
    """Have the instances die."""
    running.kill("spout")
    running.kill("bolt")
    await until(lambda: {kind for kind, _ in ENDED} == {"spout", "bolt"})


@pytest.mark.asyncio
@pytest.mark.parametrize("executor", ["loop", "thread"])
@pytest.mark.parametrize("end", [leave, fail, kill])
async def test_the_end_of_an_instance_lets_its_threads_go(
    end: End, executor: Literal["loop", "thread"]
) -> None:
    """It refuses them before it has user code wait for them."""
    WORKERS.clear()
    ENDED.clear()
    topology = Topology("threads", message_timeout=None, drain_timeout=0.2, queue_capacity=5)
    working = topology.spout("spout", WorkingSpout, max_spout_pending=5)
    fed = topology.spout("fed")
    bolt = topology.bolt("bolt", WorkingBolt, fed.shuffle(), executor=executor)
    topology.bolt("hold", wait_for_ever, bolt.shuffle(), working.shuffle())
    with suppress(KeyError):
        async with topology.run() as running:
            await running.emit(fed, 1)
            await without_room()
            await end(running)
    assert {*ENDED} == {("spout", True), ("bolt", True)}


class Flooding(Bolt[int, int]):
    """Emits for ever in a call of its own thread, behind which its ``cleanup`` comes."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        while True:
            out.emit_threadsafe(tup.value)


@pytest.mark.asyncio
async def test_the_end_lets_a_bolts_own_thread_go() -> None:
    """Or its end would wait for its call, and the call for room."""
    topology = Topology("threads", queue_capacity=5)
    flooding = topology.bolt("flood", Flooding, topology.spout("one", [1]).shuffle(), executor="thread")
    topology.bolt("hold", wait_for_ever, flooding.shuffle())
    async with asyncio.timeout(20):
        with pytest.raises(KeyError):
            await leave_by(KeyError(), topology, after=0.2)


class Unopened(WorkingSpout):
    """After so many good instances one starts a thread, and then fails in ``open``; it is never closed."""

    made: ClassVar[list[WorkingSpout]]
    good: ClassVar[int]

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.made.append(self)
        if len(self.made) > self.good:
            super().open(context, out)
            raise OSError("no")

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        raise OSError("no")

    def close(self) -> None:
        """There is nothing to wait for."""


@pytest.mark.asyncio
@pytest.mark.parametrize("good", [0, 1])
async def test_a_task_that_is_over_lets_its_threads_go(good: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose instance is not told of its end, as it has never begun."""
    monkeypatch.setattr(thread_calls, "LOOK", 0.05)
    Unopened.made, Unopened.good = [], good
    topology = Topology("threads", message_timeout=None, max_restarts=good, restart_delay=0.01)
    topology.bolt("hold", wait_for_ever, topology.spout("spout", Unopened, max_spout_pending=5).shuffle())
    with pytest.raises(TopologyCrashed):
        async with topology.run():
            await asyncio.sleep(60)
    assert await asyncio.to_thread(Unopened.made[-1].worker.ended)


def test_a_closed_loop_lets_threads_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever closes it without an end of the topology."""
    monkeypatch.setattr(thread_calls, "LOOK", 0.05)
    loop = asyncio.new_event_loop()
    calls = ThreadCalls(loop, "spout[0]", lambda look: 0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(calls.emit, lambda: None)
        loop.run_until_complete(asyncio.sleep(0.1))
        assert not waiting.done()
        loop.close()
        with pytest.raises(RuntimeError, match="closed"):
            waiting.result(10)


@pytest.mark.asyncio
async def test_a_loop_that_is_held_up_lets_threads_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """User code that waits for its threads on the loop keeps that from making room: they go on without, after a
    while."""
    monkeypatch.setattr(thread_calls, "LOOK", 0.01)

    class Waiting(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            with ThreadPoolExecutor(1) as pool:
                for number in range(MOST + 3):
                    pool.submit(out.emit_threadsafe, number)
            out.ack(tup)

    topology, seen = Topology("held up"), list[int]()
    waiting = topology.bolt("wait", Waiting, topology.spout("one", [1]).shuffle())
    topology.bolt("see", seen.append, waiting.shuffle())
    async with topology.run():
        await asyncio.sleep(0.1)
    assert seen == list(range(MOST + 3))


def test_a_wait_that_is_interrupted_takes_no_room() -> None:
    """As by Ctrl-C, where the loop runs in another thread than the main one."""
    loop = asyncio.new_event_loop()
    calls = ThreadCalls(loop, "spout[0]", lambda look: 0)
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(loop.run_forever)
        main = threading.get_ident()
        calls._loop_thread = 0  # it was made in this one

        def interrupt() -> None:
            while not calls._looks:  # which it asks for where it waits
                sleep(0.01)
            signal.pthread_kill(main, signal.SIGINT)

        pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            calls.emit(lambda: None)
        assert (calls._under_way, list(calls.waiting)) == (0, [])
        loop.call_soon_threadsafe(loop.stop)
        running.result(10)
    loop.close()
