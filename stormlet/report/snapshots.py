"""Statistics that are kept for a while, made small: of counts and times nothing but the numbers."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from copy import copy
from typing import Any, Final, TypeAlias

import msgspec

from stormlet.core.histogram import Histogram
from stormlet.report.statistics import (
    MERGED,
    SUMMED,
    ComponentStatistics,
    Statistics,
    TaskStatistics,
)

SHORT_COUNTS: Final = 2**32
Place: TypeAlias = tuple[str, int | None]
"""A component and one of its tasks, or None for all."""


class PackedTimes:
    """A histogram in two arrays, which take a tenth of its dict. Its bounds have five binary digits: short floats are
    exact."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, histogram: Histogram) -> None:
        counts = histogram.counts
        self._bounds = array("f", counts)
        self._counts = array("I" if sum(counts.values()) < SHORT_COUNTS else "Q", counts.values())
        self._total = histogram.total

    def unpacked(self) -> Histogram:
        """Return the histogram as it was."""
        return Histogram(dict(zip(self._bounds, self._counts, strict=True)), self._total)


class PackedTask:
    """Counts of a task or component, and its histograms."""

    __slots__ = ("_numbers", "_times")

    def __init__(self, task: TaskStatistics) -> None:
        self._numbers = array("d", [getattr(task, name) for name in SUMMED])
        times = {name: getattr(task, name) for name in MERGED}
        self._times = {name: PackedTimes(each) for name, each in times.items() if each is not None}

    def without_times(self) -> PackedTask:
        """Return the counts alone."""
        other = copy(self)
        other._times = {}
        return other

    def fields(self, *, with_times: bool) -> dict[str, Any]:
        """Return what :class:`~stormlet.report.statistics.TaskStatistics` is made of, to be taken from later ones."""
        times = {name: each.unpacked() for name, each in self._times.items()} if with_times else {}
        return {**dict(zip(SUMMED, self._numbers, strict=True)), **times}


class Snapshot:
    """The part of statistics that a later difference needs."""

    def __init__(self, statistics: Statistics) -> None:
        components = statistics.components
        self._components = {id: PackedTask(each) for id, each in components.items()}
        self._tasks = {
            id: {task: PackedTask(own) for task, own in (each.tasks or {}).items()}
            for id, each in components.items()
        }
        self._streams = {id: each.streams for id, each in components.items()}
        self._edges = statistics.edges
        self._loop = statistics.loop and msgspec.structs.replace(
            statistics.loop, lag=statistics.loop.lag.copy()
        )

    def without_times_of_tasks(self) -> Snapshot:
        """Return a smaller one, which has the rest in common with this."""
        other = copy(self)
        other._tasks = {
            id: {task: each.without_times() for task, each in tasks.items()}
            for id, tasks in self._tasks.items()
        }
        return other

    def statistics(self, times_of: Collection[str] = ()) -> Statistics:
        """Return the statistics, for a difference; with the times of the tasks of these components."""
        components = {
            id: self._component(id, each, with_times=id in times_of) for id, each in self._components.items()
        }
        return Statistics(components, edges=self._edges, loop=self._loop)

    def totals(self) -> Statistics:
        """Return the same without tasks and edges, for a difference that needs none."""
        return Statistics(
            {id: ComponentStatistics(**each.fields(with_times=True)) for id, each in self._components.items()}
        )

    def _component(self, id: str, packed: PackedTask, *, with_times: bool) -> ComponentStatistics:
        tasks = {
            task: TaskStatistics(**each.fields(with_times=with_times))
            for task, each in self._tasks[id].items()
        }
        return ComponentStatistics(**packed.fields(with_times=True), tasks=tasks, streams=self._streams[id])
