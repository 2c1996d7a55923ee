"""No await of user code hides what a task has not sent (law F1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    Failure,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    Tuple,
)
from tests.cast import ignore
from tests.law.awaits import AGES, begin, dawdle
from tests.law.puppets import Puppets, now, script, settle, until

# Bolts that await. All ack, and emit something, before they do.


async def function(value: str) -> str:
    await dawdle(value)
    return value


async def generator(value: str) -> AsyncIterator[str]:
    yield value
    await dawdle(value)


def returns_awaitable(value: str) -> Awaitable[None]:
    return dawdle(value)


def returns_async_iterator(value: str) -> AsyncIterator[str]:
    return generator(value)


class Explicit(Bolt[str, str]):
    async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.emit(tup.value, anchors=tup)
        out.ack(tup)
        await dawdle(tup.value)


class Later(Bolt[str, str]):
    async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        await asyncio.sleep(0.25)
        out.emit(tup.value, anchors=tup)
        out.ack(tup)
        await dawdle(tup.value)


class Basic(BasicBolt[str, str]):
    async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.emit(tup.value)
        out.ack(tup)
        await dawdle(tup.value)


class Batch(BatchBolt[str, str]):
    size = 1

    async def execute_batch(self, tups: Sequence[Tuple[str]], out: Collector[str]) -> None:
        for tup in tups:
            out.emit(tup.value)
            out.ack(tup)
            await dawdle(tup.value)


BOLTS = [function, generator, returns_awaitable, returns_async_iterator, Explicit, Later, Basic, Batch]
ACK_FIRST = [Explicit, Later, Basic, Batch]
EMIT_FIRST = [generator, returns_async_iterator, *ACK_FIRST]


@pytest.mark.parametrize("context", ["plain", "own context"])
@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("logic", BOLTS)
@pytest.mark.simulated_time
async def test_F1_no_await_of_a_bolt_hides_an_ack(
    logic: Callable[..., Any], concurrency: int, context: str
) -> None:
    """While a bolt awaits, what it has acked before is acked: earlier inputs, and its own if it did so
    itself."""
    topology = Topology("awaits", drain_timeout=0)
    feed = topology.spout("feed")
    outputs = topology.bolt("logic", logic, feed.shuffle(), concurrency=concurrency)
    topology.bolt("next", ignore, outputs.shuffle())
    async with topology.run() as running:
        trees = await begin(running, feed, "first", "second", context=context)
        assert [tree.done for tree in trees] == [True, logic in ACK_FIRST]


@pytest.mark.parametrize("context", ["plain", "own context"])
@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("logic", EMIT_FIRST)
@pytest.mark.simulated_time
async def test_F1_no_await_of_a_bolt_hides_a_delivered_tuple(
    logic: Callable[..., Any], concurrency: int, context: str
) -> None:
    """While a bolt awaits, what it has emitted before is executed."""
    topology, puppets = Topology("awaits", drain_timeout=0), Puppets()
    feed = topology.spout("feed")
    outputs = topology.bolt("logic", logic, feed.shuffle(), concurrency=concurrency)
    topology.bolt("puppets", puppets, outputs.shuffle())
    async with topology.run() as running:
        await begin(running, feed, "first", "second", context=context)
        assert [tup.value for tup in puppets.got] == ["first", "second"]


@pytest.mark.simulated_time
async def test_F1_the_end_of_a_call_beside_others_hides_nothing() -> None:
    """When one of several concurrent calls is over, its output is executed and its input acked, though the
    others go on."""

    async def nap(value: str) -> str:
        await asyncio.sleep(0.25)
        await dawdle(value)
        return value

    topology, puppets = Topology("beside", drain_timeout=0), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, topology.bolt("nap", nap, feed.shuffle(), concurrency=3).shuffle())
    async with topology.run() as running:
        first, _ = await begin(running, feed, "first", "second")
        assert [tup.value for tup in puppets.got] == ["first"]
        puppets.ack_all()
        assert await first == []
        assert now() == 1


class Errands(Bolt[str, str]):
    """Holds its inputs; acks them, emits and then awaits in the method that is named here."""

    slow: str

    def __init__(self) -> None:
        self.held: list[Tuple[str]] = []

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.held.append(tup)

    async def errand(self, name: str, out: Collector[str]) -> None:
        """Do it, if it is the one."""
        if name == self.slow:
            for tup in self.held:
                out.emit(name, anchors=tup)
                out.ack(tup)
            self.held.clear()
            await asyncio.sleep(AGES)

    async def tick(self, out: Collector[str]) -> None:
        await self.errand("tick", out)

    async def flush(self, out: Collector[str]) -> None:
        await self.errand("flush", out)

    async def finish(self, out: Collector[str]) -> None:
        await self.errand("finish", out)


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("name", ["tick", "flush", "finish"])
@pytest.mark.simulated_time
async def test_F1_no_await_of_an_errand_hides_anything(name: str, concurrency: int) -> None:
    """While ``tick``, ``flush`` or ``finish`` awaits, what it emitted is executed and its acks are acks."""
    topology, puppets = Topology("errands", drain_timeout=0), Puppets()
    spout, stream = script(topology, "x")
    errands = type("Named", (Errands,), {"slow": name})
    outputs = topology.bolt("errands", errands, stream.shuffle(), concurrency=concurrency, tick=0.5)
    topology.bolt("puppets", puppets, outputs.shuffle())
    async with topology.run():
        await until(1)
        assert [tup.value for tup in puppets.got] == [name]
        puppets.ack_all()
        await settle()
        assert spout.acked == ["x"]


# Spouts that await.


class Dawdler(Spout[str]):
    """Emits in the method that is named here, and then awaits."""

    slow: str
    before = 0.0

    async def do(self, name: str) -> None:
        """Emit and await, if it is the method; the first time."""
        if name == self.slow:
            self.slow = ""
            await asyncio.sleep(self.before)
            self.out.emit(name, message_id=name)
            await asyncio.sleep(AGES)

    async def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        self.out = out
        self.begun = False
        await self.do("open")

    async def activate(self) -> None:
        await self.do("activate")

    async def deactivate(self) -> None:
        await self.do("deactivate")

    async def next_tuple(self, out: SpoutCollector[str]) -> None:
        if not self.begun and self.slow in ("ack", "fail"):
            self.begun = True
            out.emit(self.slow + " this", message_id="this")
        await self.do("next_tuple")

    async def ack(self, message_id: object) -> None:
        await self.do("ack")

    async def fail(self, message_id: object, failure: Failure) -> None:
        await self.do("fail")


def settle_as_told(value: str) -> None:
    """Ack everything but "fail this"."""
    if value == "fail this":
        raise ValueError(value)


@pytest.mark.parametrize("before", [0.0, 0.5])
@pytest.mark.parametrize("name", ["activate", "deactivate", "next_tuple", "ack", "fail"])
@pytest.mark.simulated_time
async def test_F1_no_await_of_a_spout_hides_anything(name: str, before: float) -> None:
    """While a method of a spout awaits, what it emitted is executed and its init has arrived: the tree is
    acked."""
    topology = Topology("dawdles", drain_timeout=0)
    spout = type("Named", (Dawdler,), {"slow": name, "before": before})
    topology.bolt("bolt", settle_as_told, topology.spout("spout", spout).shuffle())
    async with topology.run() as running:
        if name == "deactivate":
            await settle()  # it has to be activated before
            running.deactivate()
        await until(1)
        counts = running.statistics().components
        assert counts["bolt"].executed == 1 + (name in ("ack", "fail"))
        assert counts["__acker"].acked == 1 + (name == "ack")
        assert counts["__acker"].pending == 0


@pytest.mark.simulated_time
async def test_F1_no_await_of_open_hides_anything() -> None:
    """What a spout emits while it opens is executed and acked before ``open`` has returned."""
    done: list[str] = []
    topology = Topology("opens", drain_timeout=0)
    spout = type("Named", (Dawdler,), {"slow": "open"})
    topology.bolt("bolt", done.append, topology.spout("spout", spout).shuffle())
    run = topology.run()
    starting = asyncio.ensure_future(run.__aenter__())
    await until(1)
    assert done == ["open"]
    running = await starting
    await run.__aexit__(None, None, None)
    assert running.statistics().components["__acker"].acked == 1


@pytest.mark.simulated_time
async def test_F1_no_await_of_a_generator_hides_anything() -> None:
    """What an async generator spout has yielded is executed and acked while it awaits."""

    async def slow() -> AsyncIterator[str]:
        yield "x"
        await asyncio.sleep(AGES)

    topology = Topology("yields")
    topology.bolt("bolt", ignore, topology.spout("slow", slow).shuffle())
    async with topology.run() as running:
        await settle()
        assert running.statistics().components["slow"].acked == 1


# Threads.


@pytest.mark.asyncio
async def test_F1_no_thread_hides_anything() -> None:
    """While user code blocks in a thread, what its task did before has left: an input is acked, an output is
    executed, and only then the thread goes on."""
    go, seen = threading.Event(), asyncio.Event()

    def block(value: str) -> str:
        assert value == "first" or go.wait(60)
        return value

    topology = Topology("thread")
    feed = topology.spout("feed")
    outputs = topology.bolt("block", block, feed.shuffle(), executor="thread")
    topology.bolt("next", lambda value: seen.set(), outputs.shuffle())
    async with topology.run() as running, asyncio.timeout(60):
        first, second = [await running.emit(feed, value) for value in ("first", "second")]
        await seen.wait()
        await first
        assert not second.done
        go.set()
        await second
