"""Code that takes simulated time."""

from __future__ import annotations

import asyncio

import pytest

from stormlet.testing import Simulation, work


@pytest.mark.simulated_time
async def test_work_takes_time_and_makes_timers_late(sim: Simulation) -> None:
    """What was due in the midst of it runs after it, in order, and nothing before its time."""
    loop, seen = asyncio.get_running_loop(), list[tuple[str, float]]()
    for name, at in (("during", 1.0), ("later", 4.0), ("at the end", 3.0)):
        loop.call_at(at, lambda name=name: seen.append((name, loop.time())))
    work(3)
    assert (seen, sim.now) == ([], 3)
    await sim.advance(seconds=2)
    assert seen == [("during", 3), ("at the end", 3), ("later", 4)]


@pytest.mark.simulated_time
async def test_timers_are_found_whatever_the_rounding() -> None:
    """Times that are no whole numbers neither stop the clock nor are passed over."""
    for number in range(1000):
        sleeping = asyncio.create_task(asyncio.sleep(0.1 * (number % 7)))
        work(0.1)
        await sleeping


@pytest.mark.simulated_time
@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1"])
async def test_time_goes_forward(seconds: float) -> None:
    """By a finite number of seconds."""
    with pytest.raises(ValueError, match=r"time does not go back|loop.work"):
        work(seconds)


@pytest.mark.asyncio
async def test_real_code_takes_its_time_by_itself() -> None:
    """On a real loop it would take none."""
    with pytest.raises(RuntimeError, match="no simulated time"):
        work(1)
