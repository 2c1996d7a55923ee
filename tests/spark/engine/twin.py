"""A topology on Spark's chain of stages, without Spark.

The partitions run one after another in this process, on simulated time. Rows go from each to the next as Spark would
bring them: sorted by producer and number. A fault may change them on the way.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import msgspec

from stormlet import DeadLetter, Topology
from stormlet.model.components import DEFAULT_STREAM, To
from stormlet.model.description import SpoutSpec
from stormlet.report.statistics import Statistics
from stormlet.spark.engine.partition.account import Account, Line, differences
from stormlet.spark.engine.partition.equipment import Equipment
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.keyed.groups import id_of
from stormlet.spark.engine.partition.keyed.partition import partition_at
from stormlet.spark.engine.partition.partition import Partition, root_of
from stormlet.spark.engine.partition.rows import CHUNK, STATES, Kind, Row, unpacked
from stormlet.spark.engine.passage.messages import by_message, letters_of
from stormlet.spark.engine.passage.reports import Report, opened, pickled, report_of, statistics_of
from stormlet.spark.engine.passage.sources import values_of
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, StatePlan, number
from stormlet.spark.engine.planning.refusals import reasons
from stormlet.testing import SimulatedLoop
from stormlet.testing.watched_run import WatchedOutlet

Fault: TypeAlias = Callable[[Place, Sequence[Row], Callable[[], Sequence[Row]]], Sequence[Row]]
"""Changes the rows that a partition has made. It is given those of another attempt, if it asks for them."""
Emitted: TypeAlias = tuple[str, str, Any]
"""Component, stream and value."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one message."""

    spout: str
    value: Any
    acked: bool
    attempts: int


@dataclass
class Twin:
    """One run, and all that became of it."""

    cluster: ClusterPlan
    seed: int
    fault: Fault | None = None
    emissions: list[Emitted] = field(default_factory=list[Emitted])
    """All of them, those of failed attempts included."""
    tasks: dict[Emitted, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The indexes of the tasks that have emitted a value."""
    lines: list[Line] = field(default_factory=list[Line])
    given_up: list[GivenUp] = field(default_factory=list[GivenUp])
    replayed: dict[int, int] = field(default_factory=dict[int, int])
    reports: list[Report] = field(default_factory=list[Report])
    """What each partition says at its end, as it comes to the driver."""
    messages: dict[int, Emitted] = field(default_factory=dict[int, Emitted])
    """By root."""
    read: dict[int, Any] = field(default_factory=dict[int, Any])
    """The values that the sources gave, by root."""
    states: Sequence[Row] = ()
    """The states that the epoch before has left."""
    written: list[Row] = field(default_factory=list[Row])
    """The states that this epoch has written."""
    rows: dict[Place, list[Row]] = field(default_factory=dict[Place, list[Row]])
    """The rows that each partition has made, before any fault."""
    ledger: list[Row] = field(default_factory=list[Row])
    """Those for the ledger by root."""

    @property
    def differences(self) -> Sequence[str]:
        """What the ledger of the whole run says; the one by root agrees, but for states, which belong to no message."""
        states = Account(Place(-1, 0))
        for row in (*self.states, *self.written):
            states.read(row)
        line = msgspec.structs.replace(self.lines[0], hashes=self.lines[0].hashes ^ states.line().hashes)
        found = differences([line, *self.lines[1:]], self.cluster.partitions)
        assert bool(found) is bool(self.open) or (found and self.written), (found, self.open)
        return found

    @property
    def left(self) -> list[Row]:
        """The states that there are after this epoch: of key groups that it has not written, those from before."""
        new = {id_of(row) for row in self.written if row.kind == Kind.KEYED}
        kept = [row for row in self.states if row.kind == Kind.KEYED and id_of(row) not in new]
        return [*kept, *self.written]

    @property
    def open(self) -> set[int]:
        """The roots that the ledger by root says are open."""
        sums = defaultdict[int, tuple[int, int]](lambda: (0, 0))
        for row in self.ledger:
            for root, word in zip(unpacked(row.roots), unpacked(row.words), strict=True):
                xor, count = sums[root]
                sums[root] = (xor ^ word, count + row.number)
        return {root for root, total in sums.items() if total != (0, 0)}

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Of every message, as the driver makes them out."""
        failed = {message: each.attempts for each in self.given_up for message in each.messages}
        return [
            Outcome(spout, value, root not in failed, failed.get(root) or self.replayed.get(root, 1))
            for root, (spout, _, value) in self.messages.items()
        ]

    @property
    def acked(self) -> list[Any]:
        """The values of the messages that were acked."""
        return [each.value for each in self.outcomes if each.acked]

    @property
    def failed(self) -> list[Any]:
        """The values of those that were given up."""
        return [each.value for each in self.outcomes if not each.acked]

    def emitted(self, component: str, stream: str = DEFAULT_STREAM) -> list[Any]:
        """The values that a component has emitted on a stream."""
        return [value for id, name, value in self.emissions if (id, name) == (component, stream)]

    def multiset(self) -> Counter[Emitted]:
        """All emissions, as far as their values can be counted."""
        return Counter((id, stream, repr(value)) for id, stream, value in self.emissions)

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """The messages that were given up, as the driver makes them."""
        given_up = [each for report in self.reports for each in report.given_up]
        found = {root: self.read[root] for each in given_up for root in each.messages}
        return list(letters_of(self.cluster, by_message(given_up), found, ()))

    def statistics(self) -> Statistics:
        """The counts of all components, as the driver adds them up."""
        letters = {root for report in self.reports for each in report.given_up for root in each.messages}
        return statistics_of(self.cluster, self.reports, letters)

    def run(self, sources: Mapping[str, Sequence[Any]], *, real_time: bool = False) -> None:
        """Run all partitions, stage by stage, each on a loop of its own."""
        values = self._shares(sources)
        arriving = defaultdict[Place, list[Row]](list)
        _send(arriving, self.states)
        for place in self._places():
            attempt = partial(self._attempt, place, _in_order(arriving, place), values, real_time=real_time)
            partition, leaving = attempt()
            self._note_end(place, partition, leaving)
            if self.fault is not None:
                leaving = self.fault(place, leaving, partial(_rows_of, attempt))
            self.written += [row for row in leaving if row.kind in STATES]
            _send(arriving, [row for row in leaving if row.kind not in STATES])
        self._open_groups()
        assert not arriving, f"rows for places that are not there: {[*arriving]}"

    async def run_here(self, sources: Mapping[str, Sequence[Any]]) -> None:
        """Run all partitions on the running loop, in its time."""
        values = self._shares(sources)
        arriving = defaultdict[Place, list[Row]](list)
        _send(arriving, self.states)
        for place in self._places():
            partition, leaving = await self._work(place, _in_order(arriving, place), values)
            self._note_end(place, partition, leaving)
            self.written += [row for row in leaving if row.kind in STATES]
            _send(arriving, [row for row in leaving if row.kind not in STATES])
        self._open_groups()
        assert not arriving, f"rows for places that are not there: {[*arriving]}"

    def _shares(self, sources: Mapping[str, Sequence[Any]]) -> Mapping[int, Sequence[Any]]:
        return {
            task.task: sources[id][index :: task.parallelism]
            for id in self.cluster.plan.description.spouts
            for index, task in enumerate(self.cluster.plan.tasks[id])
        }

    def _places(self) -> Iterable[Place]:
        for stage, partitions in enumerate(self.cluster.partitions):
            for each in range(partitions):
                yield Place(stage, each)

    def _attempt(
        self, place: Place, rows: Sequence[Row], values: Mapping[int, Sequence[Any]], *, real_time: bool
    ) -> tuple[Partition, Sequence[Row]]:
        loop = None if real_time else partial(SimulatedLoop, self.seed)
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(self._work(place, rows, values))

    async def _work(
        self, place: Place, rows: Sequence[Row], values: Mapping[int, Sequence[Any]]
    ) -> tuple[Partition, list[Row]]:
        partition = self._partition(place)
        left: list[Row] = []
        try:
            await partition.start()
            for task in self.cluster.tasks_at(place):
                for first in range(0, len(values.get(task.task, ())), CHUNK):
                    chunk = values[task.task][first : first + CHUNK]
                    self._note(task.task, chunk, first + 1)
                    left += await partition.emit(task.task, chunk, first + 1)
            for row in rows:
                left += await partition.execute(row)
            left += await partition.finish()
        finally:
            await partition.close()
        return partition, left

    def _note_end(self, place: Place, partition: Partition, leaving: Sequence[Row]) -> None:
        self.rows[place] = [*leaving]
        self.reports.append(pickle.loads(pickled(report_of(partition))))
        self.lines.append(partition.line)
        self.ledger += partition.ledger_rows(1)

    def _open_groups(self) -> None:
        """Put messages in the place of groups of them, as the driver does."""
        members = [row for rows in self.rows.values() for row in rows if row.kind == Kind.MEMBERS]
        self.reports[:] = opened(self.reports, lambda: members)
        for report in self.reports:
            self.given_up += report.given_up
            for root, attempts in report.replayed:
                self.replayed[root] = max(attempts, self.replayed.get(root, 1))

    def _note(self, task: int, values: Iterable[Any], first: int) -> None:
        for position, value in enumerate(values, first):
            to = (_itself if To is type(value) else To)(value)
            self.messages[root_of(task, position)] = (self.cluster.component_of(task), to.stream, to.value)
            self.read[root_of(task, position)] = value

    def _partition(self, place: Place) -> Partition:
        partition = partition_at(self.cluster, place, self.seed, by_root=True)
        equipment: Equipment = partition._equipment  # pyright: ignore[reportPrivateUsage]
        for plan in self.cluster.tasks_at(place):
            outlets = equipment.outlets_of(plan.task)
            for stream, outlet in outlets.items():
                outlets[stream] = WatchedOutlet(
                    outlet, partial(self._emitted, plan.component, plan.index, stream)
                )
        return partition

    def _emitted(self, component: str, index: int, stream: str, value: Any, roots: Sequence[int]) -> None:
        self.emissions.append((component, stream, value))
        self.tasks[component, stream, repr(value)].add(index)


def _itself(to: To[Any]) -> To[Any]:
    return to


def _in_order(arriving: dict[Place, list[Row]], place: Place) -> Sequence[Row]:
    return sorted(arriving.pop(place, []), key=lambda row: (row.producer, row.number))


def _send(arriving: dict[Place, list[Row]], rows: Iterable[Row]) -> None:
    for row in rows:
        arriving[row.place].append(row)


def _rows_of(attempt: Callable[[], tuple[Partition, Sequence[Row]]]) -> Sequence[Row]:
    return attempt()[1]


def twin(
    topology: Topology,
    sources: Mapping[str, Sequence[Any]] | None = None,
    *,
    spouts: int | Mapping[str, int] = 2,
    seed: int = 1,
    fault: Fault | None = None,
    real_time: bool = False,
    kind: type[Twin] = Twin,
    states: Sequence[Row] | None = None,
    now: float = 0.0,
    state: StatePlan | None = None,
) -> Twin:
    """Run a topology; each spout has so many partitions. With ``states`` it is an epoch of a stream, after the one that
    has left them. ``now`` is the time for bolts with keyed state, and ``state`` all that an epoch is told of it."""
    plan = state or StatePlan(now)
    run, values = _planned(
        topology, sources or {}, spouts, seed, kind, in_epochs=states is not None, state=plan
    )
    run.fault, run.states = fault, states or ()
    run.run(values, real_time=real_time)
    return run


async def twin_async(
    topology: Topology,
    sources: Mapping[str, Sequence[Any]] | None = None,
    *,
    spouts: int = 1,
    seed: int = 1,
    states: Sequence[Row] | None = None,
    state: StatePlan | None = None,
) -> Twin:
    """The same on the running loop, in its time, and without faults."""
    run, values = _planned(
        topology, sources or {}, spouts, seed, Twin, in_epochs=states is not None, state=state
    )
    run.states = states or ()
    await run.run_here(values)
    return run


def _planned(
    topology: Topology,
    sources: Mapping[str, Sequence[Any]],
    spouts: int | Mapping[str, int],
    seed: int,
    kind: type[Twin],
    *,
    in_epochs: bool = False,
    state: StatePlan | None = None,
) -> tuple[Twin, Mapping[str, Sequence[Any]]]:
    described = topology.describe(sources)
    # All but where classes are defined: rows stay in this process.
    assert not [*reasons(described)]
    description, configurations = described.configured(described.configuration, "run")
    tasks = dict.fromkeys(description.spouts, spouts) if isinstance(spouts, int) else spouts
    run = kind(number(description, configurations, tasks, in_epochs=in_epochs, state=state), seed)
    # The driver reads the sources in a context of its own.
    read = {id: copy_context().run(_read, run.cluster, spout) for id, spout in description.spouts.items()}
    return run, read


def _read(cluster: ClusterPlan, spout: SpoutSpec) -> Sequence[Any]:
    return list(values_of(cluster, spout))
