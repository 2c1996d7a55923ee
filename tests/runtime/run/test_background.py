"""The clocks of a topology, on a loop that lags."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor

import pytest

from stormlet import Collector, Topology, TupleTimedOut
from stormlet.testing import Deadlock, run_simulated
from tests.cast import Forget, Ignore, Ticks, ignore, take_a_second
from tests.helpers import block, now

pytestmark = pytest.mark.simulated_time


@pytest.mark.parametrize("lag", [0.0, 4.75, 5.0, 7.0, 9.75, 100.0])
async def test_no_tree_expires_early_after_a_lag(lag: float) -> None:
    """A tree that begins after the loop was blocked still has at least its message timeout (L12)."""
    topology = Topology("lag", message_timeout=10.0, timeout_buckets=3, drain_timeout=0)
    spout = topology.spout("spout")
    topology.bolt("hold", Forget, spout.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        block(lag)
        began = now()
        with pytest.raises(TupleTimedOut):
            await (await running.emit(spout, 1))
        assert 10.0 <= now() - began <= 15.0


async def ticks_of(bolt: Ticks, *, before: float, lag: float, after: float) -> list[float]:
    topology = Topology("lag")
    topology.bolt("ticking", lambda: bolt, topology.spout("spout").shuffle(), tick=1.0)
    async with topology.run():
        await asyncio.sleep(before)
        block(lag)
        await asyncio.sleep(after)
    return bolt.ticks


async def test_missed_ticks_are_left_out() -> None:
    """Of the ticks that a blocked loop misses one is made up for, and the next one comes in its time."""
    ticks = await ticks_of(Ticks(), before=2.5, lag=5.25, after=1.5)
    assert ticks == [1.0, 2.0, 7.75, 8.0, 9.0]


async def test_ticks_do_not_drift() -> None:
    """A short lag puts off one tick, not those that follow."""
    assert await ticks_of(Ticks(), before=0.75, lag=0.5, after=2.0) == [1.25, 2.0, 3.0]


class LongTick(Ignore):
    """Ticks for twice as long as the interval."""

    def __init__(self, log: list[float]) -> None:
        self.log = log

    async def tick(self, out: Collector[None]) -> None:
        """Note the time, and take long."""
        self.log.append(now())
        await asyncio.sleep(0.5)


async def test_ticks_that_take_longer_than_their_interval_let_the_run_end() -> None:
    """Though each ends when the next one is due, there is rest between them, so that a finite run is finished."""

    log: list[float] = []
    topology = Topology("long ticks")
    numbers = topology.spout("numbers", [1])
    topology.bolt("slow", take_a_second, numbers.shuffle())
    topology.bolt("ticks", lambda: LongTick(log), numbers.shuffle(), tick=0.25)
    async with topology.run() as running:
        await running.finished()
    assert log == [0.25, 1.0]
    assert now() < 3


@pytest.mark.parametrize("message_timeout", [10.0, None])
async def test_an_idle_topology_has_no_timers(message_timeout: float | None) -> None:
    """Where nothing can expire nothing rotates (law S4), so that a stuck test is a deadlock instead of an endless
    one."""
    topology = Topology("idle", message_timeout=message_timeout)
    spout = topology.spout("spout")
    topology.bolt("ignore", ignore, spout.shuffle())

    async def wait_for_nothing() -> None:
        async with topology.run() as running:
            await (await running.emit(spout, 1))
            await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run_in_a_thread(wait_for_nothing())


def run_in_a_thread(main: Coroutine[object, object, None]) -> None:
    """On a simulated loop of its own."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(run_simulated, main).result()


async def test_rotations_begin_again_after_an_idle_time() -> None:
    """A message that comes after hours of idleness times out as any other: not early, and not more than half a
    timeout late."""
    topology = Topology("later", message_timeout=10.0, drain_timeout=0)
    spout = topology.spout("spout")
    topology.bolt("hold", Forget, spout.shuffle())
    async with topology.run() as running:
        for pause in (3600.0, 7.3, 12.5, 0.1):
            await asyncio.sleep(pause)
            began = now()
            with pytest.raises(TupleTimedOut):
                await (await running.emit(spout, 1))
            assert 10.0 <= now() - began <= 15.0
