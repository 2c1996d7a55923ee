"""The clocks of a topology, on a loop that lags."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Bolt, Collector, Topology, Tuple, TupleTimedOut
from stormlet.testing.loop import SimulatedLoop
from tests.helpers import now

pytestmark = pytest.mark.simulated_time


def block(seconds: float) -> None:
    """Take so many seconds of the running loop's time at once, as code that blocks it does."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    loop._clock.now += seconds  # pyright: ignore[reportPrivateUsage] - nobody else can make simulated time lag


class Hold(Bolt[int, None]):
    """Never settles anything."""

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Nothing."""


@pytest.mark.parametrize("lag", [0.0, 4.75, 5.0, 7.0, 9.75, 100.0])
async def test_no_tree_expires_early_after_a_lag(lag: float) -> None:
    """A tree that begins after the loop was blocked still has at least its message timeout (L12)."""
    topology = Topology("lag", message_timeout=10.0, timeout_buckets=3, drain_timeout=0)
    spout = topology.spout("spout")
    topology.bolt("hold", Hold, spout.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        block(lag)
        began = now()
        with pytest.raises(TupleTimedOut):
            await (await running.emit(spout, 1))
        assert 10.0 <= now() - began <= 15.0


class Ticking(Bolt[int, None]):
    """Notes when its ticks come."""

    def __init__(self) -> None:
        self.ticks: list[float] = []

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Never called."""

    def tick(self, out: Collector[None]) -> None:
        """Note the time."""
        self.ticks.append(now())


async def ticks_of(bolt: Ticking, *, before: float, lag: float, after: float) -> list[float]:
    topology = Topology("lag")
    topology.bolt("ticking", lambda: bolt, topology.spout("spout").shuffle(), tick=1.0)
    async with topology.run():
        await asyncio.sleep(before)
        block(lag)
        await asyncio.sleep(after)
    return bolt.ticks


async def test_missed_ticks_are_left_out() -> None:
    """Of the ticks that a blocked loop misses one is made up for, and the next one comes in its time."""
    ticks = await ticks_of(Ticking(), before=2.5, lag=5.25, after=1.5)
    assert ticks == [1.0, 2.0, 7.75, 8.0, 9.0]


async def test_ticks_do_not_drift() -> None:
    """A short lag puts off one tick, not those that follow."""
    assert await ticks_of(Ticking(), before=0.75, lag=0.5, after=2.0) == [1.25, 2.0, 3.0]
