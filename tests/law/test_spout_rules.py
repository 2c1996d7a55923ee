"""The rules S1 to S8 of the law, on the running engine."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    Failure,
    FailureKind,
    InvalidTopology,
    Reject,
    Running,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.errors import EndOfStream
from tests.cast import (
    AckLater,
    Counting,
    Forget,
    Ignore,
    Slow,
    Untracked,
    Waiting,
    ignore,
    same,
    take_a_second,
)
from tests.helpers import RefusingKey, now, run_to_end

BRIEFLY = 1.0
"""Seconds of simulated time in which everything that can happen has happened."""


class Exclusive:
    """Fails the test when two calls of its owner overlap."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._inside: str | None = None

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        assert self._inside is None, f"{name} runs inside {self._inside}"
        self._inside = name
        self.calls.append(name)
        try:
            yield
        finally:
            self._inside = None


def failing_first(times: int) -> Callable[[object], None]:
    """A bolt that fails the first executions of each value."""
    seen = defaultdict[object, int](int)

    def bolt(value: object) -> None:
        seen[value] += 1
        if seen[value] <= times:
            raise ValueError(value)

    return bolt


def iterations(loop: asyncio.AbstractEventLoop) -> Callable[[], int]:
    """Count the iterations of the loop from now on."""
    count = 0
    run_once: Callable[[], None] = loop._run_once  # type: ignore[attr-defined]

    def counted() -> None:
        nonlocal count
        count += 1
        run_once()

    loop._run_once = counted  # type: ignore[attr-defined]
    return lambda: count


# S1: who gets the outcome, and one call at a time.


@pytest.mark.simulated_time
async def test_S1_the_task_that_emitted_gets_the_ack_or_the_fail() -> None:
    """Each of three tasks hears of exactly the messages that it emitted itself."""
    emitted, heard = defaultdict[int, list[object]](list), defaultdict[int, list[object]](list)

    class Numbered(Counting):
        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.task = context.task_index

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            super().next_tuple(out)
            emitted[self.task].append(("fail" if self.next == 2 else "ack", self.next - 1))

        def ack(self, message_id: object) -> None:
            heard[self.task].append(("ack", message_id))

        def fail(self, message_id: object, failure: Failure) -> None:
            heard[self.task].append(("fail", message_id))

    def refuse_one(value: int) -> None:
        if value == 1:
            raise ValueError(value)

    topology = Topology("three")
    topology.bolt("refuse", refuse_one, topology.spout("numbers", Numbered, parallelism=3).shuffle())
    await run_to_end(topology)
    assert emitted.keys() == {0, 1, 2}
    assert {task: sorted(map(str, each)) for task, each in heard.items()} == {
        task: sorted(map(str, each)) for task, each in emitted.items()
    }


@pytest.mark.simulated_time
@pytest.mark.parametrize("ackers", [0, 1])
async def test_S1_synchronous_calls_never_overlap(ackers: int) -> None:
    """No outcome is told inside another call, not even one that is known during the emit."""
    exclusive = Exclusive()

    class Strict(Counting):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            with exclusive.call("next_tuple"):
                super().next_tuple(out)

        def ack(self, message_id: object) -> None:
            with exclusive.call("ack"):
                pass

    topology = Topology("strict", ackers=ackers)
    topology.bolt("ignore", ignore, topology.spout("numbers", Strict).shuffle())
    await run_to_end(topology)
    assert exclusive.calls.count("ack") == Strict.count


@pytest.mark.simulated_time
async def test_S1_asynchronous_calls_never_overlap() -> None:
    """An outcome waits until the awaits of the call before it are over, in every direction."""
    exclusive = Exclusive()

    class Slow(Spout[int]):
        numbers = itertools.count()

        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            with exclusive.call("next_tuple"):
                number = next(self.numbers)
                if number >= 6:
                    raise EndOfStream
                await asyncio.sleep(0.1)
                out.emit(number, message_id=number)
                await asyncio.sleep(0.1)

        async def ack(self, message_id: object) -> None:
            with exclusive.call("ack"):
                await asyncio.sleep(0.3)

        async def fail(self, message_id: object, failure: Failure) -> None:
            with exclusive.call("fail"):
                await asyncio.sleep(0.3)

    async def even(value: int) -> None:
        await asyncio.sleep(0.05)
        if value % 2:
            raise ValueError(value)

    topology = Topology("slow")
    topology.bolt("even", even, topology.spout("numbers", Slow).shuffle(), concurrency=3)
    await run_to_end(topology)
    assert {"next_tuple", "ack", "fail"} == set(exclusive.calls)


# S2: emitting inside ack and fail.


class Doubling(Spout[int]):
    """Every outcome of a message emits two more, down to depth 0; ``settled`` counts all."""

    depth = 6
    settled = 0

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.out = out
        self.open_messages = 1
        out.emit(self.depth, message_id=self.depth)

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.open_messages:
            raise EndOfStream

    def ack(self, message_id: object) -> None:
        type(self).settled += 1
        depth = int(str(message_id))
        self.open_messages -= 1
        for _ in range(2 if depth else 0):
            self.out.emit(depth - 1, message_id=depth - 1)
            self.open_messages += 1

    def fail(self, message_id: object, failure: Failure) -> None:
        self.ack(message_id)


@pytest.mark.simulated_time
@pytest.mark.parametrize("refused", [False, True])
async def test_S2_emits_in_ack_and_fail_cannot_deadlock(refused: bool) -> None:
    """With room for one message and one tuple, outcomes that emit two more each still all come through."""

    class Twice(Doubling):
        settled = 0

    async def slow(value: int) -> None:
        await asyncio.sleep(0.01)
        if refused:
            raise ValueError(value)

    topology = Topology("doubling", max_spout_pending=1, queue_capacity=1)
    topology.bolt("slow", slow, topology.spout("numbers", Twice).shuffle())
    await asyncio.wait_for(run_to_end(topology), 60)
    assert Twice.settled == 2 ** (Twice.depth + 1) - 1


@pytest.mark.simulated_time
async def test_S2_an_asynchronous_ack_may_emit_before_and_after_its_await() -> None:
    """What it emits is processed while it is still suspended, and afterwards."""
    executed: list[tuple[str, float]] = []

    class Chatty(Spout[str]):
        asked = False

        def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
            self.out = out

        def next_tuple(self, out: SpoutCollector[str]) -> None:
            if self.asked:
                raise EndOfStream
            self.asked = True
            out.emit("first", message_id=1)

        async def ack(self, message_id: object) -> None:
            if message_id == 1:
                self.out.emit("before", message_id=2)
                await asyncio.sleep(5)
                self.out.emit("after", message_id=3)

    topology = Topology("chatty")
    spout = topology.spout("chatty", Chatty)
    topology.bolt("note", lambda value: executed.append((value, now())), spout.shuffle())
    await run_to_end(topology)
    assert executed == [("first", 0), ("before", 0), ("after", 5)]


# S3: when a spout is asked.


def pending_when_asked(per_call: int, count: int = 60) -> tuple[type[Spout[int]], list[int]]:
    """A spout class that emits so many messages per call, and what was pending whenever it was asked."""
    asked: list[int] = []

    class Asked(Spout[int]):
        emitted = 0

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            asked.append(out.pending)
            if self.emitted >= count:
                raise EndOfStream
            for _ in range(per_call):
                out.emit(self.emitted, message_id=self.emitted)
                self.emitted += 1

    return Asked, asked


@pytest.mark.simulated_time
@pytest.mark.parametrize("per_call", [1, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_S3_a_spout_is_asked_only_below_max_spout_pending(per_call: int, seed: int) -> None:
    """However much one call emits, the next one comes when fewer than max_spout_pending are pending."""
    spout, asked = pending_when_asked(per_call)

    topology = Topology("asked", max_spout_pending=7)
    topology.bolt("slow", partial(Slow, 0.1), topology.spout("numbers", spout).shuffle())
    await run_to_end(topology, seed=seed)
    assert max(asked) < 7


@pytest.mark.simulated_time
async def test_S3_an_asynchronous_next_tuple_is_asked_only_below_max_spout_pending() -> None:
    """It is not called again before one of its two pending messages is acked."""
    times: list[float] = []

    class Asked(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            times.append(now())
            if len(times) > 4:
                raise EndOfStream
            out.emit(1, message_id=len(times))

    topology = Topology("asked", max_spout_pending=2)
    topology.bolt("slow", take_a_second, topology.spout("numbers", Asked).shuffle())
    await run_to_end(topology)
    assert times == [0, 0, 1, 2, 3]


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_S3_a_generator_is_advanced_only_below_max_spout_pending(asynchronous: bool) -> None:
    """Of endless sources, two values are taken when two may be pending and none is acked."""
    taken: list[int] = []

    def endless() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            yield number

    async def endless_async() -> AsyncIterator[int]:
        for number in endless():
            yield number

    topology = Topology("endless", max_spout_pending=2, message_timeout=None, drain_timeout=0.1)
    spout = topology.spout("endless", endless_async if asynchronous else endless)
    topology.bolt("hold", Forget, spout.shuffle())
    async with topology.run():
        await asyncio.sleep(BRIEFLY)
        assert taken == [0, 1]


@pytest.mark.simulated_time
async def test_S3_the_default_is_1000() -> None:
    """Without an option, the 1000th unacked message is the last one."""
    topology = Topology("default", message_timeout=None, drain_timeout=0.1)
    topology.bolt("hold", Forget, topology.spout("endless", itertools.count()).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(BRIEFLY)
        assert running.statistics().components["endless"].pending == 1000


@pytest.mark.simulated_time
async def test_S3_none_is_unlimited() -> None:
    """With ``max_spout_pending=None`` as many are pending as the source yields."""
    topology = Topology("unlimited", max_spout_pending=None, message_timeout=None, drain_timeout=0.1)
    topology.bolt("hold", Forget, topology.spout("numbers", range(2500)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(BRIEFLY)
        assert running.statistics().components["numbers"].pending == 2500


@pytest.mark.simulated_time
async def test_S3_waiting_replays_count_as_pending() -> None:
    """While the only message that may be pending waits for its replay, no other one is taken."""
    times: dict[int, float] = {}

    def numbers() -> Iterator[int]:
        for number in range(2):
            times[number] = now()
            yield number

    topology = Topology("replays", max_spout_pending=1, replay_delay=10.0)
    topology.bolt("fail", failing_first(1), topology.spout("numbers", numbers).shuffle())
    await run_to_end(topology)
    assert times[0] == 0
    assert times[1] >= 10


@pytest.mark.simulated_time
async def test_S3_a_spout_is_asked_only_while_every_queue_it_feeds_has_room() -> None:
    """One blocked consumer of two stops the spout when its queue is full, though the other one is idle."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    topology = Topology("queues", queue_capacity=3)
    spout = topology.spout("numbers", numbers)
    topology.bolt("stuck", partial(Slow, 10), spout.shuffle())
    topology.bolt("free", ignore, spout.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(BRIEFLY)
        assert len(taken) <= 2 * 3
        await running.finished()
    assert len(taken) == 100


@pytest.mark.simulated_time
async def test_S3_a_queue_that_another_task_has_filled_counts_too() -> None:
    """A polled spout that never emitted anything is not asked while another one keeps the queue full."""
    asked: list[float] = []

    class Asked(Spout[str]):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            asked.append(now())

    topology = Topology("shared", queue_capacity=2)
    filling, polled = topology.spout("filling", ["x"] * 4), topology.spout("polled", Asked)
    topology.bolt("stuck", partial(Slow, 10), filling.shuffle(), polled.shuffle())
    async with topology.run():
        await asyncio.sleep(30)
    assert not [time for time in asked if 0 < time < 20]
    assert [time for time in asked if time > 20]


@pytest.mark.simulated_time
@pytest.mark.parametrize("seed", range(4))
async def test_S3_messages_of_the_host_count_as_pending(seed: int) -> None:
    """While a generator is awaited, the host takes the room that it was asked to fill; then it must wait."""

    async def slow() -> AsyncIterator[int]:
        for number in itertools.count():
            await asyncio.sleep(1)
            yield number

    topology = Topology("both", max_spout_pending=8, message_timeout=None, drain_timeout=0.1)
    spout = topology.spout("slow", slow)
    topology.bolt("hold", Forget, spout.shuffle())
    async with topology.run(seed=seed) as running:
        await asyncio.sleep(1.5)
        for _ in range(6):
            await running.emit(spout, -1)
        await asyncio.sleep(20)
        assert running.statistics().components["slow"].pending == 8


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_S3_replays_wait_for_room_that_others_take(asynchronous: bool) -> None:
    """Messages that are due come through a queue that another spout fills again and again."""
    attempts = defaultdict[str, int](int)

    async def never() -> AsyncIterator[str]:
        for value in ("a", "b", "c"):
            yield value
        await asyncio.sleep(200)

    class Others(Spout[str]):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            out.emit("other")

    async def fail_first(value: str) -> None:
        attempts[value] += 1
        await asyncio.sleep(1)
        if value != "other" and attempts[value] == 1:
            raise ValueError(value)

    topology = Topology("others", queue_capacity=1, replay_delay=0.0)
    failing = topology.spout("failing", never if asynchronous else ["a", "b", "c"])
    topology.bolt("slow", fail_first, failing.shuffle(), topology.spout("others", Others).shuffle())
    async with topology.run():
        await asyncio.sleep(100)
        assert [attempts[value] for value in "abc"] == [2, 2, 2]


# S4: idle costs nothing.


async def waiting() -> AsyncIterator[int]:
    """A generator to which nothing ever comes."""
    await asyncio.get_running_loop().create_future()
    yield 0


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    "source", [None, waiting, Waiting, range(3)], ids=["fed", "generator", "spout", "ended"]
)
async def test_S4_fed_async_and_generator_spouts_cause_no_wake_ups(source: object) -> None:
    """In an idle hour the loop goes round for the sleep of the test itself, and for nothing else."""
    topology = Topology("idle", ackers=0)
    topology.bolt("ignore", ignore, topology.spout("idle", source).shuffle())  # type: ignore[call-overload]
    async with topology.run():
        await asyncio.sleep(BRIEFLY)
        count = iterations(asyncio.get_running_loop())
        await asyncio.sleep(3600)
        assert count() <= 2


class Polled(Spout[str]):
    """A synchronous spout that emits what is put into ``ready``; notes when it was asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.ready: list[str] = []

    def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        self.asked.append(now())
        if self.ready:
            out.emit(self.ready.pop(), message_id=1)

    def pauses(self) -> list[float]:
        """The seconds between one call and the next."""
        return [round(later - before, 6) for before, later in itertools.pairwise(self.asked)]


def polled_topology(**options: object) -> tuple[Topology, Polled]:
    """A topology around one polled spout."""
    spout = Polled()
    topology = Topology("polled", message_timeout=None, **options)
    topology.bolt("ignore", ignore, topology.spout("polled", lambda: spout).shuffle())
    return topology, spout


@pytest.mark.simulated_time
async def test_S4_the_pauses_of_a_polled_spout_grow_to_idle_max() -> None:
    """They begin short, never shrink, and end at 100 ms."""
    topology, spout = polled_topology()
    async with topology.run():
        await asyncio.sleep(60)
    pauses = spout.pauses()
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.01
    assert pauses[20:] == [0.1] * len(pauses[20:])


@pytest.mark.simulated_time
async def test_S4_idle_max_is_an_option() -> None:
    """With ``idle_max=2`` the pauses grow to two seconds."""
    topology, spout = polled_topology(idle_max=2.0)
    async with topology.run():
        await asyncio.sleep(60)
    assert max(spout.pauses()) == 2


@pytest.mark.simulated_time
async def test_S4_an_emit_makes_the_pauses_short_again() -> None:
    """After a tuple came, the growth begins anew."""
    topology, spout = polled_topology(idle_max=5.0)
    async with topology.run():
        await asyncio.sleep(60)
        calls = len(spout.asked)
        spout.ready.append("new")
        await asyncio.sleep(15)
    assert max(spout.pauses()[calls : calls + 4]) < 0.01


@pytest.mark.simulated_time
async def test_S4_wake_ends_the_pause_at_once() -> None:
    """``out.wake()`` has the spout asked now instead of at the end of its pause."""
    topology, spout = polled_topology(idle_max=50.0)
    async with topology.run():
        await asyncio.sleep(60)
        before = len(spout.asked)
        spout.out.wake()
        await asyncio.sleep(0.0001)
        assert spout.asked[before:] == [60]


# S5: quiescence.


@pytest.mark.simulated_time
async def test_S5_a_source_that_can_still_yield_is_waited_for() -> None:
    """A run is not finished while a generator sleeps before its last value."""

    async def late() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(50)
        yield 2

    topology = Topology("late")
    topology.bolt("ignore", ignore, topology.spout("late", late).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        asked_early = asyncio.ensure_future(running.finished())
        await asyncio.sleep(1)
        await running.finished()
        await asked_early
        assert now() == 50
        assert running.statistics().components["ignore"].executed == 2


@pytest.mark.simulated_time
async def test_S5_a_polled_spout_that_has_not_ended_is_waited_for() -> None:
    """A synchronous spout that is idle for now keeps the run open until it raises EndOfStream."""

    class Idle(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if now() >= 50:
                raise EndOfStream

    topology = Topology("idle")
    topology.spout("idle", Idle)
    async with topology.run() as running:
        await running.finished()
        assert 50 <= now() <= 50.1


@pytest.mark.simulated_time
async def test_S5_an_open_tree_is_waited_for() -> None:
    """A run is not finished before an input that a bolt keeps is acked."""
    topology = Topology("keep")
    topology.bolt("keep", partial(AckLater, 20), topology.spout("one", [1]).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert now() == 20


@pytest.mark.simulated_time
async def test_S5_a_replay_is_waited_for() -> None:
    """A run is not finished while a failed message waits to be emitted again."""
    topology = Topology("replay", replay_delay=20.0)
    topology.bolt("fail", failing_first(1), topology.spout("one", [1]).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert now() >= 20
        assert running.statistics().components["one"].acked == 1


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_S5_queued_tuples_and_running_calls_are_waited_for(concurrency: int) -> None:
    """Untracked tuples have no tree, and yet a run is finished only when the last one is processed."""
    done: list[float] = []

    async def slow(value: int) -> None:
        await asyncio.sleep(7)
        done.append(now())

    topology = Topology("untracked")
    topology.bolt("slow", slow, topology.spout("untracked", Untracked).shuffle(), concurrency=concurrency)
    async with topology.run() as running:
        await asyncio.sleep(1)
        asked_early = asyncio.ensure_future(running.finished())
        await asyncio.sleep(1)
        await running.finished()
        await asked_early
        assert len(done) == 3
        assert now() == done[-1]


@pytest.mark.simulated_time
async def test_S5_a_running_ack_is_waited_for() -> None:
    """A run is not finished while the user's ``ack`` is suspended."""

    class Slow(Counting):
        count = 1

        async def ack(self, message_id: object) -> None:
            await asyncio.sleep(5)

    topology = Topology("slow")
    topology.bolt("ignore", ignore, topology.spout("slow", Slow).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert now() == 5


@pytest.mark.simulated_time
async def test_S5_what_is_not_flushed_yet_is_waited_for() -> None:
    """An emit from a callback of the host, in the very moment of the question, is processed first."""
    seen: list[str] = []
    collectors: list[Collector[str]] = []

    class Keep(BasicBolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            collectors.append(out)

    topology = Topology("callback")
    kept = topology.bolt("keep", Keep, topology.spout("one", ["one"]).shuffle())
    topology.bolt("note", seen.append, kept.shuffle())
    async with topology.run() as running:
        await running.finished()
        asyncio.get_running_loop().call_soon(lambda: collectors[0].emit("from outside", anchors=()))
        await running.finished()
        assert seen == ["from outside"]


@pytest.mark.simulated_time
async def test_S5_a_spout_without_source_has_ended_only_while_draining() -> None:
    """A run that the host feeds goes on when everything is settled, until a stop is requested."""
    topology = Topology("fed")
    spout = topology.spout("fed", outputs=int)
    topology.bolt("ignore", ignore, spout.shuffle())
    async with topology.run() as running:
        await (await running.emit(spout, 1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.finished(), 1000)
        running.stop()
        await asyncio.wait_for(running.finished(), BRIEFLY)


@pytest.mark.simulated_time
async def test_S5_an_empty_run_is_finished_at_once() -> None:
    """Where no source yields anything, nothing is waited for."""
    topology = Topology("empty")
    topology.bolt("ignore", ignore, topology.spout("empty", []).shuffle())
    await run_to_end(topology)
    assert now() == 0


# S6: reliable sources.


def source_of(kind: str, values: list[object]) -> object:
    """The values as one of the four kinds of reliable sources."""

    def generator() -> Iterator[object]:
        yield from values

    async def async_generator() -> AsyncIterator[object]:
        for value in values:
            yield value

    return {
        "generator": generator,
        "async generator": async_generator,
        "iterable": values,
        "async iterable": async_generator(),
    }[kind]


@pytest.mark.simulated_time
@pytest.mark.parametrize("kind", ["generator", "async generator", "iterable", "async iterable"])
async def test_S6_every_kind_of_source_replays_what_failed(kind: str) -> None:
    """Values that fail once are executed again, with the next attempt's number, and acked then."""
    executed: list[tuple[object, int]] = []

    class FailFirst(BasicBolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            executed.append((tup.value, tup.attempt))
            if tup.attempt == 1 and tup.value != "fine":
                raise ValueError(tup.value)

    topology = Topology("reliable")
    spout = topology.spout("source", source_of(kind, ["a", "fine", "b"]))  # type: ignore[call-overload]
    topology.bolt("fail", FailFirst, spout.shuffle())
    running = await run_to_end(topology)
    assert sorted(executed, key=str) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("fine", 1)]
    assert running.statistics().components["source"].acked == 3


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("kind", ["generator", "async generator", "iterable", "async iterable"])
async def test_S6_a_replay_whose_emit_raises_is_emitted_by_the_restarted_task(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A key function that raises twice at the replay delays it, and the log says what raised."""
    key = RefusingKey(times=2)
    topology = Topology("reliable")
    spout = topology.spout("source", source_of(kind, ["a"]))  # type: ignore[call-overload]
    topology.bolt("fail", failing_first(1), spout.fields(key), parallelism=2)
    source = (await asyncio.wait_for(run_to_end(topology), 60)).statistics().components["source"]
    assert key.calls == 4
    assert (source.acked, source.replayed, source.restarts) == (1, 1, 2)
    assert "replay of source[0] raised KeyFunctionFailed" in caplog.text


@pytest.mark.simulated_time
async def test_S6_a_replay_whose_emit_raises_for_ever_crashes_the_topology() -> None:
    """The spout task is restarted for it as often as for anything else; the message is left over then."""
    key = RefusingKey(times=math.inf)
    topology = Topology("reliable", max_restarts=2)
    topology.bolt("fail", failing_first(1), topology.spout("source", ["a"]).fields(key), parallelism=2)
    async with crashing(topology) as running:
        await running.finished()
    assert key.calls == 1 + 3
    assert running.statistics().left_over == 1
    assert now() < 60


@pytest.mark.simulated_time
async def test_S6_a_replay_whose_emit_raises_is_not_lost_while_the_source_is_awaited() -> None:
    """An async generator does not survive that its task dies while it is awaited: the topology crashes."""

    async def slow() -> AsyncIterator[str]:
        yield "a"
        await asyncio.sleep(3600)

    topology = Topology("reliable")
    spout = topology.spout("source", slow)
    topology.bolt("fail", failing_first(1), spout.fields(RefusingKey(times=1)), parallelism=2)
    async with crashing(topology) as running:
        await running.finished()
    assert running.statistics().left_over == 1
    assert now() < 60


@asynccontextmanager
async def crashing(topology: Topology) -> AsyncIterator[Running]:
    """Run a topology that crashes when a replay is emitted."""
    with pytest.raises(TopologyCrashed, match=r"replay of source\[0\]"):
        async with topology.run() as running:
            yield running


def always_failing(attempts: list[tuple[float, int]]) -> type[BasicBolt[object, object]]:
    """A bolt that notes time and number of every attempt and fails it."""

    class Fail(BasicBolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            attempts.append((now(), tup.attempt))
            raise ValueError(tup.value)

    return Fail


@pytest.mark.simulated_time
async def test_S6_a_value_is_attempted_at_most_five_times() -> None:
    """The fifth failure is the last one; then the value is a dead letter."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("five")
    topology.bolt("fail", always_failing(attempts), topology.spout("one", ["x"]).shuffle())
    running = await run_to_end(topology)
    assert [number for _, number in attempts] == [1, 2, 3, 4, 5]
    assert [each.attempts for each in running.dead_letters] == [5]


@pytest.mark.simulated_time
@pytest.mark.parametrize("most", [1, 2])
async def test_S6_max_attempts_is_an_option(most: int) -> None:
    """As many attempts are made as ``max_attempts`` says."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("few", max_attempts=most)
    topology.bolt("fail", always_failing(attempts), topology.spout("one", ["x"]).shuffle())
    await run_to_end(topology)
    assert len(attempts) == most


@pytest.mark.simulated_time
async def test_S6_a_timeout_is_an_attempt_too() -> None:
    """A value that is held too long twice, with two attempts allowed, is a dead letter that names TIMEOUT."""
    topology = Topology("held", max_attempts=2, message_timeout=3.0)
    topology.bolt("hold", Forget, topology.spout("one", ["x"]).shuffle())
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert letter.attempts == 2
    assert [each.kind for each in letter.history] == [FailureKind.TIMEOUT] * 2


async def pauses_between_attempts(most: int, seed: int) -> list[float]:
    """The seconds between the attempts at one value."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("pauses", max_attempts=most)
    topology.bolt("fail", always_failing(attempts), topology.spout("one", ["x"]).shuffle())
    await run_to_end(topology, seed=seed)
    return [later - before for (before, _), (later, _) in itertools.pairwise(attempts)]


@pytest.mark.simulated_time
async def test_S6_the_pause_before_a_replay_doubles_from_a_tenth_to_thirty_seconds() -> None:
    """Each pause is 0.1 s doubled so many times, at most 30 s, and stretched by less than a half."""
    pauses = await pauses_between_attempts(13, seed=1)
    doubled = [min(0.1 * 2**each, 30) for each in range(12)]
    assert all(least <= pause < 1.5 * least + 1e-6 for least, pause in zip(doubled, pauses, strict=True))


@pytest.mark.simulated_time
async def test_S6_the_jitter_of_replays_is_seeded() -> None:
    """The same seed gives the same pauses, another one others."""
    first = await pauses_between_attempts(6, seed=1)
    assert await pauses_between_attempts(6, seed=1) == pytest.approx(first, abs=1e-9)
    assert await pauses_between_attempts(6, seed=2) != pytest.approx(first, rel=1e-3)


@pytest.mark.simulated_time
async def test_S6_values_that_fail_together_do_not_return_together() -> None:
    """Jitter spreads the replays of one moment."""
    attempts: list[tuple[float, int]] = []
    topology = Topology("spread", max_attempts=2)
    topology.bolt("fail", always_failing(attempts), topology.spout("ten", range(10)).shuffle())
    await run_to_end(topology)
    assert len({time for time, number in attempts if number == 2}) == 10


@pytest.mark.simulated_time
async def test_S6_an_overflow_is_no_attempt() -> None:
    """With one attempt allowed and overflows on the way, every value is acked in the end."""
    topology = Topology("overflow", max_attempts=1, acker_high_water=1, message_timeout=None)
    topology.bolt("slow", take_a_second, topology.spout("numbers", range(20)).shuffle())
    running = await run_to_end(topology)
    numbers = running.statistics().components["numbers"]
    assert (numbers.acked, numbers.dead_letters) == (20, 0)
    assert numbers.failed > 0


@pytest.mark.simulated_time
async def test_S6_a_shutdown_is_no_attempt() -> None:
    """A value that the deadline of a drain cuts off is handed over with no attempt counted."""
    letters: list[DeadLetter] = []
    topology = Topology("shutdown", drain_timeout=1.0)
    topology.bolt("hold", Forget, topology.spout("one", ["x"]).shuffle())
    async with topology.run(dead_letters=letters.append):
        await asyncio.sleep(BRIEFLY)
    assert [(each.failure.kind, each.attempts) for each in letters] == [(FailureKind.SHUTDOWN, 0)]


def reject(value: object) -> None:
    """A bolt that can do nothing with its input."""
    raise Reject(f"no use for {value}")


class FailPermanently(Bolt[object, object]):
    """Fails its input for good."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.fail(tup, f"no use for {tup.value}", permanent=True)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [reject, FailPermanently])
async def test_S6_reject_and_permanent_skip_the_replays(logic: type[Bolt[object, object]]) -> None:
    """The first attempt is the last one, and the dead letter has the reason given."""
    topology = Topology("reject")
    topology.bolt("reject", logic, topology.spout("one", ["x"]).shuffle())
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert letter.attempts == 1
    assert letter.failure.permanent
    assert letter.failure.reason == "no use for x"


@pytest.mark.simulated_time
async def test_S6_a_dead_letter_has_cause_lineage_and_attempts() -> None:
    """It names the source, the value, its id, the component and exception, and why each attempt failed."""

    def fail(value: str) -> None:
        if value == "bad":
            raise ZeroDivisionError(value)

    topology = Topology("letter", max_attempts=2)
    forwarded = topology.bolt("forward", same, topology.spout("words", ["good", "bad"]).shuffle())
    topology.bolt("fail", fail, forwarded.shuffle())
    running = await run_to_end(topology)
    (letter,) = running.dead_letters
    assert (letter.component, letter.value, letter.attempts) == ("words", "bad", 2)
    assert letter.message_id is not None
    assert (letter.failure.kind, letter.failure.component) == (FailureKind.FAILED, "fail")
    assert isinstance(letter.failure.exception, ZeroDivisionError)
    assert [each.kind for each in letter.history] == [FailureKind.FAILED] * 2


@pytest.mark.simulated_time
async def test_S6_each_value_has_a_message_id_of_its_own() -> None:
    """Equal values are still different messages."""
    topology = Topology("ids")
    topology.bolt("reject", reject, topology.spout("same", ["x"] * 5).shuffle())
    running = await run_to_end(topology)
    assert len({each.message_id for each in running.dead_letters}) == 5


@pytest.mark.simulated_time
async def test_S6_an_asynchronous_dead_letter_callable_is_awaited_before_the_release() -> None:
    """The message stays pending until the callable has returned, so the next value is taken only then."""
    taken: list[float] = []

    def two() -> Iterator[str]:
        for value in ("first", "second"):
            taken.append(now())
            yield value

    async def store(letter: DeadLetter) -> None:
        await asyncio.sleep(5)

    topology = Topology("store", max_spout_pending=1)
    topology.bolt("reject", reject, topology.spout("two", two).shuffle())
    async with topology.run(dead_letters=store) as running:
        await asyncio.sleep(BRIEFLY)
        assert running.statistics().components["two"].pending == 1
        await running.finished()
        assert now() == 10
    assert taken == [0, 5]


@pytest.mark.simulated_time
async def test_S6_a_plain_dead_letter_callable_gets_every_letter() -> None:
    """It is called once for each value that was given up."""
    letters: list[DeadLetter] = []
    topology = Topology("callable")
    topology.bolt("reject", reject, topology.spout("numbers", range(3)).shuffle())
    await run_to_end(topology, dead_letters=letters.append)
    assert [each.value for each in letters] == [0, 1, 2]


@pytest.mark.simulated_time
@pytest.mark.parametrize("as_text", [False, True])
async def test_S6_dead_letters_go_to_a_jsonl_file(tmp_path: Path, as_text: bool) -> None:
    """Given a path, each dead letter is a line of JSON, appended to what is there."""
    path = tmp_path / "dead.jsonl"
    path.write_text('{"value": "old"}\n')
    topology = Topology("file")
    topology.bolt("reject", reject, topology.spout("words", ["a", "b"]).shuffle())
    await run_to_end(topology, dead_letters=str(path) if as_text else path)
    old, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert old == {"value": "old"}
    assert [(each["component"], each["value"], each["attempts"]) for each in lines] == [
        ("words", "a", 1),
        ("words", "b", 1),
    ]
    assert [each["reason"] for each in lines] == ["no use for a", "no use for b"]


@pytest.mark.simulated_time
async def test_S6_the_default_keeps_the_last_1000_counts_all_and_logs_one_line_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of 1005 dead letters the first five are forgotten, but counted and logged."""
    topology = Topology("many")
    topology.bolt("reject", reject, topology.spout("numbers", range(1005)).shuffle())
    with caplog.at_level(logging.ERROR, "stormlet"):
        running = await run_to_end(topology)
    assert [each.value for each in running.dead_letters] == list(range(5, 1005))
    assert running.statistics().dead_letters == 1005
    lines = [each.getMessage() for each in caplog.records if "dead letter" in each.getMessage()]
    assert len(lines) == 1005
    assert not any("\n" in line for line in lines)


# S7: what is cancelled, and when.


class Sleeper(Spout[str]):
    """An asynchronous spout that emits one message and then sleeps for ever; notes its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, float]] = []

    async def next_tuple(self, out: SpoutCollector[str]) -> None:
        self.calls.append(("asked", now()))
        if len(self.calls) == 1:
            out.emit("message", message_id=1)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.calls.append(("cancelled", now()))
            raise

    def ack(self, message_id: object) -> None:
        self.calls.append(("ack", now()))


@pytest.mark.simulated_time
async def test_S7_a_suspended_next_tuple_is_cancelled_when_an_outcome_waits() -> None:
    """It is cancelled at its await, the outcome is told at once, and it is called again."""
    spout = Sleeper()
    topology = Topology("sleeper")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("sleeper", lambda: spout).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(10)
        assert spout.calls == [("asked", 0), ("cancelled", 3), ("ack", 3), ("asked", 3)]
        assert running.statistics().components["slowly"].executed == 1


@pytest.mark.simulated_time
async def test_S7_a_suspended_next_tuple_is_cancelled_at_drain() -> None:
    """A stop does not wait for the source, and does not call it again."""
    spout = Sleeper()
    topology = Topology("sleeper")
    topology.bolt("ignore", ignore, topology.spout("sleeper", lambda: spout).shuffle())
    async with topology.run():
        await asyncio.sleep(10)
    assert now() == 10
    assert spout.calls[-2:] == [("asked", 0), ("cancelled", 10)]


@pytest.mark.simulated_time
async def test_S7_what_was_emitted_before_the_cancellation_stands() -> None:
    """A message that was emitted by a call which is cancelled at drain is processed and acked."""
    spout = Sleeper()
    topology = Topology("sleeper")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("sleeper", lambda: spout).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert spout.calls == [("asked", 0), ("cancelled", 1), ("ack", 3)]
    assert running.statistics().components["sleeper"].acked == 1


class Watched:
    """An async generator function that yields once and sleeps; notes what ends it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, float]] = []

    async def values(self) -> AsyncIterator[str]:
        yield "first"
        try:
            await asyncio.sleep(100)
            self.events.append(("slept", now()))
            yield "second"
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            self.events.append(("cancelled", now()))
            raise
        finally:
            self.events.append(("closed", now()))


@pytest.mark.simulated_time
async def test_S7_a_generator_is_not_cancelled_by_outcomes() -> None:
    """Acks, failures and replays go on beside the await of the generator, which sleeps to its end."""
    watched = Watched()
    topology = Topology("watched")
    topology.bolt("fail", failing_first(1), topology.spout("watched", watched.values).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(50)
        assert running.statistics().components["watched"].acked == 1
        await running.finished()
    assert watched.events == [("slept", 100), ("closed", 200)]


@pytest.mark.simulated_time
async def test_S7_a_generator_is_cancelled_and_closed_at_drain() -> None:
    """A stop cancels it where it sleeps; its ``finally`` runs."""
    watched = Watched()
    topology = Topology("watched")
    topology.bolt("ignore", ignore, topology.spout("watched", watched.values).shuffle())
    async with topology.run():
        await asyncio.sleep(7)
    assert watched.events == [("cancelled", 7), ("closed", 7)]


@pytest.mark.simulated_time
async def test_S7_a_generator_that_survives_its_cancellation_is_closed() -> None:
    """One that goes on after it was cancelled at drain gets GeneratorExit at its next yield."""
    events: list[str] = []

    async def stubborn() -> AsyncIterator[int]:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            events.append("cancelled")
        try:
            yield 1
        except GeneratorExit:
            events.append("closed")
            raise

    topology = Topology("stubborn")
    topology.bolt("ignore", ignore, topology.spout("stubborn", stubborn).shuffle())
    async with topology.run():
        await asyncio.sleep(7)
    assert events == ["cancelled", "closed"]


@pytest.mark.simulated_time
async def test_S7_a_synchronous_generator_is_closed_at_drain() -> None:
    """Its ``finally`` runs before the last messages are settled."""
    events: list[tuple[str, float]] = []

    def endless() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            events.append(("closed", now()))

    topology = Topology("endless", max_spout_pending=1)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("endless", endless).shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert events == [("closed", 1)]
    assert now() == 3


# S8: what is refused.


def some() -> Iterator[int]:
    """A generator function that knows nothing of its task."""
    yield 1


async def some_async() -> AsyncIterator[int]:
    """The same, asynchronous."""
    yield 1


@pytest.mark.parametrize("source", [some, some_async, [1, 2], iter([1, 2]), some_async()])
def test_S8_a_source_that_cannot_be_shared_is_refused_for_several_tasks(source: object) -> None:
    """Without the task context every task would yield the same values; the message says how to share."""
    topology = Topology("shared")
    with pytest.raises(InvalidTopology, match=r"'source'.*parallelism=2.*context"):
        topology.spout("source", source, parallelism=2)  # type: ignore[call-overload]
    topology.spout("source", source, parallelism=1)  # type: ignore[call-overload]


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_S8_a_generator_that_takes_the_context_shares_the_work(asynchronous: bool) -> None:
    """Each of three tasks yields the values that its index tells it to."""
    seen: list[int] = []

    def share(context: TaskContext) -> Iterator[int]:
        yield from range(context.task_index, 10, context.parallelism)

    async def share_async(context: TaskContext) -> AsyncIterator[int]:
        for value in share(context):
            yield value

    topology = Topology("share")
    spout = topology.spout("source", share_async if asynchronous else share, parallelism=3)
    topology.bolt("note", seen.append, spout.shuffle())
    await run_to_end(topology)
    assert sorted(seen) == list(range(10))


@pytest.mark.simulated_time
@pytest.mark.parametrize("make", [lambda: iter([1, 2]), some, some_async])
async def test_S8_a_one_shot_iterator_is_refused_at_a_second_run(make: Callable[[], Iterator[int]]) -> None:
    """The first run used it up; the second one says so instead of finishing with nothing."""
    topology = Topology("once")
    topology.bolt("ignore", ignore, topology.spout("source", make()).shuffle())
    await run_to_end(topology)
    with pytest.raises(InvalidTopology, match=r"'source'.*iterator"):
        await run_to_end(topology)


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [[1, 2, 3], range(3), lambda: Counting()])
async def test_S8_a_source_that_can_start_again_does(source: object) -> None:
    """Lists, ranges and factories give their values in every run."""
    topology = Topology("again")
    topology.bolt("ignore", ignore, topology.spout("source", source).shuffle())  # type: ignore[call-overload]
    for _ in range(2):
        running = await run_to_end(topology)
        assert running.statistics().components["ignore"].executed == 3


class Batch(BatchBolt[object, object]):
    """Does nothing."""


def test_S8_an_instance_of_a_spout_is_refused() -> None:
    """The message says that the class or a factory is wanted."""
    with pytest.raises(
        InvalidTopology, match=r"'source'.*instance of its own.*class Counting, or its arguments"
    ):
        Topology("instance").spout("source", Counting())  # type: ignore[call-overload]


@pytest.mark.parametrize("instance", [Forget(), Ignore(), Batch()])
def test_S8_an_instance_of_a_bolt_is_refused(instance: object) -> None:
    """All three kinds of bolts need an instance per task, so that none can be handed in."""
    topology = Topology("instance")
    words = topology.spout("words", ["a"])
    with pytest.raises(InvalidTopology, match=r"'bolt'.*instance of its own.*or its arguments with it"):
        topology.bolt("bolt", instance, words.shuffle())  # type: ignore[call-overload]


@pytest.mark.simulated_time
async def test_S8_a_class_and_a_factory_make_an_instance_per_task() -> None:
    """Tasks of one component share no instance."""
    made: list[object] = []

    def factory() -> Ignore:
        made.append(Ignore())
        return made[-1]  # type: ignore[return-value]

    topology = Topology("factory")
    topology.bolt("bolt", factory, topology.spout("words", ["a"]).shuffle(), parallelism=3)
    await run_to_end(topology)
    assert len({id(each) for each in made}) == 3
