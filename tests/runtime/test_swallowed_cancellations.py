"""User code that swallows a cancellation by the engine, or answers it with another exception, neither holds up the
end (law C3) nor outlives its death (law C5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    FailureKind,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    TaskKilled,
    Topology,
    TopologyCrashed,
    Tuple,
    TupleFailed,
)
from tests.cast import Ack, ignore

LIMIT = 60.0
"""Simulated seconds after which a topology counts as stuck."""

pytestmark = pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])

Wait = Callable[[], Awaitable[None]]


async def swallow() -> None:
    """Wait, and go on when that is cancelled."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1000)


async def answer() -> None:
    """Wait, and turn a cancellation into another exception, as some clients do."""
    try:
        await asyncio.sleep(1000)
    except BaseException as error:
        raise ConnectionError("the request was cut short") from error


async def uncancel() -> None:
    """Wait, and take a cancellation back."""
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()


waits = pytest.mark.parametrize("wait", [swallow, answer, uncancel])


Fed = tuple[Topology, Stream[int]]
"""A topology, and the stream that the host feeds."""


def fed_topology() -> Fed:
    topology = Topology("fed", message_timeout=None, drain_timeout=5)
    return topology, topology.spout("fed", outputs=int)


def of_function(wait: Wait, *, concurrency: int = 1, on_error: Any = "fail") -> Fed:
    async def work(value: int) -> None:
        await wait()

    topology, fed = fed_topology()
    topology.bolt("work", work, fed.shuffle(), concurrency=concurrency, on_error=on_error)
    return topology, fed


def of_concurrent_function(wait: Wait) -> Fed:
    return of_function(wait, concurrency=2)


def of_generator(wait: Wait, *, concurrency: int = 1) -> Fed:
    async def work(value: int) -> AsyncIterator[int]:
        while True:
            await wait()
            yield value

    topology, fed = fed_topology()
    topology.bolt("work", work, fed.shuffle(), concurrency=concurrency)
    return topology, fed


def of_concurrent_generator(wait: Wait) -> Fed:
    return of_generator(wait, concurrency=2)


def of_batches(wait: Wait) -> Fed:
    class Write(BatchBolt[int, None]):
        size = 1

        async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
            await wait()

    topology, fed = fed_topology()
    topology.bolt("work", Write, fed.shuffle())
    return topology, fed


def of_ticks(wait: Wait, *, concurrency: int = 1, on_error: Any = "fail") -> Fed:
    class Ticks(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            await asyncio.sleep(0.1)
            if tup.value < 0:
                raise LookupError(tup.value)

        async def tick(self, out: Collector[None]) -> None:
            await wait()

    topology, fed = fed_topology()
    topology.bolt("work", Ticks, fed.shuffle(), tick=0.5, concurrency=concurrency, on_error=on_error)
    return topology, fed


BOLTS = [
    of_function,
    of_concurrent_function,
    of_generator,
    of_concurrent_generator,
    of_batches,
    of_ticks,
]
bolts = pytest.mark.parametrize("make", BOLTS)


async def body_raises(running: Running) -> None:
    raise KeyError("mine")


async def stopped_twice(running: Running) -> None:
    running.stop()
    await asyncio.sleep(0)
    running.stop()


async def drained(running: Running) -> None:
    running.stop()


ends = pytest.mark.parametrize("end", [body_raises, stopped_twice, drained])


End = Callable[[Running], Awaitable[None]]


async def leave(topology: Topology, end: End, fed: Stream[int] | None = None) -> None:
    """Run it, with its user code waiting, until this end of its block; raises TimeoutError if it is stuck."""
    async with asyncio.timeout(LIMIT):
        try:
            async with topology.run() as running:
                if fed is not None:
                    for value in range(3):
                        await running.emit(fed, value)
                await asyncio.sleep(1)
                await end(running)
        except KeyError:
            assert end is body_raises


@waits
@bolts
@ends
async def test_a_bolt_does_not_hold_up_the_end(wait: Wait, make: Callable[[Wait], Fed], end: End) -> None:
    """However the topology ends, the call that was cancelled is the last one (C3)."""
    topology, fed = make(wait)
    await leave(topology, end, fed)


@waits
@bolts
async def test_a_bolt_does_not_hold_up_a_crash(wait: Wait, make: Callable[[Wait], Fed]) -> None:
    """A crash elsewhere comes out of the block (C5)."""

    async def fall() -> AsyncIterator[int]:
        await asyncio.sleep(2)
        raise LookupError
        yield 1

    topology, fed = make(wait)
    topology.bolt("other", ignore, topology.spout("falls", fall).shuffle())
    with pytest.raises(TopologyCrashed, match=r"falls\[0\]"):
        await leave(topology, lambda running: asyncio.sleep(1000), fed)


@waits
@bolts
async def test_a_bolt_dies_of_each_kill(
    wait: Wait, make: Callable[[Wait], Fed], caplog: pytest.LogCaptureFixture
) -> None:
    """Five kills are five restarts, and what the dead instance had in hand is lost (L14)."""
    topology, fed = make(wait)
    async with asyncio.timeout(LIMIT), topology.run() as running:
        for kills in range(1, 6):
            tree = await running.emit(fed, kills)
            await asyncio.sleep(1)
            running.kill("work")
            running.kill("work")
            await asyncio.sleep(0.05)
            if make is not of_ticks:
                assert tree.failure is not None
                assert tree.failure.kind is FailureKind.TASK_LOST
            await asyncio.sleep(0.95)
            assert running.statistics().components["work"].restarts == kills
    assert "raised TaskKilled" not in caplog.text
    assert ("ConnectionError('the request was cut short')" in caplog.text) is (wait is answer)


async def kill_and_fail(topology: Topology, fed: Stream[int]) -> Running:
    """Kill a tick, and have ``execute`` raise thereafter."""
    async with asyncio.timeout(LIMIT), topology.run() as running:
        await asyncio.sleep(1)
        running.kill("work")
        await asyncio.sleep(0.2)  # it is restarted, and does not tick yet
        with pytest.raises(TupleFailed):
            await (await running.emit(fed, -1))
        await asyncio.sleep(1)
    return running


@waits
async def test_a_kill_in_a_tick_is_a_crash_where_errors_are(wait: Wait) -> None:
    """With ``on_error="stop"`` the topology crashes, beside concurrent calls too (C5)."""
    with pytest.raises(TopologyCrashed, match=r"tick of work\[0\]") as crashed:
        await kill_and_fail(*of_ticks(wait, concurrency=2, on_error="stop"))
    assert isinstance(crashed.value.__cause__, TaskKilled)


@waits
async def test_an_exception_after_a_kill_in_a_tick(wait: Wait) -> None:
    """The next instance dies of what ``execute`` raises beside another call, as the first one would have (B4)."""
    running = await kill_and_fail(*of_ticks(wait, concurrency=2, on_error="restart"))
    assert running.statistics().components["work"].restarts == 2


class Waits(Spout[int]):
    """Waits in ``next_tuple``."""

    wait: Wait
    opened = 0

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        type(self).opened += 1

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        await self.wait()


def of_spout(wait: Wait) -> Topology:
    topology = Topology("spout", drain_timeout=5)
    source = type("Source", (Waits,), {"wait": staticmethod(wait), "opened": 0})
    topology.bolt("work", ignore, topology.spout("source", source).shuffle())
    return topology


def of_source(wait: Wait) -> Topology:
    async def source() -> AsyncIterator[int]:
        for number in range(1000):
            await wait()
            yield number

    topology = Topology("source", drain_timeout=5)
    topology.bolt("work", ignore, topology.spout("source", source).shuffle())
    return topology


@pytest.mark.parametrize(
    ("make", "wait"),
    [
        (of_spout, swallow),
        (of_spout, answer),
        (of_spout, uncancel),
        (of_source, swallow),  # one that raises is over, and crashes the topology, whatever it answers
        (of_source, uncancel),
    ],
)
@ends
async def test_a_spout_does_not_hold_up_the_end(
    wait: Wait, make: Callable[[Wait], Topology], end: End
) -> None:
    """A source that swallows its cancellation is asked for no more (C3)."""
    await leave(make(wait), end)


@waits
async def test_a_spout_dies_of_each_kill(wait: Wait) -> None:
    """Five kills are five restarts, of a ``next_tuple`` too (C5)."""
    async with asyncio.timeout(LIMIT), of_spout(wait).run() as running:
        for kills in range(1, 6):
            await asyncio.sleep(1)
            running.kill("source")
            await asyncio.sleep(1)
            assert running.statistics().components["source"].restarts == kills
        running.stop()


async def test_a_generator_that_swallows_a_kill_loses_no_value() -> None:
    """What it yields thereafter is emitted before its task dies, and it goes on where it was (S6)."""
    seen: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for number in range(5):
            if number < 3:
                await swallow()
            yield number

    topology = Topology("numbers")
    topology.bolt("work", seen.append, topology.spout("source", numbers).shuffle())
    async with asyncio.timeout(LIMIT), topology.run() as running:
        for _ in range(3):
            await asyncio.sleep(1)
            running.kill("source")
        await running.finished()
        assert running.statistics().components["source"].restarts == 3
    assert seen == [0, 1, 2, 3, 4]


async def test_a_prepare_that_swallows_the_end_of_the_start() -> None:
    """A ``prepare`` that goes on after the start was cancelled begins nothing (C1)."""
    topology = Topology("prepare")

    class Prepares(Ack):
        async def prepare(self, context: TaskContext) -> None:
            await swallow()

    topology.bolt("work", Prepares, topology.spout("fed", outputs=int).shuffle())
    with pytest.raises(TimeoutError):
        await leave(topology, body_raises)
    assert asyncio.get_running_loop().time() == LIMIT


async def test_an_answer_to_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """An exception that user code raises instead of the cancellation is not lost: the log has it."""
    with caplog.at_level(logging.WARNING):
        topology, fed = of_function(answer)
        await leave(topology, body_raises, fed)
    assert "ConnectionError('the request was cut short')" in caplog.text


async def test_a_tree_whose_call_is_cut_short_is_not_acked() -> None:
    """A call that returns because it was cancelled has not done its work (law B1)."""
    topology, fed = of_function(swallow)
    async with asyncio.timeout(LIMIT), topology.run() as running:
        tree = await running.emit(fed, 1)
        await asyncio.sleep(1)
        running.kill("work")
        with pytest.raises(TupleFailed):
            await tree
