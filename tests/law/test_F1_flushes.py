"""Outboxes are sent at the end of each slice, and before any wait (law F1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    Topology,
    TopologyCrashed,
    Tree,
    Tuple,
)
from tests.cast import ignore
from tests.helpers import run_to_end
from tests.law.awaits import AGES, begin
from tests.law.puppets import Puppets, Tap, intercept, now, open_trees, script, settle, until

# Slices.


class Progress:
    """How far the first of two stages was when the second one began."""

    def __init__(self) -> None:
        self.first = self.second = 0
        self.lead = 0

    def one(self, value: object) -> object:
        """The first stage."""
        self.first += 1
        return value

    def two(self, value: object) -> None:
        """The second stage."""
        self.lead = self.lead or self.first
        self.second += 1


LONGEST_LEAD = 200
"""Simulated slices are of 64 calls at most; a few tasks have theirs before the second stage begins."""


@pytest.mark.parametrize("kind", ["ack", "wake-up"])
@pytest.mark.simulated_time
async def test_F1_a_busy_bolt_sends_at_the_end_of_each_slice(kind: str) -> None:
    """A bolt that never awaits does not keep its acks, or its consumers asleep, until its batch is done."""
    progress = Progress()
    topology = Topology("busy", max_spout_pending=2000, queue_capacity=2000)
    spout, stream = script(topology, *range(2000))
    outputs = topology.bolt("busy", progress.one, stream.shuffle())
    if kind == "ack":
        spout.ack = progress.two  # type: ignore[method-assign]
    else:
        topology.bolt("next", progress.two, outputs.shuffle())
    await run_to_end(topology)
    assert progress.first == progress.second == 2000
    assert progress.lead < LONGEST_LEAD


@pytest.mark.simulated_time
async def test_F1_a_busy_spout_sends_at_the_end_of_each_slice() -> None:
    """A generator that is never suspended does not keep what it has yielded until it ends."""
    progress = Progress()

    def numbers() -> Iterator[object]:
        for number in range(2000):
            yield progress.one(number)

    topology = Topology("busy", max_spout_pending=2000, queue_capacity=2000)
    topology.bolt("next", progress.two, topology.spout("numbers", numbers).shuffle())
    await run_to_end(topology)
    assert progress.first == progress.second == 2000
    assert progress.lead < LONGEST_LEAD


@pytest.mark.simulated_time
async def test_F1_no_message_is_larger_than_a_slice() -> None:
    """What the ackers get at once is what was done in one slice."""
    topology, sizes = Topology("busy", max_spout_pending=2000, queue_capacity=2000), []
    topology.bolt("busy", ignore, topology.spout("numbers", range(2000)).shuffle())
    async with topology.run(active=False) as running:
        tap = Tap(running)
        running.activate()
        await running.finished()
        sizes += [len(control.inits) + len(control.acks) for _, control in tap.sent]
    assert sum(sizes) == 4000
    assert max(sizes) < 80


# Waiting for room.


def many(value: str) -> Iterator[int]:
    yield from range(5 if value == "second" else 0)


async def many_async(value: str) -> AsyncIterator[int]:
    for number in many(value):
        yield number


class ManyBasic(BasicBolt[str, int]):
    def execute(self, tup: Tuple[str], out: Collector[int]) -> None:
        for number in many(tup.value):
            out.emit(number)


class ManyExplicit(Bolt[str, int]):
    def execute(self, tup: Tuple[str], out: Collector[int]) -> None:
        for number in many(tup.value):
            out.emit(number)
        out.ack(tup)


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("logic", [many, many_async, ManyBasic, ManyExplicit])
@pytest.mark.simulated_time
async def test_F1_no_wait_for_room_hides_an_ack(logic: Callable[..., Any], concurrency: int) -> None:
    """While a bolt waits for room in its consumer's queue, its earlier acks are acks, and the consumer is
    awake."""
    began: list[float] = []

    async def slow(value: object) -> None:
        began.append(now())
        await asyncio.sleep(AGES)

    topology = Topology("crowded", queue_capacity=2, drain_timeout=0, message_timeout=None)
    feed = topology.spout("feed")
    topology.bolt(
        "slow", slow, topology.bolt("logic", logic, feed.shuffle(), concurrency=concurrency).shuffle()
    )
    async with topology.run() as running:
        trees = await begin(running, feed, "first", "second")
        assert [tree.done for tree in trees] == [True, logic is ManyExplicit]
        assert began == [0]


@pytest.mark.parametrize("kind", ["class", "generator"])
@pytest.mark.simulated_time
async def test_F1_no_wait_for_room_hides_an_init(kind: str) -> None:
    """While a spout waits for room, the inits of all that it has emitted are at the acker."""
    topology = Topology("crowded", queue_capacity=2, drain_timeout=0)
    stream = topology.spout("numbers", range(9)) if kind == "generator" else script(topology, *range(9))[1]
    topology.bolt("stuck", lambda value: asyncio.sleep(AGES), stream.shuffle())
    async with topology.run() as running:
        await until(1)
        emitted = running.statistics().components[stream.component].emitted
        assert (open_trees(running), emitted) == ((emitted, 9) if kind == "class" else (emitted, emitted))
        assert emitted > 2


# The end of a task.


async def crash(topology: Topology, feed: Stream[Any] | None = None) -> tuple[Running, list[Tree[Any]]]:
    """Run until it crashes, with a message of the host if there is a stream to emit it to."""
    trees: list[Tree[Any]] = []
    try:
        async with topology.run() as running:
            trees += [] if feed is None else [await running.emit(feed, "x")]
            await asyncio.sleep(AGES)
    except TopologyCrashed:
        return running, trees
    raise AssertionError("it did not crash")


@pytest.mark.simulated_time
async def test_F1_an_ack_leaves_before_its_task_is_cancelled() -> None:
    """A bolt acks, and crashes the topology in the same call: the message is acked, not lost."""

    def broken(value: object) -> object:
        raise LookupError(value)

    class Crashes(Bolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            out.ack(tup)
            out.emit("bad")

    topology = Topology("crashes", max_restarts=0)
    feed = topology.spout("feed")
    topology.bolt("next", ignore, topology.bolt("crashes", Crashes, feed.shuffle()).fields(broken))
    _, trees = await crash(topology, feed)
    assert [(tree.done, tree.failure) for tree in trees] == [(True, None)]


@pytest.mark.simulated_time
async def test_F1_an_init_leaves_before_its_task_is_cancelled() -> None:
    """A spout emits, and crashes in the same call: the message is accounted for as left over."""

    class Crashes(Spout[str]):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            out.emit("x", message_id="x")
            raise LookupError

    topology = Topology("crashes", max_restarts=0)
    topology.bolt("bolt", ignore, topology.spout("crashes", Crashes).shuffle())
    running, _ = await crash(topology)
    counts = running.statistics().components
    assert counts["__acker"].acked + counts["__acker"].failed == 1
    assert counts["crashes"].pending == 0


# Outside a slice.


@pytest.mark.parametrize("verb", ["ack", "fail", "reset_timeout", "emit"])
@pytest.mark.simulated_time
async def test_F1_calls_outside_a_slice_are_sent_by_one_call_soon(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred calls ask the loop once, and what they said leaves in its next turn, not before."""
    topology, puppets = Topology("outside", drain_timeout=0), Puppets()
    feed = topology.spout("feed")
    topology.bolt("next", ignore, topology.bolt("puppets", puppets, feed.shuffle()).shuffle())
    async with topology.run() as running:
        for number in range(100):
            await running.emit(feed, number)
        await settle()
        tap, scheduled, loop = Tap(running), [], asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_soon", lambda *args, **kwargs: scheduled.append(args))
        for tup in puppets.got:
            getattr(puppets[0].out, verb)(tup)
        monkeypatch.undo()
        assert (len(scheduled), tap.sent) == (1, [])
        scheduled[0][0]()
        assert len(tap.sent) == (verb != "emit")
        await settle()
        assert running.statistics().components["next"].executed == 100 * (verb == "emit")


@pytest.mark.simulated_time
async def test_F1_emits_of_a_spout_outside_a_slice_are_sent() -> None:
    """A tracked emit from anywhere is executed and acked, though its spout sleeps."""
    topology = Topology("outside")
    spout, stream = script(topology)
    topology.bolt("bolt", ignore, stream.shuffle())
    async with topology.run():
        await until(5)
        spout.out.emit("x", message_id="x")
        await settle()
        assert spout.told == [(5, "ack", "x")]


@pytest.mark.simulated_time
async def test_F1_each_time_outside_a_slice_is_sent() -> None:
    """After one flush the next unsent item asks for another."""
    topology, puppets = Topology("outside"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.shuffle())
    async with topology.run() as running:
        for number in range(20):
            tree = await running.emit(feed, number)
            await settle()
            puppets.ack_all()
            assert await tree == []
            assert now() < 1


@pytest.mark.simulated_time
async def test_F1_nothing_is_sent_that_is_empty() -> None:
    """Control messages are sent for what there is to say, and never without content."""
    topology, empty = Topology("quiet", ackers=3), []
    feed = topology.spout("feed")
    topology.bolt("bolt", ignore, feed.shuffle())
    async with topology.run() as running:

        def handle(post: Callable[[Any], None], control: Any) -> None:
            empty.append(not control.size)
            post(control)

        intercept(running, handle)
        for number in range(20):
            assert await (await running.emit(feed, number)) == []
    assert len(empty) == 40
    assert not any(empty)
