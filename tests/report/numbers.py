"""Statistics made by hand, for the tests of what is derived from them."""

from __future__ import annotations

from collections.abc import Sequence

from stormlet.core.histogram import Histogram
from stormlet.report.statistics import EdgeStatistics, Statistics, TaskStatistics, of_component


def times(*seconds: float) -> Histogram:
    """A histogram of these times."""
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    return histogram


def statistics(**components: TaskStatistics | Sequence[TaskStatistics]) -> Statistics:
    """Statistics of components with one task or several."""
    tasks = {id: [each] if isinstance(each, TaskStatistics) else each for id, each in components.items()}
    return Statistics({id: of_component(dict(enumerate(each, 1))) for id, each in tasks.items()})


def spent(
    seconds: float = 100.0,
    *,
    executing: float = 0.0,
    awaiting: float = 0.0,
    blocked: float = 0.0,
    limited: float = 0.0,
    **counts: int,
) -> TaskStatistics:
    """A task that has spent these parts of so many seconds."""
    parts = {"executing": executing, "awaiting": awaiting, "blocked": blocked, "limited": limited}
    return TaskStatistics(
        uptime=seconds,
        **counts,
        **{f"{name}_seconds": part * seconds for name, part in parts.items()},
    )


def edge(
    producer: str,
    consumer: str,
    grouping: str = "shuffle",
    *,
    transferred: int = 0,
    queued: int = 0,
    capacity: int = 1024,
    fullest: float = 0.0,
    waited_seconds: float = 0.0,
) -> EdgeStatistics:
    """The edge of a default stream."""
    return EdgeStatistics(
        producer, "default", consumer, grouping, transferred, queued, capacity, fullest, waited_seconds
    )
