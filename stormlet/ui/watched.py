"""A running topology as the page and the REST see it: its numbers, taken once for all who ask at the same time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.drawing.drawing import Drawing, draw
from stormlet.model.description import SpoutSpec
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.report.health import Health
from stormlet.report.statistics import ComponentStatistics, Statistics, TaskStatistics
from stormlet.runtime.run.handle import Running
from stormlet.ui.views.graph import Graph, graph_of

FRESH: Final = 0.5
"""Seconds for which numbers are given again."""
NOTHING: Final = ComponentStatistics()
NO_TASKS: Final[Mapping[int, TaskStatistics]] = {}


class Reading(msgspec.Struct, frozen=True):
    """The counts at two moments; what happened between them is that of a window."""

    now: Statistics
    before: Statistics
    seconds: float
    """The time between them."""

    def component(self, id: str) -> Span:
        """Return the counts of a component."""
        return Span(
            self.now.components.get(id, NOTHING), self.before.components.get(id, NOTHING), self.seconds
        )

    def tasks(self, id: str) -> Mapping[int, Span]:
        """Return the counts of the tasks of a component."""
        now, before = (each.components.get(id, NOTHING).tasks or NO_TASKS for each in (self.now, self.before))
        return {task: Span(each, before.get(task, NOTHING), self.seconds) for task, each in now.items()}


class Span(msgspec.Struct, frozen=True):
    """The counts of a component or a task at both ends of a window."""

    now: TaskStatistics
    before: TaskStatistics
    seconds: float

    def count(self, name: str) -> int:
        """Return the number of these that came in the window."""
        return int(getattr(self.now, name) - getattr(self.before, name))

    def rate(self, name: str) -> float:
        """Return the number of these in a second."""
        return self.count(name) / self.seconds

    @property
    def execute_latency(self) -> float | None:
        """The mean seconds of one ``execute``."""
        executed, took = self.count("executed"), self.now.execute_seconds - self.before.execute_seconds
        return took / executed if executed and took else None

    @property
    def process_latency(self) -> float | None:
        """The mean seconds from ``execute`` to the ack of the input."""
        return self.execute_latency

    @property
    def complete_latency(self) -> float | None:
        """The mean seconds from emit to ack."""
        samples = self.count("complete_samples")
        took = self.now.complete_seconds - self.before.complete_seconds
        return took / samples if samples else None


class Watched:
    """One topology."""

    def __init__(self, id: str, running: Running, origins: Mapping[str, str] | None = None) -> None:
        """``origins`` has the places of settings that were laid over those of the topology."""
        self.id = id
        self.running = running
        self.name = running.plan.description.name
        self.origins = origins or {}
        self.began = datetime.now(UTC)
        self._loop = running.loop
        self._began = self._loop.time()
        self._epoch = self.began.timestamp() - self._began
        self._statistics: tuple[float, Statistics] | None = None
        self.again: dict[int, str] = {}
        """The fates of dead letters that were emitted again, by their numbers."""
        self.took = 0.0
        """Seconds that it took to take the numbers last."""

    @property
    def uptime(self) -> float:
        """Seconds since it is watched, which is from its start."""
        return self._loop.time() - self._began

    @property
    def health(self) -> Health:
        """Its state now."""
        return self.running.health()

    @cached_property
    def drawing(self) -> Drawing:
        """Its components and subscriptions."""
        return draw(self.running.plan)

    @cached_property
    def graph(self) -> Graph:
        """Its picture."""
        return graph_of(self.drawing)

    def statistics(self) -> Statistics:
        """Return its counts, at most half a second old."""
        now = self._loop.time()
        if self._statistics is None or now - self._statistics[0] >= FRESH:
            began = time.perf_counter()
            self._statistics = now, self.running.statistics()
            self.took = time.perf_counter() - began
        return self._statistics[1]

    def reading(self, window: str) -> Reading:
        """Return the counts of a window."""
        return Reading(self.statistics(), Statistics({}), max(self.uptime, 1e-9))

    def is_spout(self, id: str) -> bool:
        """Return True for a spout; neither a bolt nor the ackers are one."""
        return isinstance(self.running.plan.description.components.get(id), SpoutSpec)

    def tasks(self, id: str) -> int:
        """Return the number of tasks of a component, or of the ackers."""
        return len(self._plans(id))

    @property
    def components(self) -> list[str]:
        """The ids of all components, upstream first, and the ackers."""
        return [*(node.id for node in self.drawing.nodes), ACKER]

    def task_ids(self, id: str) -> list[int]:
        """Return the ids of the tasks of a component."""
        return [each.task for each in self._plans(id)]

    def task_names(self, id: str) -> list[str]:
        """Return the names of the tasks of a component, in the same order."""
        return [each.name for each in self._plans(id)]

    def _plans(self, id: str) -> Sequence[TaskPlan]:
        plan = self.running.plan
        return plan.ackers if id == ACKER else plan.tasks[id]

    def fill(self, id: str) -> float | None:
        """Return the part of its fullest queue that is taken; None for what has none."""
        tasks = self.statistics().components[id].tasks or NO_TASKS
        return (
            max((self.fill_of(id, each.queued) or 0.0 for each in tasks.values()), default=0.0)
            if self._has_queue(id)
            else None
        )

    def fill_of(self, id: str, queued: int) -> float | None:
        """Return the part of a queue that so many tuples take."""
        return (
            min(queued / self.running.configurations[id].queue_capacity, 1.0) if self._has_queue(id) else None
        )

    def _has_queue(self, id: str) -> bool:
        return id in self.running.plan.description.bolts

    def numbered_letters(self) -> list[tuple[int, DeadLetter]]:
        """Return the dead letters that are kept, each with its number since the start."""
        kept = self.running.dead_letters
        first = self.running.statistics().dead_letters - len(kept) + 1
        return list(enumerate(kept, max(first, 1)))

    def when(self, at: float) -> datetime:
        """Return the time of day of a time of the loop."""
        return datetime.fromtimestamp(self._epoch + at, UTC)
