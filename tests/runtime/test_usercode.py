"""A ``CancelledError`` that user code lets out, although nobody has cancelled it, is an exception of that code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    Running,
    Spout,
    SpoutCollector,
    StartFailed,
    StrayCancellation,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.runtime.usercode import Within
from tests.cast import Ack, ignore, wait_for_ever
from tests.helpers import run_to_end

LIMIT = 60.0
"""Simulated seconds after which a topology counts as stuck."""

pytestmark = pytest.mark.simulated_time


async def await_cancelled() -> None:
    """Await a task of one's own that was cancelled."""
    inner = asyncio.ensure_future(asyncio.sleep(10))
    inner.cancel()
    await inner


async def trip_over_one(value: int) -> None:
    if value == 1:
        await await_cancelled()


def raise_at_one(value: int) -> None:
    if value == 1:
        raise asyncio.CancelledError


async def run(topology: Topology, **options: Any) -> Running:
    async with asyncio.timeout(LIMIT):
        return await run_to_end(topology, **options)


async def crash(topology: Topology, **options: Any) -> TopologyCrashed:
    with pytest.raises(TopologyCrashed) as caught:
        await run(topology, **options)
    return caught.value


def one_dead_letter(running: Running) -> DeadLetter:
    (letter,) = running.dead_letters
    return letter


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_bolt_fails_the_input_and_lives_on(concurrency: int) -> None:
    """A call that awaits something cancelled fails its input like any exception; the others are acked (B4)."""
    topology = Topology("stray", max_attempts=1)
    topology.bolt("bolt", trip_over_one, topology.spout("spout", range(4)).shuffle(), concurrency=concurrency)
    running = await run(topology)
    letter = one_dead_letter(running)
    assert letter.value == 1
    assert isinstance(letter.failure.exception, StrayCancellation)
    assert isinstance(letter.failure.exception.__cause__, asyncio.CancelledError)
    assert running.statistics().components["spout"].acked == 3


class Raising(Bolt[int, None]):
    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        raise_at_one(tup.value)
        out.ack(tup)


def yield_one(value: int) -> Iterator[int]:
    raise_at_one(value)
    yield value


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("executor", ["loop", "thread"])
@pytest.mark.parametrize("bolt", [raise_at_one, yield_one, Raising])
async def test_a_bolt_that_raises_it_fails_the_input(bolt: Any, executor: Any, concurrency: int) -> None:
    """Synchronous code that lets the cancellation of something else out, such as a future's, has raised (B4)."""
    topology = Topology("stray", max_attempts=1)
    spout = topology.spout("spout", range(4))
    topology.bolt("bolt", bolt, spout.shuffle(), concurrency=concurrency, executor=executor)
    running = await run(topology)
    letter = one_dead_letter(running)
    assert (letter.value, type(letter.failure.exception)) == (1, StrayCancellation)
    assert running.statistics().components["spout"].acked == 3


async def yield_later(value: int) -> Iterator[int]:
    return yield_one(value)


async def test_a_generator_that_raises_it_after_a_wait_fails_the_input() -> None:
    """Nothing was awaited where it came out (B4)."""
    topology = Topology("stray", max_attempts=1)
    topology.bolt("bolt", yield_later, topology.spout("spout", range(4)).shuffle())
    running = await run(topology)
    assert (one_dead_letter(running).value, running.statistics().components["bolt"].restarts) == (1, 0)


class RaisingPairs(BatchBolt[int, None]):
    size = 2

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        raise_at_one(tups[0].value)


async def test_a_batch_that_raises_it_fails_whole() -> None:
    """All its members fail, not the last one alone (B4)."""
    topology = Topology("stray", max_attempts=1)
    topology.bolt("bolt", RaisingPairs, topology.spout("spout", [1, 2, 3, 4]).shuffle())
    running = await run(topology)
    assert [letter.value for letter in running.dead_letters] == [1, 2]


async def test_a_synchronous_sink_that_raises_it_crashes() -> None:
    """The letter is in no place, and its message is left over (N1)."""

    def sink(letter: DeadLetter) -> None:
        raise asyncio.CancelledError

    topology = Topology("stray", max_attempts=1)
    topology.bolt("bolt", trip_over_one, topology.spout("spout", [1]).shuffle())
    error = await crash(topology, dead_letters=sink)
    assert isinstance(error.__cause__, asyncio.CancelledError)


class Pairs(BatchBolt[int, None]):
    size = 2

    async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        await trip_over_one(tups[0].value)


async def test_a_batch_fails_whole() -> None:
    """A batch that awaits something cancelled fails all its members, not the last one alone (B4)."""
    topology = Topology("stray", max_attempts=1)
    topology.bolt("bolt", Pairs, topology.spout("spout", [1, 2, 3, 4]).shuffle())
    running = await run(topology)
    assert [letter.value for letter in running.dead_letters] == [1, 2]
    assert all(isinstance(each.failure.exception, StrayCancellation) for each in running.dead_letters)


class Asking(Spout[int]):
    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        await await_cancelled()


async def test_a_spout_crashes() -> None:
    """An asynchronous next_tuple that awaits something cancelled crashes the topology, which names it (C5)."""
    topology = Topology("stray")
    topology.bolt("bolt", ignore, topology.spout("spout", Asking).shuffle())
    error = await crash(topology)
    assert (error.task, error.what) == ("spout[0]", "next_tuple")
    assert isinstance(error.__cause__, StrayCancellation)


class Hearing(Spout[int]):
    def __init__(self) -> None:
        self.values: Iterator[int] = iter([1])

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        for value in self.values:
            out.emit(value, message_id=value)

    async def ack(self, message_id: object) -> None:
        await await_cancelled()


async def test_a_spout_that_hears_crashes() -> None:
    """An asynchronous ack that awaits something cancelled crashes the topology (C5)."""
    topology = Topology("stray")
    topology.bolt("bolt", ignore, topology.spout("spout", Hearing).shuffle())
    assert isinstance((await crash(topology)).__cause__, StrayCancellation)


async def test_a_dead_letter_sink_crashes() -> None:
    """A sink that awaits something cancelled crashes the topology instead of keeping the message (C5)."""

    async def sink(letter: DeadLetter) -> None:
        await await_cancelled()

    topology = Topology("stray", max_attempts=1)
    topology.bolt("bolt", trip_over_one, topology.spout("spout", [1]).shuffle())
    error = await crash(topology, dead_letters=sink)
    assert isinstance(error.__cause__, StrayCancellation)


class Preparing(Ack):
    async def prepare(self, context: TaskContext) -> None:
        await await_cancelled()


async def test_prepare_fails_the_start() -> None:
    """A prepare that awaits something cancelled fails the start instead of hanging it (C1)."""
    topology = Topology("stray")
    topology.bolt("bolt", Preparing, topology.spout("spout", [1]).shuffle())
    with pytest.raises(StartFailed, match="prepare") as caught:
        await run(topology)
    assert isinstance(caught.value.__cause__, StrayCancellation)


class Ticking(Ack):
    async def tick(self, out: Collector[None]) -> None:
        await await_cancelled()


async def test_a_tick_crashes() -> None:
    """A tick that awaits something cancelled crashes the topology (C5)."""
    topology = Topology("stray")
    topology.bolt("bolt", Ticking, topology.spout("spout").shuffle(), tick=1.0)
    with pytest.raises(TopologyCrashed, match=r"tick of bolt\[0\]"):
        async with asyncio.timeout(LIMIT), topology.run():
            await asyncio.sleep(5)


async def test_a_cancelled_host_still_is_cancelled() -> None:
    """Whoever cancels the host while a bolt awaits gets its own cancellation back, not a crash (C5)."""

    topology = Topology("cancelled", drain_timeout=0)
    topology.bolt("bolt", wait_for_ever, topology.spout("spout", [1]).shuffle())
    host = asyncio.ensure_future(run(topology))
    await asyncio.sleep(1)
    host.cancel()
    with pytest.raises(asyncio.CancelledError):
        await host


VARIABLE = ContextVar("variable", default="the topology's")


@pytest.mark.simulated_time
async def test_a_coroutine_that_catches_stays_in_its_context() -> None:
    """What it awaits may raise, and what comes after that is its own code as before (B10)."""
    loop, context = asyncio.get_running_loop(), copy_context()
    context.run(VARIABLE.set, "the message's")
    future: asyncio.Future[None] = loop.create_future()

    async def catch() -> str:
        with suppress(ValueError):
            await future
        return VARIABLE.get()

    loop.call_soon(future.set_exception, ValueError("late"))
    assert await Within(context, catch()) == "the message's"
