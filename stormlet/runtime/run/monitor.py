"""The figures of a run over time: one timer takes samples of its statistics, and nothing is done for a tuple."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from stormlet.model.configuration import Configuration
from stormlet.model.planning import Plan
from stormlet.report.bottleneck import Bottleneck, bottleneck
from stormlet.report.failures import log_fields
from stormlet.report.figures import Figures
from stormlet.report.limits import ComponentFacts
from stormlet.report.series import Point
from stormlet.report.statistics import Statistics
from stormlet.report.windows import STEP, Span, Window, Windows

logger = logging.getLogger(__name__)


class Monitor:
    """Keeps the past of a run. A sample is taken when one is due, by its timer or by whoever asks for figures: on
    simulated time a timer that is always there would hide a deadlock."""

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        statistics: Callable[[], Statistics],
        facts: Mapping[str, ComponentFacts],
    ) -> None:
        self._name = name
        self._loop = loop
        self._statistics = statistics
        self._facts = facts
        self._windows = Windows([id for id, each in facts.items() if each.is_spout])
        self._began: float | None = None
        self._ended: tuple[float, Statistics] | None = None

    async def run(self) -> None:
        """Take samples until cancelled."""
        try:
            while True:
                await asyncio.sleep(STEP - self._seconds % STEP)
                self._now()
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
        self._ended = self._now()

    def figures(self, window: Window, component: str = "") -> Figures:
        """Return the figures of a window that ends now, or has ended with the run; with the latencies of the tasks of
        this component."""
        return self._windows.figures(window, *self._now(), (component,))

    def bottleneck(self, window: Window) -> Bottleneck | None:
        """Return the bottleneck in a window."""
        return bottleneck(self.figures(window), self._facts)

    def series(self, span: Span, component: str) -> Sequence[Point]:
        """Return the points of a chart."""
        self._now()
        return self._windows.series(span, component)

    @property
    def _seconds(self) -> float:
        return 0.0 if self._began is None else self._loop.time() - self._began

    def _now(self) -> tuple[float, Statistics]:
        if self._ended is not None:
            return self._ended
        at, statistics = self._seconds, self._statistics()
        if self._windows.is_due(at):
            self._windows.feed(at, statistics)
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
