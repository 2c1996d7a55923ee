"""The keyed state of one partition: that of the one bolt to which all of its inputs go (law K1).

The tables are those of a run in process (:mod:`stormlet.core.state.tables`), and so are the blobs in which they leave
(:mod:`~stormlet.spark.engine.partition.keyed.groups`). So a state file and a run on Spark have the same bytes for a
state, and each goes over into the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stormlet.core.state.epochs import EpochAccount
from stormlet.core.state.map_table import MapTable
from stormlet.core.state.timers import NAME, Timers
from stormlet.model.checks.keyed import key_reader
from stormlet.model.description import BoltSpec
from stormlet.model.logic import component_class
from stormlet.model.plan import TaskPlan
from stormlet.model.state.keyed import merges
from stormlet.runtime.bolt.task_state import KeyReader, TaskState
from stormlet.runtime.epoch import OpenEpoch
from stormlet.spark.engine.partition.keyed.execution import states_of
from stormlet.spark.engine.partition.keyed.folding import FoldingState, reader_of
from stormlet.spark.engine.partition.keyed.groups import Groups
from stormlet.spark.engine.partition.rows import Row
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, Span

ORDERS = 1 << 32
"""Timers that an epoch may set in a task: those of a later one come after them, also where they are not looked at."""


class KeyedTables:
    """The state of one task."""

    def __init__(self, plan: TaskPlan, spec: BoltSpec, place: Place, cluster: ClusterPlan) -> None:
        self._plan = plan
        self._place = place
        now = cluster.state.now
        self._states = states_of(spec, now)
        self._groups = Groups(self._states, cluster.state, writes_all=cluster.span is Span.WHOLE)
        tables = {name: state.tables[0] for name, state in self._states.items()}
        timers = tables.get(NAME)
        is_folded = merges(component_class(spec.logic))
        readers = {
            (each.source.component, each.source.stream): self._opening(
                reader_of(key_reader(each)) if is_folded else key_reader(each)
            )
            for each in spec.inputs
        }
        self._epoch = OpenEpoch(EpochAccount(1))
        first = ORDERS * (cluster.state.epoch + 1)
        due = Timers(timers, first) if isinstance(timers, MapTable) else None
        self._task = (FoldingState if is_folded else TaskState)(self._epoch, tables, due, readers)
        self._task.now = now
        if isinstance(self._task, FoldingState):
            self._task.others = states_of(spec, now)
        self.attempt = self._epoch.attempt
        """The trees that have reached it."""

    def _opening(self, read: KeyReader) -> KeyReader:
        """A reader that sees to it that the state of the key is there."""
        closed, open_for = self._groups.closed, self._groups.open_for

        def reading(value: Any) -> Any:
            key = read(value)
            if closed:
                open_for(key)
            return key

        return reading

    @property
    def task(self) -> int:
        """The id of the task."""
        return self._plan.task

    def of(self, plan: TaskPlan, spec: BoltSpec) -> TaskState:
        """Return the state of the task, the same for each of its instances (law K4)."""
        return self._task

    @property
    def are_timers_due(self) -> bool:
        """True if a timer is to be called."""
        timers = self._task.timers
        at = None if timers is None else timers.next
        return at is not None and at <= self._task.now

    @property
    def spoilt(self) -> bool:
        """True if a timer has failed."""
        return self._epoch.spoilt

    def roll_back(self) -> None:
        """Forget what has changed since :meth:`seal` (law K3)."""
        for state in self._states.values():
            state.roll_back()
        if self._task.timers is not None:
            self._task.timers.rolled_back()
        self._epoch.account.repeat()

    def seal(self) -> None:
        """Keep what has changed. Raise :class:`TypeError`, naming state and key, for a value that cannot be kept."""
        tables = {name: state.tables[0] for name, state in self._states.items()}
        deltas = [(name, table, table.delta()) for name, table in tables.items()]  # all that can fail
        for name, table, delta in deltas:
            self._groups.note(name, delta)
            table.merge(delta)
        # The timers are not told: those for a time that is past are due in the next run, or epoch, which loads them.

    def load(self, row: Row) -> None:
        """Take a row that :meth:`rows` has made, or the like of it."""
        self._groups.take(row)

    def begin(self) -> Sequence[Row]:
        """Begin with the state in the rows; return those that count. Raise :class:`~stormlet.errors.StateUnusable` for
        what does not decode."""
        taken = self._groups.begin()
        if self._task.timers is not None:
            self._task.timers.load()
        return taken

    def rows(self) -> Sequence[Row]:
        """Return the rows that bring what has changed back to its place."""
        return self._groups.rows(self._place)
