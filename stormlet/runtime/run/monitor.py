"""The figures of a run over time: one timer takes samples of its statistics, and nothing is done for a tuple."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from stormlet.model.configuration import Configuration
from stormlet.model.planning import Plan
from stormlet.report.bottleneck import Bottleneck, bottleneck
from stormlet.report.failures import log_fields
from stormlet.report.figures import Figures
from stormlet.report.limits import ComponentFacts
from stormlet.report.series import Point
from stormlet.report.statistics import Statistics
from stormlet.report.steps import Steps, at_once
from stormlet.report.windows import STEP, Span, Window, Windows
from stormlet.runtime.run.sliced import in_slices

logger = logging.getLogger(__name__)


class Look(msgspec.Struct, frozen=True):
    """All that a page wants to know; what it says of one component is of one moment."""

    statistics: Statistics
    figures: Figures
    bottleneck: Bottleneck | None


class Monitor:
    """Keeps the past of a run. A sample is taken when one is due, by its timer or by whoever asks for figures: on
    simulated time a timer that is always there would hide a deadlock."""

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        statistics: Callable[[], Steps[Statistics]],
        facts: Mapping[str, ComponentFacts],
    ) -> None:
        self._name = name
        self._loop = loop
        self._statistics = statistics
        self._facts = facts
        self._windows = Windows([id for id, each in facts.items() if each.is_spout])
        self._began: float | None = None
        self._ended: tuple[float, Statistics] | None = None
        self._is_fed = False
        """True while a sample is taken: another one may be begun before its last step."""

    async def run(self) -> None:
        """Take samples until cancelled, of large topologies in slices."""
        try:
            while True:
                await asyncio.sleep(STEP - self._seconds % STEP)
                await in_slices(self.now())
        except Exception:
            # A fault of what only looks on must not end what it looks at.
            logger.exception(
                "figures of topology %r are no longer taken; the run goes on",
                self._name,
                extra=log_fields(self._name),
            )
            await self._loop.create_future()

    def begin(self) -> None:
        """The run has started: the time before, in which components are prepared, is in no window."""
        self._began = self._loop.time()

    def end(self) -> None:
        """The run is over: its last figures stay."""
        self._ended = at_once(self.now())

    def figures(self, window: Window, component: str = "") -> Steps[Figures]:
        """Return the figures of a window that ends now, or has ended with the run; with the latencies of the tasks of
        this component."""
        at, statistics = yield from self.now()
        return (yield from self._windows.figures(window, at, statistics, (component,)))

    def look(self, window: Window, component: str = "") -> Steps[Look]:
        """Return the statistics, and the figures and the bottleneck that follow from them."""
        at, statistics = yield from self.now()
        figures = yield from self._windows.figures(window, at, statistics, (component,))
        return Look(statistics, figures, self.bottleneck(figures))

    def bottleneck(self, figures: Figures) -> Bottleneck | None:
        """Return the bottleneck that these figures show."""
        return bottleneck(figures, self._facts)

    def series(self, span: Span, component: str) -> Sequence[Point]:
        """Return the points of a chart."""
        if self._ended is None and self._windows.is_due(self._seconds):
            at_once(self.now())
        return self._windows.series(span, component)

    @property
    def _seconds(self) -> float:
        return 0.0 if self._began is None else self._loop.time() - self._began

    def now(self) -> Steps[tuple[float, Statistics]]:
        """Return the seconds since the start and the statistics, of which a sample is taken if one is due."""
        if self._ended is not None:
            return self._ended
        at = self._seconds
        statistics = yield from self._statistics()
        if not self._is_fed and self._windows.is_due(at):
            self._is_fed = True
            try:
                yield from self._windows.feed(at, statistics)
            finally:
                self._is_fed = False
        return at, statistics


def facts_of(
    plan: Plan, configurations: Mapping[str, Configuration], *, has_threads: bool = True
) -> Mapping[str, ComponentFacts]:
    """Return the facts that the search for a bottleneck must know of each spout and bolt. Without threads, as on
    simulated time, code of bolts runs on the loop whatever their executor is (law B9)."""
    description = plan.description
    spouts = {
        id: ComponentFacts(
            is_spout=True,
            parallelism=len(plan.tasks[id]),
            max_pending=configurations[id].max_spout_pending,
        )
        for id in description.spouts
    }
    bolts = {
        id: ComponentFacts(
            parallelism=len(plan.tasks[id]),
            concurrency=spec.concurrency,
            has_threads=has_threads and spec.executor == "thread",
            by_epochs=spec.by_epochs or spec.rows is not None,
        )
        for id, spec in description.bolts.items()
    }
    return {**spouts, **bolts}
