"""Calls from other threads that are refused (law F3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from stormlet import Bolt, Collector, Failure, FailureKind, SpoutCollector, Topology, Tuple, is_compiled
from tests.cast import ignore
from tests.engines import Engine
from tests.law.puppets import AnyTuple, Puppets, open_trees, script, settle

pytestmark = pytest.mark.simulated_time


@contextmanager
def refused(method: str, who: str, way: str) -> Iterator[None]:
    """What the error says: whose collector it is, what was called, and what to call instead."""
    words = rf"out\.{method} of {who} was called in another thread .* has done nothing; .*{way}"
    with pytest.raises(RuntimeError, match=words):
        yield


def elsewhere(call: Callable[[], object]) -> object:
    """Call it in another thread, while the loop's own thread waits."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call).result()


@pytest.mark.parametrize(
    ("method", "call", "way"),
    [
        ("ack", lambda out, tup: out.ack(tup), "out.ack_threadsafe"),
        ("fail", lambda out, tup: out.fail(tup, "no"), "out.fail_threadsafe"),
        ("emit", lambda out, tup: out.emit("y", anchors=tup), "out.emit_threadsafe"),
        ("reset_timeout", lambda out, tup: out.reset_timeout(tup), "loop.call_soon_threadsafe"),
    ],
)
async def test_F3_a_plain_call_of_a_bolt_from_another_thread_is_refused(
    method: str, call: Callable[[Collector[Any], AnyTuple], object], way: str
) -> None:
    """At once, by name; the input is open still, nothing was delivered, and its ack completes the tree."""
    topology, puppets, seen = Topology("threads"), Puppets(), list[object]()
    feed = topology.spout("feed")
    topology.bolt("see", seen.append, topology.bolt("bolt", puppets, feed.shuffle()).shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        (puppet,), (tup,) = puppets.made, puppets.got
        with refused(method, r"bolt\[0\]", way):
            await asyncio.to_thread(call, puppet.out, tup)
        await settle()
        assert (tree.done, seen) == (False, [])
        puppets.ack_all()
        assert await tree == []


@pytest.mark.parametrize(
    ("method", "call", "way"),
    [
        ("emit", lambda out: out.emit("x", message_id=1), "out.emit_threadsafe"),
        ("emit_many", lambda out: out.emit_many(["x"], message_ids=[1]), "loop.call_soon_threadsafe"),
        ("wake", lambda out: out.wake(), "loop.call_soon_threadsafe"),
        ("pause_until_settled", lambda out: out.pause_until_settled(), "loop.call_soon_threadsafe"),
        ("pause_until_own_settled", lambda out: out.pause_until_own_settled(), "loop.call_soon_threadsafe"),
        ("end_epoch", lambda out: out.end_epoch(), "loop.call_soon_threadsafe"),
        (
            "dead_letter",
            lambda out: asyncio.run(out.dead_letter("x", Failure(FailureKind.FAILED))),
            "asyncio.run_coroutine_threadsafe",
        ),
    ],
)
async def test_F3_a_plain_call_of_a_spout_from_another_thread_is_refused(
    method: str, call: Callable[[SpoutCollector[Any]], object], way: str
) -> None:
    """At once, by name, and nothing has come of it."""
    topology = Topology("threads")
    spout, stream = script(topology)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run() as running:
        await settle()
        with refused(method, r"script\[0\]", way):
            await asyncio.to_thread(call, spout.out)
        await settle()
        assert (open_trees(running), spout.told, running.dead_letters) == (0, [], ())


class AcksElsewhere(Bolt[str, str]):
    """Has another thread ack its input and emit, one after the other, while ``execute`` runs."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        for call in (lambda: out.ack(tup), lambda: out.emit("y", anchors=tup)):
            try:
                elsewhere(call)
            except RuntimeError as error:
                self.errors.append(str(error).split(" was ")[0])
        out.ack(tup)


async def test_F3_so_is_one_that_comes_in_a_slice(engine: Engine) -> None:
    """While the loop's own thread works in the topology, and would send what is unsent; interpreted, in asyncio's debug
    mode."""
    bolt = AcksElsewhere()
    topology = Topology("threads")
    topology.bolt("bolt", lambda: bolt, topology.spout("feed", ["x"]).shuffle())
    asyncio.get_running_loop().set_debug(not is_compiled())
    running = await engine.run_to_end(topology)
    assert bolt.errors == ["out.ack of bolt[0]", "out.emit of bolt[0]"]
    assert running.statistics().components["feed"].acked == 1


async def test_F3_calls_beside_each_other_know_their_thread_too() -> None:
    """Where each call has a collector of its own (law B3)."""
    topology, puppets = Topology("threads"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("bolt", puppets, feed.shuffle(), concurrency=2)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        (puppet,), (tup,) = puppets.made, puppets.got
        with refused("ack", r"bolt\[0\]", "out.ack_threadsafe"):
            await asyncio.to_thread(puppet.out.ack, tup)
        puppets.ack_all()
        assert await tree == []


async def test_F3_the_awaits_of_a_host_belong_to_the_loop() -> None:
    """Elsewhere nobody would tell of the outcome, nor of the end: both are refused, and say what to do."""
    topology, puppets = Topology("threads"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("bolt", puppets, feed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()

        async def outcome() -> None:
            await tree

        for wait in (outcome, running.finished):
            with pytest.raises(RuntimeError, match="run_coroutine_threadsafe"):
                await asyncio.to_thread(asyncio.run, wait())
        puppets.ack_all()
        assert await tree == []
        await asyncio.to_thread(asyncio.run, outcome())  # what is known can be asked for anywhere
