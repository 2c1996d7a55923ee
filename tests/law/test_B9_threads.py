"""Bolts that run in a thread (law B9)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Reject, Running, TaskContext, Topology, Tuple
from tests.cast import ignore, refuse, twice
from tests.engines import Engine
from tests.helpers import until


async def in_threads(engine: Engine, topology: Topology) -> Running:
    """Run to the end in real time, which must not take long."""
    return await asyncio.wait_for(engine.run_to_end(topology), 60)


@pytest.mark.asyncio
async def test_B9_user_code_runs_in_a_thread_and_the_loop_goes_on() -> None:
    """Each of three calls blocks until the loop has turned ten times more."""
    threads: set[int] = set()
    begun, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def block(value: int) -> None:
        threads.add(threading.get_ident())
        begun.release()
        assert go_on.acquire(timeout=30)

    topology = Topology("block")
    topology.bolt("block", block, topology.spout("numbers", range(3)).shuffle(), executor="thread")
    async with topology.run() as running:
        for _ in range(3):
            await until(lambda: begun.acquire(blocking=False))
            for _ in range(10):
                await asyncio.sleep(0)
            go_on.release()
        await running.finished()
    assert running.statistics().components["block"].acked == 3
    assert threads.isdisjoint({threading.get_ident()})


@pytest.mark.asyncio
async def test_B9_a_slice_of_tuples_is_handed_over_at_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thousand tuples take far fewer hops to the thread than there are tuples."""
    hops = 0
    submit = ThreadPoolExecutor.submit

    def counted(*arguments: Any) -> Any:
        nonlocal hops
        hops += 1
        return submit(*arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    topology = Topology("slices", max_spout_pending=None)
    topology.bolt("ignore", ignore, topology.spout("numbers", range(2000)).shuffle(), executor="thread")
    running = await in_threads(engine, topology)
    assert running.statistics().components["ignore"].acked == 2000
    assert 0 < hops < 200


class ThreadBasic(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if tup.value == 3:
            raise Reject("three")
        out.emit(tup.value)


class ThreadBolt(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        if tup.value == 3:
            out.fail(tup, "three", permanent=True)
        else:
            out.emit(tup.value, anchors=tup)
            out.ack(tup)


class ThreadBatch(BatchBolt[int, int]):
    size = 2

    def execute_batch(self, tups: Any, out: Collector[int]) -> None:
        for tup in tups:
            if tup.value == 3:
                out.fail(tup, "three", permanent=True)
            else:
                out.emit(tup.value, anchors=tup)


def thread_function(value: int) -> Iterator[int]:
    if value == 3:
        raise Reject("three")
    yield value


@pytest.mark.asyncio
@pytest.mark.parametrize("logic", [ThreadBasic, ThreadBolt, ThreadBatch, thread_function])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_B9_every_kind_of_bolt_does_the_same_in_a_thread(
    engine: Engine, logic: Any, concurrency: int
) -> None:
    """Outputs are anchored, inputs acked and failed, exactly as on the loop."""
    topology = Topology("kinds")
    source = topology.spout("numbers", range(6))
    stream = topology.bolt("logic", logic, source.shuffle(), executor="thread", concurrency=concurrency)
    topology.bolt("refuse", lambda value: refuse(value) if value == 5 else None, stream.shuffle())
    running = await in_threads(engine, topology)
    assert sorted(each.value for each in running.dead_letters) == [3, 5]
    assert running.statistics().components["numbers"].acked == 4
    assert running.statistics().components["refuse"].executed == 5


@pytest.mark.asyncio
async def test_B9_outputs_are_applied_on_the_loop(engine: Engine) -> None:
    """The grouping of an output that was emitted in a thread is asked on the loop's thread."""
    asked: set[int] = set()

    def key(value: int) -> int:
        asked.add(threading.get_ident())
        return value

    topology = Topology("loop")
    source = topology.spout("numbers", range(10))
    stream = topology.bolt("twice", twice, source.shuffle(), executor="thread")
    topology.bolt("ignore", ignore, stream.fields(key), parallelism=2)
    await in_threads(engine, topology)
    assert asked == {threading.get_ident()}


@pytest.mark.asyncio
async def test_B9_prepare_tick_finish_and_cleanup_run_in_the_thread_too() -> None:
    """All the user code of the instance, in one thread, one after another."""
    calls: dict[str, int] = {}

    class All(BasicBolt[int, int]):
        def note(self, name: str) -> None:
            calls[name] = threading.get_ident()

        def prepare(self, context: TaskContext) -> None:
            self.note("prepare")

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.note("execute")

        def tick(self, out: Collector[int]) -> None:
            self.note("tick")

        def finish(self, out: Collector[int]) -> None:
            self.note("finish")

        def cleanup(self) -> None:
            self.note("cleanup")

    topology = Topology("all")
    topology.bolt("all", All, topology.spout("one", [1]).shuffle(), executor="thread", tick=0.01)
    async with topology.run() as running:
        await until(lambda: "tick" in calls)
        await running.finished()
    assert set(calls) == {"prepare", "execute", "tick", "finish", "cleanup"}
    assert threading.get_ident() not in calls.values()
    assert len(set(calls.values())) == 1


@pytest.mark.simulated_time
async def test_B9_under_simulated_time_the_code_runs_inline(engine: Engine) -> None:
    """No thread is used, so that two runs are the same."""
    threads: set[int] = set()

    def note(value: int) -> None:
        threads.add(threading.get_ident())

    topology = Topology("inline")
    topology.bolt("note", note, topology.spout("numbers", range(3)).shuffle(), executor="thread")
    await engine.run_to_end(topology)
    assert threads == {threading.get_ident()}
