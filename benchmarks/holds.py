"""The times for which the event loop is held."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable

from stormlet.bench.rounds import PauseMeter


class HoldMeter:
    """Takes a turn in every iteration of the loop.

    It measures the CPU time of the thread between its turns, as what other processes take is not held by anybody here,
    unless it is given another clock; and apart from it what the garbage collector takes, which looks at all that the
    process has.
    """

    def __init__(self, meter: PauseMeter, clock: Callable[[], float] = time.thread_time) -> None:
        self._meter = meter
        self._clock = clock
        self.seconds = array("d")
        """One for each turn, without the collector."""
        self.collecting = array("d")
        """The collector's part of each."""

    @property
    def longest(self) -> float:
        """Seconds without the collector."""
        return max(self.seconds, default=0.0)

    @property
    def longest_collecting(self) -> float:
        """Seconds of the collector in one turn."""
        return max(self.collecting, default=0.0)

    async def watch(self) -> None:
        """Until it is cancelled."""
        before, collected = self._clock(), self._meter.seconds
        while True:
            await asyncio.sleep(0)
            now = self._clock()
            self.collecting.append(self._meter.seconds - collected)
            self.seconds.append(now - before - self.collecting[-1])
            before, collected = now, self._meter.seconds
