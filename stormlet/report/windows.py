"""The last minute, ten minutes and hour of a run, from few snapshots; and what charts show of it.

Counts only grow, so that a window needs one earlier snapshot and no more. Each of three rings keeps so many of them
that one is always about as old as its window is long. The first is the start, when nothing had been counted: until a
window is full it reaches back to there, and its figures say how long it really is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from stormlet.report.figures import Figures, figures_between
from stormlet.report.series import Point, Series
from stormlet.report.snapshots import Snapshot
from stormlet.report.statistics import Statistics

Window: TypeAlias = Literal["1m", "10m", "1h", "all"]
Span: TypeAlias = Literal["1h", "1d"]

STEP: Final = 10.0
"""Seconds between two samples."""
EARLY: Final = 0.01
"""Seconds by which a timer may come too early for its step."""
START: Final = Statistics({})


class Ring:
    """The snapshots of one window, a step apart."""

    def __init__(self, step: float, steps: int, *, detailed: bool) -> None:
        self.step = step
        self._length = step * steps
        self._detailed = detailed
        self._kept = deque([(0.0, Snapshot(START))], maxlen=steps + 1)

    def is_due(self, at: float) -> bool:
        """True if a step has begun since the last snapshot; steps are counted from the start."""
        return (at + EARLY) // self.step > (self._kept[-1][0] + EARLY) // self.step

    def keep(self, at: float, snapshot: Snapshot) -> None:
        """Keep a snapshot, and forget the oldest."""
        self._kept.append((at, snapshot if self._detailed else snapshot.without_times_of_tasks()))

    def last(self) -> tuple[float, Statistics]:
        """The totals of the latest snapshot, and its moment."""
        at, snapshot = self._kept[-1]
        return at, snapshot.totals()

    def before(self, at: float, times_of: Collection[str]) -> tuple[float, Statistics]:
        """The snapshot whose age comes next to the length of the window; with the times of the tasks of these
        components."""
        then, snapshot = min(self._kept, key=lambda each: abs(at - each[0] - self._length))
        return then, snapshot.statistics(times_of)


class Windows:
    """The past of one run. Moments are seconds since its start."""

    def __init__(self, spouts: Collection[str]) -> None:
        self._spouts = spouts
        self._rings: Mapping[Window, Ring] = {
            "1m": Ring(STEP, 6, detailed=True),
            "10m": Ring(60.0, 10, detailed=False),
            "1h": Ring(600.0, 6, detailed=False),
        }
        self._series: Mapping[Span, tuple[Ring, Series]] = {
            "1h": (self._rings["1m"], Series(360)),
            "1d": (self._rings["1h"], Series(144)),
        }

    def is_due(self, at: float) -> bool:
        """True if a sample should be taken."""
        return self._rings["1m"].is_due(at)

    def feed(self, at: float, statistics: Statistics) -> None:
        """Take a sample; to be called every :data:`STEP` seconds, or less often."""
        for ring, series in self._series.values():
            if ring.is_due(at):
                then, before = ring.last()
                figures = figures_between(before, statistics, at - then)
                series.add(
                    at, figures, [each for id, each in figures.components.items() if id in self._spouts]
                )
        if self.is_due(at):  # if a longer step has begun, a shortest one has, too
            snapshot = Snapshot(statistics)
            for ring in self._rings.values():
                if ring.is_due(at):
                    ring.keep(at, snapshot)

    def figures(
        self, window: Window, at: float, statistics: Statistics, times_of: Collection[str] = ()
    ) -> Figures:
        """Return the figures of a window that ends now; latencies of single tasks are those of the components
        ``times_of``. Raises :class:`ValueError` for an unknown window."""
        if window == "all":
            return figures_between(START, statistics, at, window, times_of=times_of)
        if window not in self._rings:
            raise ValueError(f"there is no window {window!r}; there are 1m, 10m, 1h and all")
        then, before = self._rings[window].before(at, times_of)
        return figures_between(before, statistics, at - then, window, times_of=times_of)

    def series(self, span: Span = "1h", component: str = "") -> Sequence[Point]:
        """Return what charts show: an hour in steps of ten seconds, or a day in steps of ten minutes; oldest first.
        Without a component it is that of the topology. Raises :class:`ValueError` for another span, and
        :class:`KeyError` for a component that there is not."""
        if span not in self._series:
            raise ValueError(f"there is no series of {span!r}; there are 1h and 1d")
        return self._series[span][1].points(component)
