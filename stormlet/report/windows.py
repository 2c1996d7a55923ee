"""The last minute, ten minutes and hour of a run, from few snapshots; and what charts show of it.

Counts only grow, so that a window needs one earlier snapshot and no more. Each of three rings keeps so many of them
that one is always about as old as its window is long. The first is the start, when nothing had been counted: until a
window is full it reaches back to there, and its figures say how long it really is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from stormlet.report.figures import Figures, figures_in_steps
from stormlet.report.series import Point, Series, points_of
from stormlet.report.snapshots import Snapshot, snapshot_of
from stormlet.report.statistics import Statistics
from stormlet.report.steps import Steps

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
        self.detailed = detailed
        self._length = step * steps
        self._kept = deque([(0.0, Snapshot(START, (), detailed=detailed))], maxlen=steps + 1)

    def is_due(self, at: float) -> bool:
        """True if a step has begun since the last snapshot; steps are counted from the start."""
        return (at + EARLY) // self.step > (self._kept[-1][0] + EARLY) // self.step

    def keep(self, at: float, snapshot: Snapshot) -> None:
        """Keep a snapshot, and forget the oldest."""
        self._kept.append((at, snapshot))

    @property
    def last(self) -> tuple[float, Snapshot]:
        """The latest snapshot, and its moment."""
        return self._kept[-1]

    def before(self, at: float) -> tuple[float, Snapshot]:
        """The snapshot whose age comes next to the length of the window, and its moment."""
        return min(self._kept, key=lambda each: abs(at - each[0] - self._length))


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

    def feed(self, at: float, statistics: Statistics) -> Steps[None]:
        """Take a sample, if one is due; to be called every :data:`STEP` seconds, or less often. All that is shown
        changes at the last step; until then no other sample may be begun."""
        points: list[tuple[Series, Mapping[str, Sequence[float]]]] = []
        for ring, series in self._series.values():
            if ring.is_due(at):
                points.append((series, (yield from self._points(ring, at, statistics))))
        kept: list[tuple[Ring, Snapshot]] = []
        for ring in self._rings.values():
            if ring.is_due(at):
                kept.append((ring, (yield from snapshot_of(statistics, detailed=ring.detailed))))
        for series, columns in points:
            series.add(at, columns)
        for ring, snapshot in kept:
            ring.keep(at, snapshot)

    def _points(self, ring: Ring, at: float, statistics: Statistics) -> Steps[Mapping[str, Sequence[float]]]:
        then, snapshot = ring.last
        before = yield from snapshot.totals()
        figures = yield from figures_in_steps(before, statistics, at - then, "", ())
        return points_of(figures, self._spouts)

    def figures(
        self, window: Window, at: float, statistics: Statistics, times_of: Collection[str] = ()
    ) -> Steps[Figures]:
        """Return the figures of a window that ends now; latencies of single tasks are those of the components
        ``times_of``. Raises :class:`ValueError` for an unknown window."""
        if window == "all":
            return (yield from figures_in_steps(START, statistics, at, window, times_of))
        if window not in self._rings:
            raise ValueError(f"there is no window {window!r}; there are 1m, 10m, 1h and all")
        then, snapshot = self._rings[window].before(at)
        before = yield from snapshot.statistics(times_of)
        return (yield from figures_in_steps(before, statistics, at - then, window, times_of))

    def series(self, span: Span = "1h", component: str = "") -> Sequence[Point]:
        """Return what charts show: an hour in steps of ten seconds, or a day in steps of ten minutes; oldest first.
        Without a component it is that of the topology. Raises :class:`ValueError` for another span, and
        :class:`KeyError` for a component that there is not."""
        if span not in self._series:
            raise ValueError(f"there is no series of {span!r}; there are 1h and 1d")
        return self._series[span][1].points(component)
