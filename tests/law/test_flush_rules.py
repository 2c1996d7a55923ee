"""What a task has not yet sent leaves in time (law F1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    Failure,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tree,
    Tuple,
)
from tests.cast import ignore
from tests.helpers import run_to_end
from tests.law.puppets import Puppets, Tap, intercept, now, open_trees, script, settle, until

AGES = 1000.0
"""Seconds that user code spends in an await."""

NOTE: ContextVar[str] = ContextVar("NOTE", default="")


async def dawdle(value: object) -> None:
    """Return at once, but not for "second"."""
    if value == "second":
        await asyncio.sleep(AGES)


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


async def begin(
    running: Running, feed: Stream[Any], *values: object, context: str = "plain"
) -> list[Tree[Any]]:
    """Emit some messages at once, and let everything happen that needs less than a second. With a context
    variable set, tuples take another way through the bolts."""
    token = NOTE.set(context) if context != "plain" else None
    trees = [await running.emit(feed, value) for value in values]
    if token is not None:
        NOTE.reset(token)
    await until(1)
    return trees


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
        assert value == "first" or go.wait(10)
        return value

    topology = Topology("thread")
    feed = topology.spout("feed")
    outputs = topology.bolt("block", block, feed.shuffle(), executor="thread")
    topology.bolt("next", lambda value: seen.set(), outputs.shuffle())
    async with topology.run() as running, asyncio.timeout(10):
        first, second = [await running.emit(feed, value) for value in ("first", "second")]
        await seen.wait()
        await first
        assert not second.done
        go.set()
        await second


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
            empty.append(not control.told)
            post(control)

        intercept(running, handle)
        for number in range(20):
            assert await (await running.emit(feed, number)) == []
    assert len(empty) == 40
    assert not any(empty)
