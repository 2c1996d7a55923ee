"""In asyncio's debug mode, components that hold the event loop are named. Real time is the subject."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

import pytest
import uvloop

from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.runtime.slow_code import Watched
from tests.cast import ignore

HELD = 0.12
"""Seconds; asyncio warns from 0.1."""


def hold(value: object) -> None:
    time.sleep(HELD)


class HoldBetweenAwaits(BasicBolt[object, None]):
    """Holds the loop in the middle of a coroutine."""

    async def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Await, hold, await."""
        await asyncio.sleep(0)
        hold(tup.value)
        await asyncio.sleep(0)


def holding_source() -> Iterator[int]:
    time.sleep(HELD)
    yield 1


async def waiting_source() -> AsyncIterator[int]:
    await asyncio.sleep(0.3)
    yield 1


def patient_loop(seconds: float) -> asyncio.AbstractEventLoop:
    """Warns later than the machine's other work could make it."""
    loop = asyncio.new_event_loop()
    loop.slow_callback_duration = seconds
    return loop


def run(topology: Topology, debug: bool, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        async with topology.run() as running:
            await running.finished()

    gc.collect()  # a collection of all that the tests have left would hold the loop, too
    with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
        runner.run(main())


def told(caplog: pytest.LogCaptureFixture, task: str = "heavy[0]") -> list[str]:
    """What was said of this task; a busy machine may well hold up others for as long."""
    lines = [each.getMessage() for each in caplog.records if each.name.startswith("stormlet")]
    return [line for line in lines if line.startswith(f"{task} held the event loop for ")]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    ("logic", "concurrency"), [(hold, 1), (HoldBetweenAwaits, 1), (HoldBetweenAwaits, 2), (hold, 2)]
)
def test_a_bolt_that_holds_the_loop_is_named(
    logic: Callable[..., object],
    concurrency: int,
    factory: Callable[[], asyncio.AbstractEventLoop],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whether it is a plain function or holds between two awaits: task, seconds and method are told."""
    topology = Topology("holds")
    topology.bolt("heavy", logic, topology.spout("one", [1]).shuffle(), concurrency=concurrency)
    run(topology, debug=True, factory=factory)
    (line,) = [each for each in told(caplog) if "in execute" in each]
    assert "executor='thread'" in line


def test_a_source_that_holds_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """A generator is user code, too."""
    topology = Topology("source")
    topology.bolt("ignore", ignore, topology.spout("heavy", holding_source).shuffle())
    run(topology, debug=True, factory=asyncio.new_event_loop)
    assert [each for each in told(caplog) if "in next_tuple" in each]


def test_nothing_is_told_without_debug(caplog: pytest.LogCaptureFixture) -> None:
    """Outside debug mode nothing is measured, and nothing said."""
    topology = Topology("quiet")
    topology.bolt("heavy", hold, topology.spout("one", [1]).shuffle())
    run(topology, debug=False, factory=asyncio.new_event_loop)
    assert told(caplog) == []


def test_a_quick_topology_is_silent_in_debug_mode(caplog: pytest.LogCaptureFixture) -> None:
    """Awaiting takes time, and holds nothing; crashes and cancellations work as they do."""
    topology = Topology("quick")
    topology.bolt("ignore", ignore, topology.spout("one", waiting_source).shuffle())
    with caplog.at_level(logging.WARNING):
        run(topology, debug=True, factory=partial(patient_loop, 0.25))
    assert told(caplog, "ignore[0]") == told(caplog, "one[0]") == []


def test_a_step_that_begins_with_an_exception_is_timed() -> None:
    """As where user code holds the loop when it is cancelled."""
    clock, held = iter([0.0, 0.01, 5.0, 5.5]), list[float]()

    async def wait() -> None:
        await asyncio.sleep(0)

    watched = Watched(wait(), lambda: next(clock), 0.1, held.append)
    watched.send(None)
    with pytest.raises(ValueError, match="late"):
        watched.throw(ValueError("late"))
    assert held == [0.5]
