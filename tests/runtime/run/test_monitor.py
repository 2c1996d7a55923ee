"""The past of a run: samples, windows and charts of a topology at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from stormlet import InvalidTopology, Running, Topology
from stormlet.report.statistics import Statistics
from stormlet.report.steps import Steps, at_once
from stormlet.runtime.run.monitor import Monitor
from stormlet.testing import Simulation
from stormlet.testing.loop import Deadlock, run_simulated
from tests.cast import take_a_second, wait_for_ever

pytestmark = pytest.mark.simulated_time


def nothing() -> Steps[Statistics]:
    yield
    return Statistics({})


async def one_a_second() -> AsyncIterator[int]:
    for number in range(10_000):
        await asyncio.sleep(1)
        yield number


def topology() -> Topology:
    made = Topology("watched")
    made.bolt("wait", take_a_second, made.spout("numbers", one_a_second).shuffle())
    return made


def executed(running: Running, window: str) -> float:
    return running.figures(window).components["wait"].executed  # type: ignore[arg-type]


async def test_samples_are_taken_by_a_timer(sim: Simulation) -> None:
    """One every ten seconds, whether anybody asks or not."""
    asyncio.get_running_loop().probes_lag = True  # type: ignore[attr-defined]
    async with topology().run() as running:
        await sim.advance(seconds=65)
        running.stop()
        running.stop()
    assert [round(point.at) for point in running.series()] == [10, 20, 30, 40, 50, 60]


async def test_without_a_timer_whoever_asks_takes_them(sim: Simulation) -> None:
    """On simulated time, where a timer would hide a deadlock."""
    async with topology().run() as running:
        for _ in range(3):
            await sim.advance(seconds=25)
            running.figures()
        running.stop()
        running.stop()
    assert [point.at for point in running.series()] == [25, 50, 75]


def test_a_deadlock_is_found() -> None:
    """No timer of ours hides it."""

    async def stuck() -> None:
        made = Topology("stuck", message_timeout=None)
        made.bolt("wait", wait_for_ever, made.spout("numbers", [1]).shuffle())
        async with made.run() as running:
            await running.finished()

    with pytest.raises(Deadlock):
        run_simulated(stuck())


async def test_the_last_minute_is_not_all_time(sim: Simulation) -> None:
    """Of a source that has ended for long, only all time tells; and tasks of the named component have latencies."""
    async with topology().run() as running:
        for _ in range(12):
            await sim.advance(seconds=10)
            running.figures()
        assert (executed(running, "1m"), executed(running, "10m")) == pytest.approx(
            (1.0, 119 / 120), abs=0.02
        )
        running.deactivate()
        for _ in range(12):
            await sim.advance(seconds=10)
            running.figures()
        assert executed(running, "1m") == 0.0
        assert executed(running, "all") == pytest.approx(0.5, abs=0.02)
        running.stop()
        running.stop()


async def test_the_figures_of_a_run_stay_when_it_has_ended(sim: Simulation) -> None:
    """Time goes on, and the rates are those of the run."""
    made = Topology("short")
    made.bolt("wait", take_a_second, made.spout("numbers", range(20)).shuffle())
    async with made.run() as running:
        await running.finished()
    await sim.advance(hours=2)
    figures = running.figures("all")
    assert (figures.seconds, figures.components["wait"].executed) == (20.0, 1.0)
    assert running.figures("1m").components["wait"].executed == 1.0


async def test_the_time_before_the_start_is_in_no_window(sim: Simulation) -> None:
    """Components that take long to prepare do not lower the rates; figures may be asked for meanwhile."""
    monitor = Monitor("early", asyncio.get_running_loop(), nothing, {})
    await sim.advance(minutes=5)
    assert at_once(monitor.figures("1m")).seconds == 0.0
    monitor.begin()
    await sim.advance(seconds=5)
    assert at_once(monitor.figures("1m")).seconds == 5.0


async def test_what_there_is_not_is_refused(sim: Simulation) -> None:
    """The error names what there is."""
    async with topology().run() as running:
        for ask in (running.series, running.figures):
            with pytest.raises(
                InvalidTopology, match="'watched' has no 'nobody'; components: '__acker', 'numbers', 'wait'"
            ):
                ask(component="nobody")
        with pytest.raises(ValueError, match="no window '5m'"):
            running.figures("5m")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no window '5m'"):
            running.bottleneck("5m")  # type: ignore[arg-type]
        running.stop()
        running.stop()


async def test_a_fault_of_the_figures_does_not_end_the_run(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, and no more samples are taken."""

    def fail() -> Steps[Statistics]:
        raise RuntimeError("no statistics")

    monitor = Monitor("faulty", asyncio.get_running_loop(), fail, {})
    task = asyncio.create_task(monitor.run())
    await sim.advance(minutes=5)
    assert not task.done()
    (record,) = caplog.records
    assert "figures of topology 'faulty' are no longer taken; the run goes on" in record.getMessage()
    task.cancel()
