"""The log of what does not end: calls that go on when all messages have their outcomes, and a drain (law S5, C3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

import pytest

from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.testing import Deadlock, SimulatedLoop, Simulation

SAID = "stormlet.runtime.slow_ends"


async def sleepless(number: int) -> None:
    if number == 5:
        await asyncio.Event().wait()


def said(caplog: pytest.LogCaptureFixture) -> Sequence[str]:
    return [each.getMessage() for each in caplog.records if each.name == SAID]


@pytest.mark.simulated_time
async def test_calls_without_an_end_are_named(sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """Once, half a minute after the last message has its outcome; the run goes on, as the call may end."""
    topology = Topology("shop", message_timeout=10, max_attempts=1)
    topology.bolt("call", sleepless, topology.spout("numbers", range(20)).shuffle(), concurrency=4)
    with pytest.raises(TimeoutError):
        async with topology.run() as running, asyncio.timeout(1000):
            await running.finished()
    (line,) = said(caplog)
    assert line.startswith(
        "topology 'shop' has no messages left but does not end, as calls are still running: call[0], in sleepless"
    )
    assert "Event.wait" in line


@pytest.mark.simulated_time
async def test_calls_are_named_after_a_source_was_silent(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """For longer than the log waits, in real time; on simulated time such a timer would hide a deadlock."""

    async def late() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(200)
        yield 5

    topology = Topology("shop", message_timeout=10, max_attempts=1)
    topology.bolt("call", sleepless, topology.spout("numbers", late).shuffle())
    async with topology.run() as running:
        running._conductor._watches_idle = True  # pyright: ignore[reportPrivateUsage]
        end = asyncio.create_task(running.finished())
        await sim.advance(seconds=1000)
        end.cancel()
    (line,) = [each for each in said(caplog) if "drain" not in each]
    assert "still running: call[0], in sleepless" in line


@pytest.mark.simulated_time
async def test_a_finish_without_an_end_is_named(sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """As a call with an input is."""

    class Endless(BasicBolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None: ...

        async def finish(self, out: Collector[None]) -> None:
            await asyncio.Event().wait()

    topology = Topology("shop")
    topology.bolt("call", Endless, topology.spout("numbers", [1]).shuffle())
    async with topology.run() as running:
        end = asyncio.create_task(running.finished())
        await sim.advance(seconds=100)
        end.cancel()
    (line,) = [each for each in said(caplog) if "drained" not in each]
    assert "still running: call[0], in Endless.finish" in line


@pytest.mark.simulated_time
async def test_calls_that_end_late_are_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    """As long as they have messages, or others go on."""
    topology = Topology("late", message_timeout=500)
    topology.bolt("sleep", lambda _: asyncio.sleep(100), topology.spout("numbers", range(5)).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert said(caplog) == []


def test_a_deadlock_on_simulated_time_is_still_found(caplog: pytest.LogCaptureFixture) -> None:
    """The look at the calls is no timer for ever."""

    async def run() -> None:
        topology = Topology("shop", message_timeout=None)
        topology.bolt("call", sleepless, topology.spout("numbers", range(20)).shuffle(), concurrency=4)
        async with topology.run() as running:
            await running.finished()

    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(1)) as runner, pytest.raises(Deadlock):
        runner.run(run())


@pytest.mark.simulated_time
async def test_the_end_of_a_drain_names_what_held_it_up(caplog: pytest.LogCaptureFixture) -> None:
    """With the option, and its time."""
    topology = Topology("shop", drain_timeout=2)
    topology.bolt("call", sleepless, topology.spout("numbers", [5, 5]).shuffle())
    with caplog.at_level(logging.WARNING):
        async with topology.run():
            await asyncio.sleep(1)
    (line,) = said(caplog)
    assert line.startswith(
        "topology 'shop' has not drained within 2 s, its drain_timeout, and what is left fails; it was waiting for "
        "call[0], in sleepless"
    )
