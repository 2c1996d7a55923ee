"""A topology on Spark's chain of stages, without Spark.

The partitions run one after another in this process, on simulated time. Rows go from each to the next as Spark would
bring them: sorted by producer and number. A fault may change them on the way.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import msgspec

from stormlet import Topology
from stormlet.model.components import DEFAULT_STREAM, To
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import SourceKind
from stormlet.runtime.run.kit import Kit
from stormlet.spark.engine.partition.account import Account, Line, differences
from stormlet.spark.engine.partition.equipment import Equipment
from stormlet.spark.engine.partition.inputs import GivenUp
from stormlet.spark.engine.partition.partition import Partition, root_of
from stormlet.spark.engine.partition.rows import CHUNK, Kind, Row, unpacked
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, number
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
    messages: dict[int, Emitted] = field(default_factory=dict[int, Emitted])
    """By root."""
    states: Sequence[Row] = ()
    """The states that the epoch before has left."""
    left: list[Row] = field(default_factory=list[Row])
    """The states that this epoch leaves."""
    rows: dict[Place, list[Row]] = field(default_factory=dict[Place, list[Row]])
    """The rows that each partition has made, before any fault."""
    ledger: list[Row] = field(default_factory=list[Row])
    """Those for the ledger by root."""

    @property
    def differences(self) -> Sequence[str]:
        """What the ledger of the whole run says; the one by root agrees, but for states, which belong to no message."""
        states = Account(Place(-1, 0))
        for row in (*self.states, *self.left):
            states.read(row)
        line = msgspec.structs.replace(self.lines[0], hashes=self.lines[0].hashes ^ states.line().hashes)
        found = differences([line, *self.lines[1:]], self.cluster.partitions)
        assert bool(found) is bool(self.open) or (found and self.left), (found, self.open)
        return found

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

    def run(self, sources: Mapping[str, Sequence[Any]], *, real_time: bool = False) -> None:
        """Run all partitions, stage by stage."""
        values = {
            task.task: sources[id][index :: task.parallelism]
            for id in self.cluster.plan.description.spouts
            for index, task in enumerate(self.cluster.plan.tasks[id])
        }
        arriving = defaultdict[Place, list[Row]](list)
        for row in self.states:
            arriving[row.place].append(row)
        for stage, partitions in enumerate(self.cluster.partitions):
            for each in range(partitions):
                place = Place(stage, each)
                rows = sorted(arriving.pop(place, []), key=lambda row: (row.producer, row.number))
                attempt = partial(self._attempt, place, rows, values, real_time=real_time)
                partition, self.rows[place] = attempt()
                self._note_end(partition)
                leaving: Sequence[Row] = self.rows[place]
                if self.fault is not None:
                    leaving = self.fault(place, leaving, partial(_rows_of, attempt))
                for row in leaving:
                    (self.left if row.kind == Kind.STATE else arriving[row.place]).append(row)
        assert not arriving, f"rows for places that are not there: {[*arriving]}"

    def _attempt(
        self, place: Place, rows: Sequence[Row], values: Mapping[int, Sequence[Any]], *, real_time: bool
    ) -> tuple[Partition, list[Row]]:
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

    def _note_end(self, partition: Partition) -> None:
        self.lines.append(partition.line)
        self.ledger += partition.ledger_rows(1)
        self.given_up += partition.given_up
        for root, attempts in partition.replayed:
            self.replayed[root] = max(attempts, self.replayed.get(root, 1))

    def _note(self, task: int, values: Iterable[Any], first: int) -> None:
        for position, value in enumerate(values, first):
            to = (_itself if To is type(value) else To)(value)
            self.messages[root_of(task, position)] = (self.cluster.component_of(task), to.stream, to.value)

    def _partition(self, place: Place) -> Partition:
        partition = Partition(self.cluster, place, self.seed, Kit(), by_root=True)
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


def _rows_of(attempt: Callable[[], tuple[Partition, list[Row]]]) -> Sequence[Row]:
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
) -> Twin:
    """Run a topology; each spout has so many partitions. With ``states`` it is an epoch of a stream, after the one that
    has left them."""
    description = topology.describe()
    # All but where classes are defined: rows stay in this process.
    assert not [*reasons(description.with_sources(sources or {}))]
    description, configurations = description.configured(description.configuration, "run")
    values = {id: (sources or {}).get(id) or _values(spec) for id, spec in description.spouts.items()}
    tasks = dict.fromkeys(values, spouts) if isinstance(spouts, int) else spouts
    cluster = number(description, configurations, tasks, in_epochs=states is not None)
    run = kind(cluster, seed, fault, states=states or ())
    run.run(values, real_time=real_time)
    return run


def _values(spout: SpoutSpec) -> Sequence[Any]:
    source: Any = spout.source
    return list(source() if spout.kind is SourceKind.GENERATOR else source)
