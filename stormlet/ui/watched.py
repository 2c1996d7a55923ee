"""A running topology as the page and the REST see it: its numbers, taken once for all who ask at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.drawing.drawing import Drawing, draw
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.report.bottleneck import Bottleneck
from stormlet.report.figures import Figures, Percentiles, TaskFigures
from stormlet.report.health import Health
from stormlet.report.series import Point
from stormlet.report.statistics import Statistics
from stormlet.report.steps import Steps, at_once
from stormlet.report.windows import Window
from stormlet.runtime.run.handle import Running
from stormlet.runtime.run.monitor import Look
from stormlet.ui.views.graph import MOST, Graph, graph_of

T = TypeVar("T")

FRESH: Final = 0.5
"""Seconds for which figures are given again."""
SLOW: Final = 3.0
"""Seconds for which numbers are given again that change seldom, or have no place of their own in the figures."""
DAY: Final = 3600.0
"""Seconds of a run from which on the chart of all of it is that of a day."""


class Span(msgspec.Struct, frozen=True):
    """The figures of a component or a task in a window."""

    figures: TaskFigures
    seconds: float
    """The real length of the window."""

    def rate(self, name: str) -> float:
        """Return the number of these in a second."""
        return float(getattr(self.figures, name))

    def count(self, name: str) -> int:
        """Return the number of these in the window; exact, as a rate is a count over the same length."""
        return round(self.rate(name) * self.seconds)

    @property
    def execute(self) -> float | None:
        """The mean seconds of one ``execute``."""
        return mean(self.figures.execute)

    @property
    def process(self) -> float | None:
        """The mean seconds from ``execute`` to the ack of the input."""
        return mean(self.figures.process)

    @property
    def complete(self) -> float | None:
        """The mean seconds from the emit of a message to its ack."""
        return mean(self.figures.complete)


def mean(times: Percentiles | None) -> float | None:
    """Return the mean, if there is one."""
    return None if times is None else times.mean


class Reading(msgspec.Struct, frozen=True):
    """The figures of a window that ends now, and the counts since the start."""

    figures: Figures
    now: Statistics

    def component(self, id: str) -> Span:
        """Return the figures of a component."""
        return Span(self.figures.components[id], self.figures.seconds)

    def tasks(self, id: str) -> Mapping[int, Span]:
        """Return the figures of the tasks of a component."""
        seconds = self.figures.seconds
        return {task: Span(each, seconds) for task, each in self.figures.components[id].tasks.items()}


class Watched:
    """One topology."""

    def __init__(
        self, id: str, running: Running, origins: Mapping[str, str] | None = None, label: str = ""
    ) -> None:
        """``origins`` has the places of settings that were laid over those of the topology. ``label`` is its name in
        metrics, which no other has."""
        self.id = id
        self.label = label or id
        self.running = running
        self.name = running.plan.description.name
        self.origins = origins or {}
        self.again: dict[int, str] = {}
        """The fates of dead letters that were emitted again, by their numbers."""
        self._loop = running.loop
        self._began = self._loop.time() - running.figures("all").seconds
        self._epoch = time.time() - self._loop.time()
        self._taken: dict[Hashable, tuple[float, Any]] = {}

    @property
    def uptime(self) -> float:
        """Seconds since its start."""
        return self._loop.time() - self._began

    @property
    def began(self) -> datetime:
        """The time of its start."""
        return self.when(self._began)

    def when(self, at: float) -> datetime:
        """Return the time of day of a time of the loop."""
        return datetime.fromtimestamp(self._epoch + at, UTC)

    @property
    def health(self) -> Health:
        """Its state now."""
        return self.running.health()

    @cached_property
    def drawing(self) -> Drawing:
        """Its components and subscriptions; seconds are gone until thousands are drawn."""
        return draw(self.running.plan)

    @property
    def has_picture(self) -> bool:
        """True if it is small enough for one."""
        return len(self.running.plan.tasks) <= MOST

    @cached_property
    def graph(self) -> Graph:
        """Its picture."""
        return graph_of(self.running.plan, lambda: self.drawing)

    # Numbers, which cost time.

    def statistics(self) -> Statistics:
        """Return its counts since the start, at most some seconds old."""
        return self._fresh("statistics", SLOW, self.running.statistics)

    def reading(self, window: str, component: str = "") -> Reading:
        """Return the figures of a window; with the latencies of the tasks of this component."""
        return at_once(self.reading_in_steps(window, component))

    def reading_in_steps(self, window: str, component: str = "") -> Steps[Reading]:
        """Do the same in steps."""
        look = yield from self._look(window, component, FRESH)
        return Reading(look.figures, look.statistics)

    def bottleneck(self, window: str) -> Bottleneck | None:
        """Return what limits it."""
        return at_once(self._look(window, "", SLOW)).bottleneck

    def _look(self, window: str, component: str, seconds: float) -> Steps[Look]:
        what = ("look", window, component)
        if not self._is_fresh(what, seconds):
            look = yield from self.running.monitor.look(cast("Window", window), component)
            for same in (what, ("look", window, ""), "statistics"):
                self._keep(same, look.statistics if same == "statistics" else look)
        return cast("Look", self._taken[what][1])

    def series(self, window: str, component: str = "") -> Sequence[Point]:
        """Return the points of a chart of a window: a new one comes all ten seconds, or all ten minutes."""
        span: Literal["1h", "1d"] = "1d" if window == "all" and self.uptime > DAY else "1h"
        return self._fresh(("series", span, component), SLOW, lambda: self.running.series(span, component))

    def _fresh(self, what: Hashable, seconds: float, take: Callable[[], T]) -> T:
        if not self._is_fresh(what, seconds):
            self._keep(what, take())
        return cast("T", self._taken[what][1])

    def _is_fresh(self, what: Hashable, seconds: float) -> bool:
        return what in self._taken and self._loop.time() - self._taken[what][0] < seconds

    def _keep(self, what: Hashable, value: object) -> None:
        now = self._loop.time()
        self._taken = {each: kept for each, kept in self._taken.items() if now - kept[0] < SLOW}
        self._taken[what] = now, value

    # What does not change.

    def is_spout(self, id: str) -> bool:
        """Return True for a spout; neither a bolt nor the ackers are one."""
        return id in self.running.plan.description.spouts

    @cached_property
    def components(self) -> list[str]:
        """The ids of all components, upstream first, and the ackers."""
        return [*(id for group in self.running.plan.order for id in group), ACKER]

    def tasks(self, id: str) -> Sequence[TaskPlan]:
        """Return the tasks of a component, or the ackers."""
        plan = self.running.plan
        return plan.ackers if id == ACKER else plan.tasks[id]

    def fill(self, id: str, queued: Sequence[int]) -> float | None:
        """Return the part of the fullest of these queues that is taken; None for what has no queue."""
        if id not in self.running.plan.description.bolts:
            return None
        return min(max(queued) / self.running.configurations[id].queue_capacity, 1.0)

    def numbered_letters(self) -> list[tuple[int, DeadLetter]]:
        """Return the dead letters that are kept, each with its number since the start."""
        kept = self.running.dead_letters
        first = self.running.statistics().dead_letters - len(kept) + 1
        return list(enumerate(kept, max(first, 1)))
