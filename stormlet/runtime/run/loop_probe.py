"""A probe of the event loop: a timer that comes at random moments, and sees how late it is.

Moments at random see each state of the loop as often as its share of the time says, whatever rhythm the loop has. The
probe rests while nothing of the topology is under way, since idle costs nothing (law S4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from stormlet.core.histogram import Histogram
from stormlet.report.statistics import LoopStatistics
from stormlet.runtime.slices import Activity

SHORTEST, LONGEST = 0.025, 0.075
"""Seconds from one probe to the next."""
LATE = 0.002
"""Seconds from which a probe counts as late: the timers of a loop at rest may be 1 ms late."""
QUIET_PROBES = 2
"""Probes without any activity, after which it rests."""


class LoopProbe:
    """Measures the lag of the loop of one run."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float], random: Random, activity: Activity
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._random = random
        self._activity = activity
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._set = 0.0
        self._quiet = 0
        self._has_begun = False
        self._probes = 0
        self._late = 0
        self._lag = Histogram()
        self._seconds = 0.0

    def statistics(self, own_seconds: float) -> LoopStatistics | None:
        """Counts since the start; None if it was never started. The tasks have run for so many seconds on the loop."""
        if not self._has_begun:
            return None
        return LoopStatistics(self._probes, self._late, self._lag.copy(), own_seconds, self._seconds)

    async def watch(self) -> None:
        """Probe the loop until this is cancelled."""
        self._has_begun = True
        self._set_timer()
        try:
            await self._loop.create_future()
        finally:
            self._activity.call_when_stirred(None)
            if self._timer is not None:
                self._timer.cancel()

    def _set_timer(self) -> None:
        delay = self._random.uniform(SHORTEST, LONGEST)
        # By the clock of the measurement: that of some loops counts whole milliseconds.
        self._set = self._clock()
        self._due = self._set + delay
        self._timer = self._loop.call_later(delay, self._probe)

    def _probe(self) -> None:
        now = self._clock()
        late = max(0.0, now - self._due)
        self._probes += 1
        self._late += late > LATE
        self._lag.add(late)
        self._seconds += now - self._set
        self._quiet = 0 if self._activity.busy else self._quiet + 1
        if self._quiet >= QUIET_PROBES:
            self._timer = None
            self._activity.call_when_stirred(self._stirred)
        else:
            self._set_timer()

    def _stirred(self) -> None:
        self._quiet = 0
        self._set_timer()
