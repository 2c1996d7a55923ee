"""Runs that stay up, and runs that crash (law C5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from stormlet import Bolt, Collector, Running, Topology, TopologyCrashed, Tree, Tuple, TupleFailed
from tests.cast import Forget, Slow, ignore
from tests.engines import Engine
from tests.helpers import leave_by, now
from tests.law.calls import Log, crash_in, crashing_spout, logged_bolt


@pytest.mark.simulated_time
async def test_C5_a_finished_topology_stays_up_until_its_block_is_left() -> None:
    """An hour after its finite source has ended it still processes what the host emits."""
    log: Log = []
    seen: list[object] = []

    class Note(logged_bolt(log)):  # type: ignore[misc]
        async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            seen.append(tup.value)
            out.ack(tup)

    topology = Topology("up")
    source = topology.spout("numbers", [1, 2])
    topology.bolt("note", Note, source.shuffle())
    async with topology.run() as running:
        await running.finished()
        await asyncio.sleep(3600)
        await (await running.emit(source, 3))
        await running.finished()
        assert log == ["bolt prepare"]
    assert seen == [1, 2, 3]
    assert log == ["bolt prepare", "bolt cleanup"]


class CrashingBolt(Bolt[int, int]):
    """A bolt that takes a second, and raises in one of its methods but ``execute``."""

    method: str
    asynchronous: bool

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        await asyncio.sleep(1)
        if self.method == "fail":
            out.fail(tup)
        elif self.method != "flush":
            out.ack(tup)

    def raise_in(self, name: str) -> Awaitable[None] | None:
        if name != self.method:
            return None
        if self.asynchronous:
            return self.raise_later(name)
        raise ZeroDivisionError(name)

    async def raise_later(self, name: str) -> None:
        await asyncio.sleep(1)
        raise ZeroDivisionError(name)

    def tick(self, out: Collector[int]) -> Awaitable[None] | None:
        return self.raise_in("tick")

    def flush(self, out: Collector[int]) -> Awaitable[None] | None:
        return self.raise_in("flush")

    def finish(self, out: Collector[int]) -> Awaitable[None] | None:
        return self.raise_in("finish")


def crashing_bolt(method: str, asynchronous: bool = False) -> type[CrashingBolt]:
    """A class that raises in this method."""
    return type("Crashing", (CrashingBolt,), {"method": method, "asynchronous": asynchronous})


async def sleep_on(running: Running) -> None:
    """A body that sleeps for a thousand seconds and swallows its cancellation."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1000)


async def crash_of(topology: Topology) -> TopologyCrashed:
    """Run with a body that sleeps; give the crash, of which the body must know at once."""
    told: list[float] = []

    async def body(running: Running) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            told.append(now())
            raise

    crash = await crash_in(topology, body)
    assert told == [pytest.approx(now(), abs=1e-9)]
    assert now() < 1000
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(1)
    return crash


@pytest.mark.simulated_time
@pytest.mark.parametrize("method", ["next_tuple", "ack", "fail", "activate"])
async def test_C5_an_exception_of_a_spout_is_a_crash(method: str) -> None:
    """The body is cancelled, as by a task group; the block raises the crash with its cause and place."""
    topology = Topology("crash")
    source = topology.spout("spout", crashing_spout(method))
    topology.bolt("bolt", crashing_bolt(method), source.shuffle())
    crash = await crash_of(topology)
    assert isinstance(crash.__cause__, ZeroDivisionError)
    assert f"{method} of spout[0]" in str(crash)


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("method", ["tick", "flush", "finish"])
async def test_C5_an_exception_of_a_bolt_without_a_tuple_is_a_crash(method: str, asynchronous: bool) -> None:
    """In ``tick``, ``flush`` and ``finish`` there is no input to fail."""
    topology = Topology("crash")
    bolt = crashing_bolt(method, asynchronous)
    topology.bolt("bolt", bolt, topology.spout("numbers", [1]).shuffle(), tick=2.0)
    crash = await crash_of(topology)
    assert isinstance(crash.__cause__, ZeroDivisionError)
    assert f"{method} of bolt[0]" in str(crash)


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees"])
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("method", ["flush", "finish"])
async def test_C5_a_run_to_the_end_raises_what_a_bolt_raises_without_a_tuple(
    engine: Engine, method: str, asynchronous: bool
) -> None:
    """By its cause, task and method."""
    topology = Topology("crash")
    bolt = crashing_bolt(method, asynchronous)
    topology.bolt("bolt", bolt, topology.spout("numbers", [1]).shuffle())
    with pytest.raises(TopologyCrashed, match=rf"{method} of bolt\[0\]") as crash:
        await engine.run_to_end(topology)
    assert isinstance(crash.value.__cause__, ZeroDivisionError)


def raising() -> Iterator[int]:
    """A generator that yields once, then raises."""
    yield 1
    raise ZeroDivisionError


async def raising_async() -> AsyncIterator[int]:
    """The same, asynchronously and later."""
    yield 1
    await asyncio.sleep(1)
    raise ZeroDivisionError


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [raising, raising_async])
async def test_C5_an_exception_of_a_generator_is_a_crash(source: Any) -> None:
    """It is the ``next_tuple`` of its spout."""
    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("spout", source).shuffle())
    crash = await crash_of(topology)
    assert isinstance(crash.__cause__, ZeroDivisionError)
    assert "next_tuple of spout[0]" in str(crash)


def bad_key(value: object) -> object:
    """A key function that raises."""
    raise ZeroDivisionError(value)


@pytest.mark.simulated_time
@pytest.mark.parametrize("of_a_bolt", [False, True])
async def test_C5_an_exception_of_a_key_function_is_a_crash(of_a_bolt: bool) -> None:
    """Also where the value is emitted by a bolt, whose input is not to blame."""
    topology = Topology("crash")
    stream = topology.spout("numbers", [1])
    if of_a_bolt:
        stream = topology.bolt("forward", lambda value: value, stream.shuffle())
    topology.bolt("ignore", ignore, stream.fields(bad_key), parallelism=2)
    crash = await crash_of(topology)
    causes = [crash.__cause__, crash.__cause__ and crash.__cause__.__cause__]
    assert any(isinstance(each, ZeroDivisionError) for each in causes)


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
@pytest.mark.parametrize("of_a_bolt", [False, True])
async def test_C5_a_run_to_the_end_raises_what_a_key_function_raises(engine: Engine, of_a_bolt: bool) -> None:
    """Whoever emits the value."""
    topology = Topology("crash", max_restarts=0)
    stream = topology.spout("numbers", [1])
    if of_a_bolt:
        stream = topology.bolt("forward", lambda value: value, stream.shuffle())
    topology.bolt("ignore", ignore, stream.fields(bad_key), parallelism=2)
    with pytest.raises(TopologyCrashed) as crash:
        await engine.run_to_end(topology)
    causes = [crash.value.__cause__, crash.value.__cause__ and crash.value.__cause__.__cause__]
    assert any(isinstance(each, ZeroDivisionError) for each in causes)


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees"])
async def test_C5_a_run_to_the_end_raises_what_a_generator_raises(engine: Engine) -> None:
    """As the ``next_tuple`` of its spout."""
    topology = Topology("crash", max_restarts=0)
    topology.bolt("ignore", ignore, topology.spout("spout", raising).shuffle())
    with pytest.raises(TopologyCrashed, match=r"next_tuple of spout\[0\]") as crash:
        await engine.run_to_end(topology)
    assert isinstance(crash.value.__cause__, ZeroDivisionError)


@pytest.mark.simulated_time
async def test_C5_a_body_that_swallows_the_cancellation_gets_the_crash_all_the_same() -> None:
    """The block raises it when the body ends."""
    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("spout", raising).shuffle())
    await crash_in(topology, sleep_on)
    assert now() < 1000


@pytest.mark.simulated_time
async def test_C5_a_crash_while_draining_is_raised_from_the_block() -> None:
    """A ``finish`` that raises after the body is over is not lost."""
    topology = Topology("crash")
    topology.bolt("bolt", crashing_bolt("finish"), topology.spout("fed").shuffle())
    with pytest.raises(TopologyCrashed, match=r"finish of bolt\[0\]"):
        async with topology.run():
            pass


@pytest.mark.simulated_time
async def test_C5_finished_raises_the_crash() -> None:
    """Whoever waits in another task gets it at once, and whoever asks later; even if the body goes on."""
    topology = Topology("crash")
    topology.bolt("ignore", ignore, topology.spout("spout", raising_async).shuffle())
    waiting: list[asyncio.Task[float]] = []

    async def wait(running: Running, seconds: float) -> float:
        await asyncio.sleep(seconds)
        with pytest.raises(TopologyCrashed):
            await running.finished()
        return now()

    async def body(running: Running) -> None:
        waiting.extend(asyncio.ensure_future(wait(running, seconds)) for seconds in (0, 20, 100))
        await sleep_on(running)
        await asyncio.sleep(50)

    await crash_in(topology, body)
    assert await asyncio.gather(*waiting) == [1, 20, 100]


@pytest.mark.simulated_time
async def test_C5_a_crash_settles_the_trees() -> None:
    """A tree that was open when the topology crashed fails; nobody waits for it in vain."""

    class HoldAndCrash(Forget):
        def tick(self, out: Collector[object]) -> None:
            raise ZeroDivisionError

    topology = Topology("crash", max_restarts=0)
    fed = topology.spout("fed")
    topology.bolt("bolt", HoldAndCrash, fed.shuffle(), tick=0.5)
    trees: list[Tree[object]] = []

    async def body(running: Running) -> None:
        trees.append(await running.emit(fed, 1))
        await trees[0]

    await crash_in(topology, body)
    with pytest.raises(TupleFailed):
        await trees[0]


@pytest.mark.simulated_time
async def test_C5_an_exception_of_the_body_cancels_and_passes_through() -> None:
    """No drain: the call that runs is cancelled at once, and the exception is not wrapped."""
    topology = Topology("body")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("one", ["x"]).shuffle())
    with pytest.raises(ZeroDivisionError) as raised:
        await leave_by(ZeroDivisionError("mine"), topology)
    assert raised.value.args == ("mine",)
    assert now() == 1


@pytest.mark.simulated_time
async def test_C5_a_cancellation_of_the_host_passes_through() -> None:
    """A timeout around the block works as it does around any other code."""
    topology = Topology("timeout")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("one", ["x"]).shuffle())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await leave_by(AssertionError(), topology, after=100)
    assert now() == 2
