"""The figures of a run while it lasts, and what it waits for."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from stormlet.cli.running.endings import Ending, Stage
from stormlet.cli.running.loops import tasks_of_threads
from stormlet.cli.running.meter import Frame, Meter
from stormlet.cli.units import duration
from stormlet.core.shortened import printable
from stormlet.model.plan import ACKER
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import ComponentStatistics
from stormlet.runtime.run.handle import Running

PATIENCE = 1.0
"""Seconds that a drain may take before it is reported what it waits for."""

SETTLED = 5.0
"""Seconds from the start on for which figures are no more than its own, so that no bottleneck is told."""
BOTTLENECK_EVERY = 2.0
"""Seconds between two looks for it, which take longer than a frame."""

MOST_TASKS = 4
"""The most tasks that one line names."""


class Observation:
    """A view's window on the run."""

    def __init__(self, running: Running, meter: Meter, ending: Ending, threaded: Collection[str]) -> None:
        self.ending = ending
        self._running = running
        self._meter = meter
        self._threaded = threaded
        self._began = time.monotonic()
        self._bottleneck = ""
        self._looked = 0.0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def frame(self) -> Frame:
        """The figures now; while it drains, nobody knows how much would have come, and nothing is to be faster."""
        frame = self._meter.frame(self._running.statistics(), self.seconds)
        if self.ending.stage is not Stage.RUNNING:
            return replace(frame, progress=None)
        return replace(frame, bottleneck=self._limited(frame.seconds))

    def _limited(self, seconds: float) -> str:
        if seconds - self._looked >= BOTTLENECK_EVERY and seconds >= SETTLED:
            self._looked = seconds
            found = self._running.bottleneck()
            self._bottleneck = "" if found is None else found.sentence
        return self._bottleneck

    def failures(self) -> Sequence[RepeatedFailure]:
        """The distinct failures so far; the one that happened last stands at the end."""
        return self._running.failures()

    def drain(self) -> str:
        """For how long it has been draining, and what for; empty while it is not, or has only begun to."""
        took = self.ending.draining_for
        if took is None or took < PATIENCE:
            return ""
        if self.ending.stage is Stage.CANCELLED:
            return f"cancelled: waits for {self._still_called()}"
        return f"draining for {duration(took)}: waits for {self._unsettled()}"

    def _unsettled(self) -> str:
        """Spouts whose messages have no outcome yet and bolts that hold tuples; after that, tasks that do not end."""
        components = self._running.statistics().components
        return "; ".join(_waits_for(components, self._meter.spouts)) or self._closing() or "tasks to end"

    def _still_called(self) -> str:
        threads = tasks_of_threads(self._threaded)
        if threads:
            return f"user code in the threads of {_names(threads)}"
        return self._closing() or "user code to return"

    def _closing(self) -> str:
        tasks = self._running.health().closing
        return f"close or cleanup of {_names(tasks)}" if tasks else ""


def _waits_for(components: Mapping[str, ComponentStatistics], spouts: Collection[str]) -> Iterator[str]:
    for name, each in components.items():
        if name in spouts and each.pending:
            yield f"{printable(name)}: {each.pending:,} pending"
        elif name != ACKER and each.pending:
            yield f"{printable(name)}: {_held(each.queued, each.pending - each.queued)}"


def _held(queued: int, taken: int) -> str:
    parts = [f"{queued:,} queued" if queued else "", f"{taken:,} in hand or held" if taken else ""]
    return ", ".join(part for part in parts if part)


def _names(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - MOST_TASKS} more" if len(tasks) > MOST_TASKS else ""
    return f"{', '.join(tasks[:MOST_TASKS])}{more}"
