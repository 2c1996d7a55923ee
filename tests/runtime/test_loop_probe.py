"""The lag of the event loop, as a timer at random moments sees it."""

from __future__ import annotations

import asyncio
import time

import pytest

from stormlet import LoopStatistics, Running, Topology
from stormlet.testing import SimulatedLoop, Simulation, work


def loop_of(running: Running) -> LoopStatistics:
    found = running.statistics().loop
    assert found is not None
    return found


def probed_loop() -> SimulatedLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    loop.probes_lag = True
    return loop


async def await_a_minute(number: int) -> None:
    await asyncio.sleep(60)


@pytest.mark.simulated_time
async def test_simulated_time_has_no_probe() -> None:
    """Its timer would hide deadlocks."""
    topology = Topology("quiet")
    topology.spout("fed", outputs=int)
    async with topology.run() as running:
        assert running.statistics().loop is None


@pytest.mark.simulated_time
async def test_late_probes_are_the_share_of_time_in_which_the_loop_is_busy(sim: Simulation) -> None:
    """Other code holds the loop for 6 of each 10 milliseconds: of hundreds of probes more than a third and less than
    two thirds are late by more than 2."""
    probed_loop()
    topology = Topology("lagging")
    fed = topology.spout("fed", outputs=int)
    topology.bolt("await", await_a_minute, fed.shuffle())

    async def hold() -> None:
        while True:
            work(0.006)
            await asyncio.sleep(0.004)

    async with topology.run() as running:
        await running.emit(fed, 1)
        holding = asyncio.create_task(hold())
        await sim.advance(seconds=29)
        found = loop_of(running)
        holding.cancel()
        await sim.advance(seconds=31)
    assert 500 < found.probes < 620
    assert found.late / found.probes == pytest.approx(
        0.4, abs=0.06
    )  # in the first 4 of 10 they are late by more
    assert (found.lag.count, found.own_seconds) == (found.probes, 0)
    assert found.lag.largest == pytest.approx(0.006, rel=0.07)
    assert found.seconds == pytest.approx(29, abs=0.1)


@pytest.mark.simulated_time
async def test_the_time_of_its_own_tasks_is_known(sim: Simulation) -> None:
    """Two bolts of a second each are two seconds."""
    probed_loop()
    topology = Topology("own")
    fed = topology.spout("fed", outputs=int)
    for name in ("one", "two"):
        topology.bolt(name, lambda number: work(1), fed.shuffle())
    async with topology.run() as running:
        await running.emit(fed, 1)
        await sim.advance(seconds=3)
        assert loop_of(running).own_seconds == pytest.approx(2)


@pytest.mark.simulated_time
async def test_the_probe_rests_with_the_topology(sim: Simulation) -> None:
    """While nothing is under way no timer is set; the next message has it set again."""
    probed_loop()
    topology = Topology("resting")
    fed = topology.spout("fed", outputs=int)
    topology.bolt("await", await_a_minute, fed.shuffle())
    async with topology.run() as running:
        await sim.advance(hours=1)
        at_rest = loop_of(running)
        assert at_rest.probes <= 3
        await running.emit(fed, 1)
        await sim.advance(seconds=29)
        assert loop_of(running).probes > 500
        running.stop()


def test_real_loops_are_probed() -> None:
    """A topology that computes for a fifth of a second knows of it."""

    async def run() -> LoopStatistics:
        topology = Topology("real")
        numbers = topology.spout("numbers", range(20), outputs=int)
        topology.bolt("compute", lambda number: time.sleep(0.01), numbers.shuffle())
        async with topology.run() as running:
            await running.finished()
            return loop_of(running)

    found = asyncio.run(run())
    assert found.probes >= 1
    assert found.own_seconds >= 0.19
