"""In asyncio's debug mode, components that hold the event loop are named. Real time is the subject."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import uvloop

from stormlet import BasicBolt, Collector, Topology, Tuple
from tests.helpers import ignore

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


async def quick_source() -> AsyncIterator[int]:
    await asyncio.sleep(0)
    yield 1


def run(topology: Topology, debug: bool, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        async with topology.run() as running:
            await running.finished()

    with asyncio.Runner(debug=debug, loop_factory=factory) as runner:
        runner.run(main())


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name.startswith("stormlet")]


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
    (line,) = told(caplog)
    assert line.startswith("heavy[0] held the event loop for 0.1")
    assert "in execute" in line
    assert "executor='thread'" in line


def test_a_source_that_holds_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """A generator is user code, too."""
    topology = Topology("source")
    topology.bolt("ignore", ignore, topology.spout("heavy", holding_source).shuffle())
    run(topology, debug=True, factory=asyncio.new_event_loop)
    (line,) = told(caplog)
    assert line.startswith("heavy[0] held the event loop for 0.1")


def test_nothing_is_told_without_debug(caplog: pytest.LogCaptureFixture) -> None:
    """Outside debug mode nothing is measured, and nothing said."""
    topology = Topology("quiet")
    topology.bolt("heavy", hold, topology.spout("one", [1]).shuffle())
    run(topology, debug=False, factory=asyncio.new_event_loop)
    assert told(caplog) == []


def test_a_quick_topology_is_silent_in_debug_mode(caplog: pytest.LogCaptureFixture) -> None:
    """Awaiting takes time, and holds nothing; crashes and cancellations work as they do."""
    topology = Topology("quick")
    topology.bolt("ignore", ignore, topology.spout("one", quick_source).shuffle())
    with caplog.at_level(logging.WARNING):
        run(topology, debug=True, factory=asyncio.new_event_loop)
    assert told(caplog) == []
