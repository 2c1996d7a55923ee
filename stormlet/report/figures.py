"""Figures of a window: rates, shares of time and latencies, as the differences of two statistics.

All that is counted only grows, so that one subtraction at the end of a window is all that a figure costs; nothing is
done for a tuple. A figure that cannot be known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import ceil

import msgspec

from stormlet.core.histogram import Histogram
from stormlet.report.statistics import (
    AgedTrees,
    ComponentStatistics,
    EdgeStatistics,
    EpochStatistics,
    LoopStatistics,
    Statistics,
    StreamStatistics,
    TaskStatistics,
)
from stormlet.report.steps import Steps, at_once, each_of


class Shares(msgspec.Struct, frozen=True):
    """The parts of a task's time; they add up to 1. Those of a component are the means over its tasks."""

    executing: float = 0.0
    """Its own code runs: on the loop, or in its threads."""
    awaiting: float = 0.0
    """Its own code awaits something. With ``concurrency`` n, a call counts for one n-th."""
    blocked: float = 0.0
    """It waits for room in the queue of a consumer (law B6)."""
    limited: float = 0.0
    """Spout: ``max_spout_pending`` messages are pending, so that it asks for nothing (law S3)."""
    idle: float = 1.0
    """It has nothing to do, or waits for its turn on the loop."""

    @property
    def busy(self) -> float:
        """Its own code runs or awaits something."""
        return self.executing + self.awaiting


class Percentiles(msgspec.Struct, frozen=True):
    """Latencies in seconds; all but the mean are up to 6.3 % too high, as they are taken from buckets."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class TaskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one task; rates are per second."""

    emitted: float
    transferred: float
    executed: float
    acked: float
    failed: float
    dead_letters: float
    replayed: float
    overflowed: float
    errors: int
    """Exceptions that failed no tuple, in this window."""
    restarts: int
    """Restarts in this window."""
    pending: int
    """Now, as in the statistics."""
    queued: int
    """Now, likewise."""
    giving_up: int
    """Now, likewise."""
    in_dead_letters: float
    """The part of the window in which ``dead_letters=`` held the loop with what a spout has given up."""
    shares: Shares
    capacity: float | None
    """Storm's: the part of the window in which a bolt was executing, awaits included; of a component, that of its
    busiest task. None of spouts and ackers."""
    execute_latency: float | None
    """Bolt: mean seconds that one ``execute`` took (Storm's); None if none took time."""
    complete_latency: float | None
    """Spout: mean seconds from the emit of a message to its ack (Storm's); None if none was acked."""
    execute: Percentiles | None
    """Bolt: durations of ``execute``. None if nothing was executed; of a task, where they are not asked for, and in
    windows that keep none."""
    process: Percentiles | None
    """Bolt: from ``execute`` to the ack."""
    complete: Percentiles | None
    """Spout: from the emit of a message to its ack."""


class StreamFigures(msgspec.Struct, frozen=True):
    """Rates of one stream, per second."""

    emitted: float
    transferred: float


class ComponentFigures(TaskFigures, frozen=True, kw_only=True):
    """Figures of a component: the sums over its tasks, or the means where that says more."""

    tasks: Mapping[int, TaskFigures]
    """By task id; empty if they are not known."""
    streams: Mapping[str, StreamFigures]
    lag: int | None
    """Messages that its broker has and that are not settled, now; None if none says."""
    is_ahead: bool
    """True if it has reported that more is to come than it has done."""

    @property
    def busiest(self) -> TaskFigures:
        """The task with the largest share of busy time; the component as a whole if no task is known."""
        return max(self.tasks.values(), key=lambda each: each.shares.busy, default=self)


class EdgeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one subscription."""

    producer: str
    stream: str
    consumer: str
    grouping: str
    rate: float
    """Tuples per second."""
    queued: int
    """Now, in all queues of the consumer."""
    capacity: int
    fill: float
    """Now, the part of the capacity that is taken."""
    fullest: float
    """Now, the fill of the fullest of the consumer's queues."""
    waited: float
    """The part of the window in which a task of the producer waited for room there."""


class LoopFigures(msgspec.Struct, frozen=True):
    """The event loop, which the topology shares with its host; parts of the window."""

    busy: float
    """The topology or others held it."""
    own: float
    """This topology held it."""
    others: float
    """Other code held it, as estimated by probes while anything of the topology was under way."""
    lag: Percentiles
    """Lateness of the probes."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a window."""

    window: str
    """The window that was asked for: ``"1m"``, ``"10m"``, ``"1h"`` or ``"all"``."""
    seconds: float
    """Its real length: shorter than its name as long as the run is, and up to a step longer after that."""
    components: Mapping[str, ComponentFigures]
    """By component id; the ackers are ``"__acker"``."""
    edges: Sequence[EdgeFigures]
    loop: LoopFigures | None
    """None where nothing probes it."""
    pending_by_age: Sequence[AgedTrees]
    """Now: trees that are open for at least so long."""
    epoch: EpochStatistics | None
    """Now; None where messages do not belong to epochs."""


NOTHING = ComponentStatistics(tasks={})
UNUSED = EdgeStatistics("", "", "", "", 0, 0, 0, 0.0, 0.0)
QUANTILES = (0.5, 0.9, 0.99)
SHORTEST = 1e-9
"""Seconds of a window at least: two statistics of one moment make no rate."""


def figures_between(
    earlier: Statistics,
    later: Statistics,
    seconds: float,
    window: str = "all",
    *,
    times_of: Collection[str] | None = None,
) -> Figures:
    """Return the figures of the time between two statistics of one run, so many seconds apart. What is missing in the
    earlier ones had counted nothing by then; ``Statistics({})`` is the start. Latencies of single tasks are those of
    the components ``times_of``, or of all."""
    return at_once(figures_in_steps(earlier, later, seconds, window, times_of))


def figures_in_steps(
    earlier: Statistics, later: Statistics, seconds: float, window: str, times_of: Collection[str] | None
) -> Steps[Figures]:
    """Do the same in steps."""
    span = max(seconds, SHORTEST)
    components = yield from each_of(
        later.components.items(),
        lambda id, each: _component(
            earlier.components.get(id, NOTHING), each, span, with_times=times_of is None or id in times_of
        ),
    )
    ends = {_ends(each): each for each in earlier.edges}
    edges = yield from each_of(
        enumerate(later.edges), lambda _, each: _edge(ends.get(_ends(each), UNUSED), each, span)
    )
    return Figures(
        window=window,
        seconds=seconds,
        components=components,
        edges=list(edges.values()),
        loop=None if later.loop is None else _loop(earlier.loop, later.loop, span),
        pending_by_age=later.pending_by_age,
        epoch=later.epoch,
    )


def shares_between(earlier: TaskStatistics, later: TaskStatistics) -> Shares:
    """Return the parts of the time between; measured times that are together longer than it are shortened to it."""
    times = [
        max(0.0, getattr(later, name) - getattr(earlier, name))
        for name in ("executing_seconds", "awaiting_seconds", "blocked_seconds", "limited_seconds")
    ]
    span = max(later.uptime - earlier.uptime, sum(times))
    if span <= 0:
        return Shares()
    executing, awaiting, blocked, limited = (each / span for each in times)
    return Shares(executing, awaiting, blocked, limited, max(0.0, 1 - sum(times) / span))


def percentiles_between(earlier: Histogram | None, later: Histogram | None) -> Percentiles | None:
    """Return what was added to a histogram between; None if that is nothing."""
    if later is None or not later.counts:
        return None
    since = later if earlier is None or not earlier.counts else later - earlier
    buckets = list(since.buckets())
    if not buckets:
        return None
    count = since.count
    # In one pass: to ask a histogram for each of them would sort it as often.
    ranks = [max(1, ceil(q * count)) for q in QUANTILES]
    p50, p90, p99 = (buckets[place][0] for place in _places(buckets, ranks))
    return Percentiles(count, since.total / count, p50, p90, p99, buckets[-1][0])


def _places(buckets: Sequence[tuple[float, int]], ranks: Sequence[int]) -> Iterator[int]:
    """The bucket of each rank; they ascend."""
    seen, place = buckets[0][1], 0
    for rank in ranks:
        while seen < rank:
            place += 1
            seen += buckets[place][1]
        yield place


def _component(
    earlier: ComponentStatistics, later: ComponentStatistics, span: float, *, with_times: bool
) -> ComponentFigures:
    own = _task(earlier, later, span)
    before, now = earlier.tasks, later.tasks
    tasks = (
        {}
        if before is None or now is None
        else {
            id: _task(before.get(id, NOTHING), each, span, with_times=with_times) for id, each in now.items()
        }
    )
    capacities = [each.capacity for each in tasks.values() if each.capacity is not None]
    progress = later.progress
    of_busiest = msgspec.structs.replace(own, capacity=max(capacities, default=own.capacity))
    return ComponentFigures(
        **msgspec.structs.asdict(of_busiest),
        tasks=tasks,
        streams={
            name: _stream(earlier.streams.get(name, StreamStatistics()), each, span)
            for name, each in later.streams.items()
        },
        lag=later.lag,
        is_ahead=progress is not None and progress.known is not None and progress.done < progress.known,
    )


def _task(
    earlier: TaskStatistics, later: TaskStatistics, span: float, *, with_times: bool = True
) -> TaskFigures:
    def rate(name: str) -> float:
        return float(getattr(later, name) - getattr(earlier, name)) / span

    shares = shares_between(earlier, later)
    return TaskFigures(
        emitted=rate("emitted"),
        transferred=rate("transferred"),
        executed=rate("executed"),
        acked=rate("acked"),
        failed=rate("failed"),
        dead_letters=rate("dead_letters"),
        replayed=rate("replayed"),
        overflowed=rate("overflowed"),
        errors=later.errors - earlier.errors,
        restarts=later.restarts - earlier.restarts,
        pending=later.pending,
        queued=later.queued,
        giving_up=later.giving_up,
        in_dead_letters=rate("letter_seconds"),
        shares=shares,
        capacity=None if later.execute_times is None else shares.busy,
        execute_latency=_mean(earlier, later, "execute_seconds", "executed"),
        complete_latency=_mean(earlier, later, "complete_seconds", "complete_samples"),
        execute=_times(earlier, later, "execute_times", earlier.executed) if with_times else None,
        process=_times(earlier, later, "process_times", earlier.executed) if with_times else None,
        complete=_times(earlier, later, "complete_times", earlier.complete_samples) if with_times else None,
    )


def _mean(earlier: TaskStatistics, later: TaskStatistics, seconds: str, count: str) -> float | None:
    number = getattr(later, count) - getattr(earlier, count)
    took = getattr(later, seconds) - getattr(earlier, seconds)
    return took / number if number > 0 and took > 0 else None


def _times(earlier: TaskStatistics, later: TaskStatistics, name: str, before: int) -> Percentiles | None:
    """The difference; unknown where the earlier histogram was not kept although there had been something to add."""
    kept: Histogram | None = getattr(earlier, name)
    if kept is None and before:
        return None
    return percentiles_between(kept, getattr(later, name))


def _stream(earlier: StreamStatistics, later: StreamStatistics, span: float) -> StreamFigures:
    return StreamFigures(
        (later.emitted - earlier.emitted) / span, (later.transferred - earlier.transferred) / span
    )


def _ends(edge: EdgeStatistics) -> tuple[str, str, str, str]:
    return (edge.producer, edge.stream, edge.consumer, edge.grouping)


def _edge(earlier: EdgeStatistics, later: EdgeStatistics, span: float) -> EdgeFigures:
    return EdgeFigures(
        producer=later.producer,
        stream=later.stream,
        consumer=later.consumer,
        grouping=later.grouping,
        rate=(later.transferred - earlier.transferred) / span,
        queued=later.queued,
        capacity=later.capacity,
        fill=_part(later.queued, later.capacity),
        fullest=later.fullest,
        waited=_part(later.waited_seconds - earlier.waited_seconds, span),
    )


def _loop(earlier: LoopStatistics | None, later: LoopStatistics, span: float) -> LoopFigures | None:
    before = LoopStatistics(0, 0, Histogram(), 0.0) if earlier is None else earlier
    lag = percentiles_between(before.lag, later.lag)
    if lag is None:
        return None
    # Probes rest while nothing of the topology is under way, in which it does not hold the loop either: what they say
    # is compared with its part of the time for which they do not rest.
    seconds = later.own_seconds - before.own_seconds
    late = _part(later.late - before.late, later.probes - before.probes)
    others = max(0.0, late - _part(seconds, later.seconds - before.seconds))
    own = _part(seconds, span)
    return LoopFigures(min(1.0, own + others), own, others, lag)


def _part(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0
