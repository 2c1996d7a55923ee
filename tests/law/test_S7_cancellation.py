"""Cancelled calls of spouts, and closed generators (law S7)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from stormlet import Spout, SpoutCollector, Topology
from tests.cast import Slow, ignore
from tests.helpers import now
from tests.law.failing import failing_first


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
