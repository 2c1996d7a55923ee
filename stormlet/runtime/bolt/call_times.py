"""The times of the calls of one bolt task: how long inputs are executed, and how long until they are settled."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stormlet.core.histogram import Histogram
from stormlet.core.tuples import HELD, LOST
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.wire.collector import AnyTuple


class CallTimes:
    """Execute and process times."""

    def __init__(self, clock: Callable[[], float], *, follows: bool) -> None:
        """``follows`` says if inputs may be settled later than their calls return; then :meth:`follow` is to be
        called."""
        self.seconds = 0.0
        """The sum of the execute times."""
        self.follows = follows
        self.execute = Histogram()
        self.process = Histogram()
        """Of inputs whose settling was waited for."""
        self._clock = clock
        self._followed: AnyTuple | None = None
        self._since = 0.0

    def added_to(self, counts: TaskStatistics) -> TaskStatistics:
        """Return these counts with the times."""
        self.look()
        execute = self.execute.copy()
        return msgspec.structs.replace(
            counts,
            execute_seconds=self.seconds,
            execute_times=execute,
            process_times=self.process.copy() if self.follows else execute,
        )

    def executed(self, seconds: float, count: int) -> None:
        """So many inputs were executed together, in this time; of a call for none of them, the time alone counts."""
        self.seconds += seconds
        if count:
            # Their mean: a look at the clock for each would cost a twentieth of an acked tuple. One that takes long is
            # soon executed alone, as the pace of its task sees to, or ends a pause and is counted by itself; of those
            # that await nothing, one within a pause may be as long as a slice.
            self.execute.add(seconds / count, count)

    def follow(self, tup: AnyTuple | None, seconds: float) -> None:
        """Wait until this input is settled, which was executed in so many seconds until now, unless another one is
        waited for."""
        # One at a time, for the same reason.
        if self._followed is None and tup is not None:
            self._followed, self._since = tup, self._clock() - seconds
        self.look()

    def look(self) -> None:
        """Inputs may have been settled since the last look."""
        tup = self._followed
        if tup is not None and tup.state > HELD:
            self._followed = None
            if tup.state != LOST:
                self.process.add(self._clock() - self._since)


class Ticks:
    """The ticks of one bolt task."""

    PAUSE = 0.05
    """The part of an interval that must pass before the next tick, after one that took longer than the interval."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._seconds = 0.0
        self._ended = 0.0

    def ticked(self, began: float) -> None:
        """A tick that began then is over."""
        self._ended = self._time()
        self._seconds = self._ended - began

    def has_just_ended(self, interval: float) -> bool:
        """True if the last one took longer than the interval and has only just ended."""
        return self._seconds >= interval and self._time() - self._ended < interval * self.PAUSE
