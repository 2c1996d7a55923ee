"""Cleanup and close are always called (law C3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress

import pytest

from stormlet import BasicBolt, Collector, StartFailed, Topology, TopologyCrashed, Tuple
from tests.cast import Counting, refuse
from tests.engines import Engine
from tests.helpers import leave_by, now, run_to_end
from tests.law.calls import Log, crashing_spout, logged_bolt, logged_spout


async def leave_normally(topology: Topology) -> None:
    async with topology.run():
        await asyncio.sleep(1)


async def leave_at_deadline(topology: Topology) -> None:
    async with topology.run(drain_timeout=0.0):
        await asyncio.sleep(1)


async def leave_by_exception(topology: Topology) -> None:
    with suppress(ZeroDivisionError):
        await leave_by(ZeroDivisionError(), topology)


async def leave_by_second_stop(topology: Topology) -> None:
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.stop()
        await asyncio.sleep(0)
        running.stop()


async def leave_by_cancellation(topology: Topology) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(leave_by(AssertionError(), topology, after=100), 1)


async def leave_by_crash(topology: Topology) -> None:
    topology.spout("crash", lambda: crashing_spout("next_tuple", 1)())
    with suppress(TopologyCrashed):
        await leave_by(AssertionError(), topology, after=100)


async def leave_before_the_start(topology: Topology) -> None:
    topology.bolt("bad", logged_bolt([], failing="prepare", seconds=1), topology.spout("no").shuffle())
    with suppress(StartFailed):
        await run_to_end(topology)


async def leave_during_the_start(topology: Topology) -> None:
    topology.bolt("late", logged_bolt([], seconds=100), topology.spout("no").shuffle())
    with suppress(TimeoutError):
        await asyncio.wait_for(run_to_end(topology), 1)


WAYS = [
    leave_during_the_start,
    leave_normally,
    leave_at_deadline,
    leave_by_exception,
    leave_by_second_stop,
    leave_by_cancellation,
    leave_by_crash,
    leave_before_the_start,
]


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
@pytest.mark.parametrize("leave", WAYS)
async def test_C3_cleanup_and_close_are_always_called(leave: Callable[[Topology], Awaitable[None]]) -> None:
    """Once for each task that was prepared or opened, however the run ends; a failing one stops no other."""
    log: Log = []
    topology = Topology("always", max_spout_pending=3)
    source = topology.spout("spout", logged_spout(log, failing="close"))
    topology.bolt("failing", logged_bolt(log, failing="cleanup"), source.shuffle())
    topology.bolt("bolt", logged_bolt(log), source.shuffle(), parallelism=2)
    await leave(topology)
    assert log.count("bolt cleanup") == log.count("bolt prepare") == 3
    opened = leave not in (leave_during_the_start, leave_before_the_start)
    assert log.count("spout close") == log.count("spout open") == opened


@pytest.mark.simulated_time
async def test_C3_asynchronous_cleanup_and_close_are_awaited() -> None:
    """The block is left when they have returned, spouts first."""
    log: list[tuple[str, float]] = []

    class Closing(Counting):
        async def close(self) -> None:
            await asyncio.sleep(2)
            log.append(("close", now()))

    class Cleaning(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            pass

        async def cleanup(self) -> None:
            await asyncio.sleep(3)
            log.append(("cleanup", now()))

    topology = Topology("async")
    topology.bolt("bolt", Cleaning, topology.spout("spout", Closing).shuffle())
    await run_to_end(topology)
    assert log == [("close", 2), ("cleanup", 5)]


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
@pytest.mark.parametrize("crashes", [False, True])
async def test_C3_each_bolt_that_was_prepared_is_cleaned_up(engine: Engine, crashes: bool) -> None:
    """Though another one raises in its cleanup, and where a third one crashes the run."""
    log: Log = []
    topology = Topology("always")
    numbers = topology.spout("numbers", range(3))
    topology.bolt("failing", logged_bolt(log, failing="cleanup"), numbers.shuffle())
    topology.bolt("bolt", logged_bolt(log), numbers.fields(), parallelism=2)
    topology.bolt("refuse", refuse, numbers.shuffle(), on_error="stop" if crashes else "fail")
    with pytest.raises(TopologyCrashed) if crashes else nullcontext():
        await engine.run_to_end(topology)
    assert log.count("bolt cleanup") == log.count("bolt prepare") >= 1
