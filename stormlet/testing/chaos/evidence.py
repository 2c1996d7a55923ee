"""The part of a run that is compared with other runs of the same input."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from stormlet.model.plan import TaskPlan
from stormlet.report.explanation import Explanation
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.tasks import Tasks
from stormlet.testing.chaos.calls import Joins
from stormlet.testing.chaos.data import Amount, Data, added, changes, data_of, frozen
from stormlet.testing.chaos.faults import Fault
from stormlet.testing.chaos.journal import Journal

EMITS, FINISHES, KEEPS = "emits", "finishes with", "keeps"


class Way(Enum):
    """The order of the calls of a run."""

    AS_DECLARED = "as declared"
    ANY_ORDER = "one at a time, in an order in which they could end"
    IN_ORDER = "one at a time, in the order of the inputs of each task"
    ALONE = "the same, and each message an epoch"


class Kept(NamedTuple):
    """The outcomes of the messages of a ``Spout`` class."""

    acked: int
    failed: int

    @property
    def emitted(self) -> int:
        """The number of emissions."""
        return self.acked + self.failed


class Result(NamedTuple):
    """One thing that a run has come to."""

    component: str
    kind: str
    """One of :data:`EMITS`, :data:`FINISHES` and :data:`KEEPS`."""
    name: str
    """The stream, or where the data is."""


@dataclass(frozen=True)
class Results:
    """All that a run has come to."""

    sources: Counter[Hashable]
    """The values that spouts have emitted, replays included."""
    values: Mapping[Result, Amount]
    """Counters of values, and numbers."""

    def value(self, result: Result) -> Amount:
        """One of them."""
        return self.values.get(result, 0.0 if result.kind == KEEPS else Counter())

    def differing(self, other: Results) -> list[Result]:
        """Those that are not the same, upstream first."""
        both = {**other.values, **self.values}
        return [each for each in both if self.value(each) != other.value(each)]


@dataclass(frozen=True)
class Left:
    """All that a run has left behind in the end, where messages belong to epochs."""

    given: frozenset[Hashable]
    """The values that spouts have emitted."""
    kept: Mapping[str, Counter[Hashable]]
    """The entries of each state, the rows of each table and committer."""


@dataclass(frozen=True)
class Evidence:
    """All that is known of a run that has come to its end; nothing of another one."""

    bolts: Sequence[str] = ()
    """The names of the tasks of bolts."""
    spouts: Mapping[str, Kept] = field(default_factory=dict[str, Kept])
    joins: Mapping[str, Joins] = field(default_factory=dict[str, Joins])
    results: Results | None = None
    """None if nobody wanted to know."""
    left: Left | None = None
    """None where a message was given up, or time decides."""

    @property
    def is_suspicious(self) -> bool:
        """True if other runs could show that something is wrong."""
        joined = any(each.own_replay for each in self.joins.values())
        return joined or self.results is not None or any(each.failed for each in self.spouts.values())


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One run."""

    seed: int
    faults: Sequence[Fault]
    """Those that happened, in order."""
    violations: Sequence[str]
    """The breaches; empty if all was well."""
    counts: Mapping[str, int]
    journal: Journal = field(repr=False)
    missed: Sequence[Fault] = ()
    """Those of an exact list that did not happen: the run went another way."""
    explanations: Sequence[Explanation] = ()
    """Of a failed seed, once it is shrunk: what kept the oldest trees open when the law was broken."""
    evidence: Evidence = field(default=Evidence(), repr=False)
    """For the comparison with other runs of the same input."""

    @property
    def log(self) -> Sequence[str]:
        """The events, a line each; the same for the same seed in every process."""
        return self.journal.lines()

    @property
    def exactly(self) -> str:
        """The faults, as ``simulate(..., faults=...)`` takes them."""
        return " ".join(map(str, self.faults)) or "none"

    @property
    def repeated(self) -> str:
        """The line that repeats it."""
        return f"repeat it with simulate(..., seeds=[{self.seed}], faults={self.exactly!r})"


class Collecting:
    """Gathers the results of one run."""

    def __init__(self) -> None:
        self._sources = Counter[Hashable]()
        self._emitted = defaultdict[Result, Counter[Hashable]](Counter)
        self._before: dict[TaskPlan, Data] = {}

    def begin(self, bolts: Iterable[BoltTask], instances: Mapping[TaskPlan, object]) -> None:
        """Note the data of all bolts before anything has happened."""
        self._before = {task.plan: _data(task, instances) for task in bolts}

    def emitted(self, task: TaskPlan, stream: str, value: object, *, spout: bool, finishing: bool) -> None:
        """A task has emitted a value."""
        if spout:
            self._sources[task.component, stream, frozen(value)] += 1
        else:
            kind = FINISHES if finishing else EMITS
            self._emitted[Result(task.component, kind, stream)][frozen(value)] += 1

    def results(self, tasks: Tasks, instances: Mapping[TaskPlan, object]) -> Results:
        """The run has come to its end."""
        values: dict[Result, Amount] = {}
        for group in tasks.all_bolts[0].engine.plan.order if tasks.all_bolts else ():
            for component in group:
                values |= {
                    result: each for result, each in self._emitted.items() if result.component == component
                }
                values |= self._kept(component, tasks, instances)
        return Results(self._sources, values)

    def _kept(
        self, component: str, tasks: Tasks, instances: Mapping[TaskPlan, object]
    ) -> Mapping[Result, Amount]:
        total: Data = {}
        for task in tasks.bolts.get(component, ()):
            if task.plan.index and instances.get(task.plan) is None:
                continue  # a function is the same for all tasks
            total = added(total, changes(self._before[task.plan], _data(task, instances)))
        return {Result(component, KEEPS, name): change for name, change in total.items()}


def _data(task: BoltTask, instances: Mapping[TaskPlan, object]) -> Data:
    logic = task.engine.plan.description.bolts[task.plan.component].logic
    return data_of(instances.get(task.plan), logic)
