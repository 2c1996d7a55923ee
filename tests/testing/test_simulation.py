"""A test's hands on simulated time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from stormlet import Topology
from stormlet.testing import Feeder, Hold, ScriptedBolt, Simulation, run_simulated


@pytest.mark.simulated_time
async def test_time_begins_at_zero_and_is_what_the_loop_says(sim: Simulation) -> None:
    """The fixture and the loop have one clock."""
    assert sim.now == 0.0
    await asyncio.sleep(2.5)
    assert sim.now == asyncio.get_running_loop().time() == 2.5


@pytest.mark.simulated_time(seed=9)
async def test_the_seed_is_that_of_the_test(sim: Simulation) -> None:
    """A failing test can say by which seed it is repeated."""
    assert sim.seed == 9


@pytest.mark.simulated_time
async def test_advance_takes_all_units(sim: Simulation) -> None:
    """Days, hours, minutes and seconds add up, to the last bit."""
    await sim.advance(days=1, hours=2, minutes=3, seconds=4.5)
    assert sim.now == 86400 + 7200 + 180 + 4.5


@pytest.mark.simulated_time
async def test_advancing_by_nothing_changes_nothing(sim: Simulation) -> None:
    """Storm's TimeTest: 0 is no change."""
    await sim.advance(seconds=0)
    await sim.advance()
    assert sim.now == 0.0


@pytest.mark.simulated_time
async def test_time_does_not_go_back(sim: Simulation) -> None:
    """Storm's TimeTest: a negative advance is an error."""
    with pytest.raises(ValueError, match="time does not go back: -60 s"):
        await sim.advance(minutes=-1)


def test_there_is_nothing_to_advance_outside_a_simulation() -> None:
    """Storm's TimeTest: on a real loop there is no simulation, and the message says how to get one."""

    async def on_a_real_loop() -> None:
        with pytest.raises(RuntimeError, match=r"@pytest\.mark\.simulated_time"):
            Simulation()

    asyncio.run(on_a_real_loop())


@pytest.mark.simulated_time
async def test_what_is_due_at_the_moment_has_happened(sim: Simulation) -> None:
    """Timers of the very moment, and all that follows from them without time passing, are over; later ones are not."""
    seen: list[str] = []

    async def sleeper() -> None:
        await asyncio.sleep(10)
        for _ in range(100):
            await asyncio.sleep(0)
        seen.append("due")
        await asyncio.sleep(0.001)
        seen.append("later")

    task = asyncio.create_task(sleeper())
    await sim.advance(seconds=10)
    assert seen == ["due"]
    await task


@pytest.mark.simulated_time
async def test_settling_takes_no_time(sim: Simulation) -> None:
    """Everything runs that can run now, and no timer fires."""
    rang = asyncio.get_running_loop().call_later(1e-6, lambda: None)
    turns = 0

    async def busy() -> None:
        nonlocal turns
        while turns < 1000:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(busy())
    await sim.settled()
    assert (turns, sim.now) == (1000, 0.0)
    rang.cancel()
    await task


@pytest.mark.simulated_time
async def test_settling_where_nothing_is_left_is_no_deadlock(sim: Simulation) -> None:
    """With no timer at all, being idle is what was waited for."""
    await sim.settled()
    await sim.settled()


@pytest.mark.simulated_time
async def test_several_may_settle_at_once(sim: Simulation) -> None:
    """Each is told, one of them that was cancelled excepted."""
    waits = [asyncio.create_task(sim.settled()) for _ in range(3)]
    await asyncio.sleep(0)
    waits[0].cancel()
    done = await asyncio.gather(*waits, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1:] == [None, None]


@pytest.mark.simulated_time
async def test_settling_waits_for_work_in_threads(sim: Simulation) -> None:
    """While a thread works for the loop, nothing is settled."""
    go = threading.Event()
    work = asyncio.create_task(asyncio.to_thread(go.wait, 5))
    asyncio.get_running_loop().call_later(0.0, go.set)
    await sim.settled()
    assert work.done()


@pytest.mark.simulated_time
async def test_a_cancelled_advance_leaves_nothing_behind(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """Its timer is gone: nothing fails when the moment comes."""
    task = asyncio.create_task(sim.advance(seconds=5))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await sim.advance(seconds=10)
    assert (sim.now, caplog.records) == (11.0, [])


@pytest.mark.simulated_time(allow_leaks=["inputs"])
async def test_a_topology_settles_when_it_waits_for_the_clock(sim: Simulation) -> None:
    """An input that is held keeps its tree open, and is settled all the same until the timeout has come."""
    feeder, stuck = Feeder[str](), ScriptedBolt[str](default=Hold())
    topology = Topology("stuck", message_timeout=30.0)
    topology.bolt("stuck", stuck, topology.spout("lines", feeder).shuffle())
    async with topology.run():
        feeder.feed("a")
        await sim.settled()
        assert (stuck.held, feeder.pending, sim.now) == (["a"], ["a"], 0.0)
        await sim.advance(seconds=29.9)
        assert feeder.failed == []
        await sim.advance(seconds=15.1)
        assert feeder.failed == ["a"]


def test_it_can_be_made_without_pytest() -> None:
    """In a coroutine that run_simulated runs, Simulation() is at hand."""

    async def main() -> float:
        sim = Simulation()
        await sim.advance(hours=1)
        return sim.now

    assert run_simulated(main()) == 3600.0
