"""For how long the event loop is held at a time."""

from __future__ import annotations

import asyncio
import time
from array import array

from stormlet.bench.collector import PauseMeter


class HoldMeter:
    """Takes a turn in every iteration of the loop.

    It measures the CPU time of the thread between its turns, without the garbage collector: what other processes take,
    and what the collector takes, is not held by anybody here.
    """

    def __init__(self, meter: PauseMeter) -> None:
        self._meter = meter
        self.seconds = array("d")
        """One for each turn."""

    @property
    def longest(self) -> float:
        """Seconds."""
        return max(self.seconds, default=0.0)

    async def watch(self) -> None:
        """Until it is cancelled."""
        before, collected = time.thread_time(), self._meter.seconds
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.seconds.append(now - before - (self._meter.seconds - collected))
            before, collected = now, self._meter.seconds
