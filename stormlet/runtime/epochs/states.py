"""The durable state of a topology in one run: the store, what it has, and the states of bolts (law X1, K4, K5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

import msgspec

from stormlet.core.groupings import Fields
from stormlet.core.shortened import shortened
from stormlet.core.state.commits import Append, Rows, StateId, Store, Stored, TableRows
from stormlet.core.state.epochs import EpochAccount
from stormlet.core.state.lazy.states import first_task, load_state, state_in
from stormlet.core.state.map_table import MapTable
from stormlet.core.state.outgoing import Epoch, Outgoing, OutgoingTable
from stormlet.core.state.redeliveries import IDS, Redeliveries
from stormlet.core.state.redeliveries import NAME as REDELIVERED
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME, Timers
from stormlet.errors import NotExactlyOnce, StateUnusable
from stormlet.model.checks.keyed import key_fields, key_reader
from stormlet.model.description import BoltSpec, Description
from stormlet.model.plan import TaskPlan
from stormlet.model.state.committers import RowSpec
from stormlet.runtime.bolt.task_state import TaskState
from stormlet.runtime.epoch import CutEpoch, OpenEpoch
from stormlet.runtime.other_threads import make_way
from stormlet.runtime.spout import positions

T = TypeVar("T")

MOST_CHANGES = 1_000_000
"""Changed entries and rows of an epoch, with which it ends: they are in memory beside what is committed (law X1)."""


class KeptState:
    """The store of a run, and what it has when the run begins."""

    def __init__(
        self, store: Store, stored: Stored, description: Description, *, durable: bool = True
    ) -> None:
        """``durable`` is false for a store that ends with the run. Raises :class:`~stormlet.errors.StateUnusable` for
        state that is not as the topology declares it."""
        self.durable = durable
        self.by_source = not durable and description.has_cut_epochs
        """True if epochs are known by what the source calls them, and durable when the committers have had them."""
        self._names: dict[int, Epoch] = {}
        """What the source calls the epochs that committers have not had."""
        self.store = store
        self.stored = stored
        self._by_bolt = {id: _states_of(spec, stored) for id, spec in description.bolts.items()}
        self.redeliveries = {id: _redeliveries_of(id, stored) for id in description.redelivering}
        """Messages that brokers may give again, by spout (law X8)."""
        self.states: Sequence[State] = [
            *(each for states in self._by_bolt.values() for each in states.values()),
            *(each.state for each in self.redeliveries.values()),
        ]
        self._tables = [table for state in self.states for table in state.tables]
        self.outgoing: Mapping[str, Outgoing | OutgoingTable] = {
            id: _outgoing(id, spec.rows) for id, spec in description.bolts.items() if spec.rows is not None
        }
        """The rows of each committer, by its id."""
        self._check_tables()
        self._check_shapes()
        self._load_outbox()
        for id, states in self._by_bolt.items():
            task_of = _task_of(description.bolts[id])
            for state in states.values():
                load_state(state, stored, task_of)
        for each in self.redeliveries.values():
            load_state(each.state, stored)
        self._tasks: dict[int, TaskState] = {}
        self._check_sources(description)

    @property
    def positions(self) -> Mapping[str, bytes]:
        """The positions of the sources, by task."""
        return self.stored.positions

    @property
    def tasks(self) -> Iterable[TaskState]:
        """The state of each task that has some."""
        return self._tasks.values()

    def found(self, plan: TaskPlan) -> TaskState | None:
        """The state of a task, if it has some."""
        return self._tasks.get(plan.task)

    def epoch_of(self, number: int) -> Epoch:
        """Return an epoch of this run, as committers know it (law X10)."""
        named = self._names.get(number)
        return named or Epoch(number, self.stored.line, self.durable, self.stored.ancestors)

    def name_of(self, number: int, cut: CutEpoch | None) -> Epoch:
        """Return the open epoch, as bolts know it."""
        return _named_by(cut) if self.by_source and cut is not None else self.epoch_of(number)

    @property
    def has_changes(self) -> bool:
        """True if the open attempt has changed something, or has read it and may have, or has rows for a committer."""
        return self._changes > 0

    @property
    def _changes(self) -> int:
        changes = 0
        # Asked for by each turn of a source: sums of comprehensions would cost three times as much.
        for table in self._tables:
            changes += table.changes
        if self.outgoing:
            for outgoing in self.outgoing.values():
                changes += len(outgoing.gathered)
        if self.redeliveries:
            for redeliveries in self.redeliveries.values():
                changes += redeliveries.acks
        return changes

    def _is_large(self) -> bool:
        return self._changes >= MOST_CHANGES

    def tell_time(self, now: float) -> None:
        """Set the time, which is that of the epoch."""
        for task in self.tasks:
            task.now = now
        for state in self.states:
            state.tell(now)

    def roll_back(self) -> None:
        """Forget what the open attempt has changed (law K3)."""
        for state in (*self.states, *self.outgoing.values()):
            state.roll_back()
        for task in self.tasks:
            if task.timers is not None:
                task.timers.rolled_back()

    def seal(self, epoch: int, cut: CutEpoch | None = None) -> Sealed:
        """Commit what the open attempt has changed, as far as this process is concerned; return it for the store.
        ``cut`` is what a source has cut of the epoch. Raises :class:`TypeError`, naming state and key, or committer and
        row, for what cannot be kept, and :class:`~stormlet.errors.NotExactlyOnce` for rows that no source would bring
        again."""
        if self.by_source:
            self._name(epoch, cut)
        for state in (*self.states, *self.outgoing.values()):  # first all that can fail
            state.encode()
        appends = [append for state in self.states for append in state.seal()]
        rows: list[Rows] = []
        tables: list[TableRows] = []
        for each in self.outgoing.values():
            if isinstance(each, OutgoingTable):
                tables += _there(each.seal())
            else:
                rows += _there(each.seal(epoch, empty=self.by_source and cut is not None))
        for task in self.tasks:
            if task.timers is not None:
                task.timers.sealed()
        return Sealed(appends, rows, tables)

    def _name(self, epoch: int, cut: CutEpoch | None) -> None:
        if cut is not None:
            due = [number for each in self._committers for number, _ in each.due()]
            self._names = {number: name for number, name in self._names.items() if number in due}
            self._names[epoch] = _named_by(cut)
            return
        for id, each in self.outgoing.items():
            if each.gathered:
                raise NotExactlyOnce(
                    f"committer {id!r} has got {shortened(each.gathered[0])}, which comes from no epoch of the source, "
                    f"as from finish, tick or running.emit, and would be lost with the process; set state=, or send it "
                    f"to another bolt"
                )

    def told(self) -> None:
        """Note that the sealed epoch is durable: its rows may be delivered."""
        for state in self.states:
            state.told()
        for each in self._committers:
            each.written()

    @property
    def delivered(self) -> Sequence[tuple[str, int]]:
        """Committers that have had rows in this run, each with the last epoch that it has had."""
        return [(each.committer, each.delivered) for each in self._committers if each.delivered]

    def undelivered(self) -> Iterator[tuple[str, int, int]]:
        """Iterate over what is durable and was not delivered: committer, epoch, number of rows."""
        for each in self._committers:
            for epoch, rows in each.due():
                yield each.committer, epoch, rows

    @property
    def _committers(self) -> Sequence[Outgoing]:
        return [each for each in self.outgoing.values() if isinstance(each, Outgoing)]

    def open_epoch(self, most: int) -> OpenEpoch:
        """The first epoch of the run, of at most so many messages."""
        return OpenEpoch(EpochAccount(most, self.stored.epoch + 1), self._is_large)

    def of(self, plan: TaskPlan, spec: BoltSpec, epoch: OpenEpoch) -> TaskState:
        """The state of one task: the same for each of its instances (law K4)."""
        if plan.task not in self._tasks:
            self._tasks[plan.task] = self._made(plan, spec, epoch)
        return self._tasks[plan.task]

    def _made(self, plan: TaskPlan, spec: BoltSpec, epoch: OpenEpoch) -> TaskState:
        tables = {name: state.tables[plan.index] for name, state in self._by_bolt[plan.component].items()}
        timers = tables.get(NAME)
        readers = {(each.source.component, each.source.stream): key_reader(each) for each in spec.inputs}
        fields = {(each.source.component, each.source.stream): key_fields(each) for each in spec.inputs}
        made = Timers(timers) if isinstance(timers, MapTable) else None
        return TaskState(epoch, tables, made, readers, self.outgoing.get(plan.component), fields)

    def _load_outbox(self) -> None:
        """Have rows delivered that earlier runs have left (law X9)."""
        for rows in self.stored.outbox:
            if not isinstance(self.outgoing.get(rows.committer), Outgoing):
                raise StateUnusable(
                    f"committer {rows.committer!r} has not had its rows of epoch {rows.epoch}, and this topology has "
                    f"no committer of that id; give it its id again, or have it forgotten by `stormlet state forget`"
                )
        for each in self._committers:
            each.load(rows for rows in self.stored.outbox if rows.committer == each.committer)

    def _check_sources(self, description: Description) -> None:
        """Refuse positions of tasks that share the work in another way now (law X8)."""
        for name, position in self.stored.positions.items():
            task, _, parallelism = name.rpartition(" of ")
            component = task.rpartition("[")[0]
            spout = description.spouts.get(component)
            if spout is None:
                raise StateUnusable(
                    f"the position of {task} belongs to no spout of this topology; give the spout its id {component!r} "
                    f"again or rename it in the file (`stormlet state rename`), or run with another file, which begins "
                    f"anew"
                )
            if str(spout.parallelism) != parallelism:
                raise StateUnusable(
                    f"spout {spout.id!r} had parallelism={parallelism} when its position was kept, and has "
                    f"{spout.parallelism} now; set it as it was, or run with another file, which begins anew"
                )
            positions.check(spout, position)

    def _check_tables(self) -> None:
        """Refuse tables of users where the store has none (law X9)."""
        for each in self.outgoing.values():
            if isinstance(each, OutgoingTable) and self.stored.entries is not None:
                raise StateUnusable(
                    f"committer {each.committer!r} writes the table {each.table.name!r} of the state's own file, and "
                    f"the state is in RocksDB, which has no tables; give SqliteTable a path= of its own"
                )

    def _check_shapes(self) -> None:
        """Refuse what no bolt would read, and what it would read as something else (law K5)."""
        declared = {each.id: each.declared.shape for each in self.states}
        for id, shape in self.stored.shapes.items():
            if id not in declared:
                raise StateUnusable(_gone(id))
            if (shape.kind, shape.key) != (declared[id].kind, declared[id].key):
                raise StateUnusable(
                    f"state {str(id)!r} is a {shape.kind} by keys of type {shape.key}, and the bolt declares a "
                    f"{declared[id].kind} by {declared[id].key}; give the new one another name, or begin anew"
                )
        self.store.declare(declared)


def position_name(plan: TaskPlan) -> str:
    """Return the name that the position of a spout's task is kept under."""
    # By its id as it is: the name of a task is made printable.
    return f"{plan.component}[{plan.index}] of {plan.parallelism}"


class Sealed(msgspec.Struct, frozen=True):
    """All that bolts have brought to an epoch."""

    appends: Sequence[Append]
    outbox: Sequence[Rows]
    tables: Sequence[TableRows]


def _outgoing(id: str, rows: RowSpec) -> Outgoing | OutgoingTable:
    if rows.table is not None and rows.columns_of is not None:
        return OutgoingTable(id, rows.table, rows.columns_of)
    return Outgoing(id, rows.kind, replaces=rows.replaces)


def _named_by(cut: CutEpoch) -> Epoch:
    return Epoch(cut.number, cut.line, by_source=True)


def _there(found: T | None) -> Sequence[T]:
    return () if found is None else (found,)


def _gone(id: StateId) -> str:
    return (
        f"state {str(id)!r} belongs to no bolt of this topology; declare it again, rename its component or remove it "
        f"(`stormlet state rename`, `state forget`), or run with another file, which begins anew"
    )


def _states_of(spec: BoltSpec, stored: Stored) -> Mapping[str, State]:
    return {
        name: state_in(stored, StateId(spec.id, name), declared, spec.parallelism, _task_of(spec))
        for name, declared in spec.states.items()
    }


def _redeliveries_of(spout: str, stored: Stored) -> Redeliveries:
    return Redeliveries(spout, state_in(stored, StateId(spout, REDELIVERED), IDS))


def _task_of(spec: BoltSpec) -> Callable[[Any], int]:
    """The index of the task that has a key, by the grouping of the inputs: all of them agree (law K1)."""
    grouping = spec.inputs[0].grouping if spec.inputs else None
    return grouping.routes(spec.parallelism).of if isinstance(grouping, Fields) else first_task


async def opened_state(
    open_store: Callable[[], Store], description: Description, *, durable: bool
) -> KeptState:
    """Open a store and read it; raises :class:`~stormlet.errors.StateUnusable`. ``durable`` is false for a store that
    ends with the run. Cancelled, it ends when the store is closed again."""
    # In a thread, as a large state takes seconds; simulated time knows no threads (law L16).
    loop = asyncio.get_running_loop()
    if getattr(loop, "simulated_time", False):
        return _read(open_store, description, durable)
    # No task, which the end of a loop would cancel with all others.
    read = partial(_read, open_store, description, durable)
    reading = loop.run_in_executor(None, copy_context().run, read)
    make_way(loop, reading)
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        # The thread goes on: what it opens must be closed, or nobody could open it again.
        while not reading.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([reading])
        if reading.exception() is None:
            reading.result().store.close()
        raise


def _read(open_store: Callable[[], Store], description: Description, durable: bool) -> KeptState:
    store = open_store()
    try:
        return KeptState(store, store.load(), description, durable=durable)
    except BaseException:
        store.close()
        raise
