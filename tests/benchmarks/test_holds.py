"""For how long the loop is held at a time."""

from __future__ import annotations

import asyncio

from benchmarks.holds import HoldMeter
from stormlet.bench.rounds import PauseMeter


def test_what_the_collector_takes_is_told_apart() -> None:
    """It is not in what the code takes."""
    meter = PauseMeter()
    holds = HoldMeter(meter)

    async def collect_between_two_turns() -> None:
        watching = asyncio.create_task(holds.watch())
        for seconds in (0.0, 0.0, 1000.0, 0.0):
            meter.seconds += seconds  # as if it had run
            await asyncio.sleep(0)
        watching.cancel()

    asyncio.run(collect_between_two_turns())
    assert list(holds.collecting) == [0.0, 1000.0, 0.0]
    assert [seconds < 0.0 for seconds in holds.seconds] == [False, True, False]  # as it was taken off
    assert holds.longest_collecting == 1000.0
