"""From the counts of a running topology to what is shown of it: rates, latencies, how full the queues are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import length_hint

from stormlet.cli.running.letters import Written
from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import Description
from stormlet.model.logic import SourceKind
from stormlet.report.connections import Connection
from stormlet.report.statistics import ComponentStatistics, EpochStatistics, Progress, Statistics

WINDOW = 2.0
"""Seconds that rates and latencies are means of."""
NOTHING = ComponentStatistics()


@dataclass(frozen=True, slots=True)
class Row:
    """One component."""

    id: str
    is_spout: bool
    emitted: int
    executed: int
    per_second: float
    """Spout: emits. Bolt: executed inputs."""
    acked: int
    failed: int
    waiting: int
    """Spout: messages pending. Bolt: tuples queued."""
    backlog: int
    """As ``waiting``: how many waited all the time."""
    capacity: int | None
    """The most that may wait; None: unlimited."""
    latency: float | None
    """Seconds. Spout: from emit to ack. Bolt: in ``execute``."""

    @property
    def fill(self) -> float | None:
        """The part of the capacity that is taken; None where that is unlimited."""
        return None if self.capacity is None else min(self.waiting / self.capacity, 1.0)

    @property
    def is_crowded(self) -> bool:
        """True if it probably holds the others up: its queue never was less than half full."""
        return not self.is_spout and self.capacity is not None and self.backlog * 2 >= self.capacity


@dataclass(frozen=True, slots=True)
class Completion:
    """The part that is done of what is known to come."""

    done: int
    total: int
    seconds_left: float | None
    """None before there is a rate."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The topology at one moment."""

    topology: str
    seconds: float
    rows: tuple[Row, ...]
    progress: Completion | None
    dead_letters: int
    left_over: int
    reports: Mapping[str, Progress] = field(default_factory=dict[str, Progress])
    """The progress that components report of their own work."""
    epoch: EpochStatistics | None = None
    """None where messages do not belong to epochs."""
    connections: Mapping[str, Sequence[Connection]] = field(default_factory=dict[str, Sequence[Connection]])
    """The connections of components to their brokers."""
    written: Written | None = None
    """The letters that were appended to the file of dead letters; None where there is none."""
    bottleneck: str = ""
    """The sentence that names it; empty if nothing limits the topology."""

    @property
    def tuples_per_second(self) -> float:
        """Executed by all bolts."""
        return sum(row.per_second for row in self.rows if not row.is_spout)

    @property
    def pending(self) -> int:
        """Messages without an outcome."""
        return sum(row.waiting for row in self.rows if row.is_spout)


class Meter:
    """Remembers the counts of the last seconds."""

    def __init__(self, description: Description, settings: Mapping[str, object], total: int | None) -> None:
        configuration = configure(description.configuration, settings, f"run of {description.name!r}")
        self._topology = description.name
        self.spouts = frozenset(description.spouts)
        self._capacities = {
            id: _capacity(configure(configuration, spec.options, id), spec.parallelism, id in self.spouts)
            for id, spec in description.components.items()
        }
        self._total = total
        self._past: deque[tuple[float, Statistics]] = deque([(0.0, Statistics({}))])
        self._latencies: dict[str, float | None] = {}

    def frame(self, statistics: Statistics, seconds: float) -> Frame:
        """The figures ``seconds`` after the start; rates are those of the last two."""
        self._past.append((seconds, statistics))
        while len(self._past) > 2 and self._past[1][0] <= seconds - WINDOW:
            self._past.popleft()
        return self._frame(statistics, seconds, *self._past[0])

    def summary(self, statistics: Statistics, seconds: float) -> Frame:
        """The same at the end; rates and latencies are those of the whole run."""
        return self._frame(statistics, seconds, 0.0, Statistics({}))

    def _frame(self, now: Statistics, seconds: float, since: float, before: Statistics) -> Frame:
        passed = max(seconds - since, 1e-9)
        rows = tuple(
            self._row(id, now.components[id], before.components.get(id, NOTHING), passed)
            for id in self._capacities
        )
        progress = None if self._total is None else _progress(self._total, self._done(now), seconds)
        own = ((id, now.components[id].progress) for id in self._capacities)
        reports = {id: progress for id, progress in own if progress is not None}
        there = ((id, now.components[id].connections) for id in self._capacities)
        connections = {id: tuple(each.values()) for id, each in there if each}
        left = now.left_over
        return Frame(
            self._topology, seconds, rows, progress, now.dead_letters, left, reports, now.epoch, connections
        )

    def _row(self, id: str, now: ComponentStatistics, before: ComponentStatistics, passed: float) -> Row:
        is_spout = id in self.spouts
        work = now.emitted - before.emitted if is_spout else now.executed - before.executed
        return Row(
            id=id,
            is_spout=is_spout,
            emitted=now.emitted,
            executed=now.executed,
            per_second=work / passed,
            acked=now.acked,
            failed=now.failed,
            waiting=now.pending if is_spout else now.queued,
            backlog=min(self._backlog(id)),
            capacity=self._capacities[id],
            latency=self._latency(id, now, before),
        )

    def _backlog(self, id: str) -> Iterator[int]:
        for _, statistics in self._past:
            then = statistics.components.get(id, NOTHING)
            yield then.pending if id in self.spouts else then.queued

    def _latency(self, id: str, now: ComponentStatistics, before: ComponentStatistics) -> float | None:
        """The mean of the window; of the last one in which there was something to measure."""
        if id in self.spouts:
            count = now.complete_samples - before.complete_samples
            took = now.complete_seconds - before.complete_seconds
        else:
            count, took = now.executed - before.executed, now.execute_seconds - before.execute_seconds
        if count > 0 and took > 0:
            self._latencies[id] = took / count
        return self._latencies.get(id)

    def _done(self, now: Statistics) -> int:
        spouts = (now.components[id] for id in self.spouts)
        return sum(each.acked + each.dead_letters for each in spouts)


def _capacity(configuration: Configuration, parallelism: int, is_spout: bool) -> int | None:
    if not is_spout:
        return configuration.queue_capacity * parallelism
    pending = configuration.max_spout_pending
    return None if pending is None else pending * parallelism


def known_length(description: Description) -> int | None:
    """The number of messages that all sources have together; None unless every one has a length."""
    total = 0
    for spout in description.spouts.values():
        length = _length(spout.source) if spout.kind is SourceKind.ITERABLE else 0
        if not length:
            return None
        total += length
    return total or None


def _length(source: object) -> int:
    with suppress(Exception):  # a __len__ of the user's; a run does not end for a bar
        return length_hint(source)
    return 0


def _progress(total: int, done: int, seconds: float) -> Completion:
    done = min(done, total)
    return Completion(done, total, seconds * (total - done) / done if done else None)
