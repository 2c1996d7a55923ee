"""The keyed state of one partition: that of the one bolt to which all of its inputs go (law K1).

The tables are those of a run in process (:mod:`stormlet.core.state.tables`), and so are the blobs in which they leave:
a msgpack map from keys to values. So a state file and a run on Spark have the same bytes for a state, and each goes
over into the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from stormlet.core.state.codecs import encoded
from stormlet.core.state.commits import StateId
from stormlet.core.state.epochs import EpochAccount
from stormlet.core.state.map_table import AnyTable, MapTable
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME, Timers
from stormlet.model.checks.keyed import key_reader
from stormlet.model.description import BoltSpec
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.task_state import TaskState
from stormlet.runtime.epoch import OpenEpoch
from stormlet.spark.engine.partition.rows import FIRST, Kind, Row
from stormlet.spark.engine.planning.numbering import Place

MOST_ENTRIES: Final = 10_000
"""Entries of a blob."""
MOST_BYTES: Final = 8 << 20
"""Bytes of a blob, unless one value has more."""


class Blob(msgspec.Struct, frozen=True):
    """Some entries of one state: the payload of a row."""

    component: str
    state: str
    entries: bytes
    """A msgpack map, as in a state file."""

    @property
    def id(self) -> StateId:
        """The state that they are of."""
        return StateId(self.component, self.state)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Blob).decode


class KeyedTables:
    """The state of one task."""

    def __init__(self, plan: TaskPlan, spec: BoltSpec, place: Place, now: float) -> None:
        self._plan = plan
        self._place = place
        self._states = {
            name: State(StateId(spec.id, name), declared) for name, declared in spec.states.items()
        }
        tables = {name: state.tables[0] for name, state in self._states.items()}
        timers = tables.get(NAME)
        readers = {(each.source.component, each.source.stream): key_reader(each) for each in spec.inputs}
        self._epoch = OpenEpoch(EpochAccount(1))
        self._task = TaskState(
            self._epoch, tables, Timers(timers) if isinstance(timers, MapTable) else None, readers
        )
        self._task.now = now
        for state in self._states.values():
            state.tell(now)
        self._arrived: list[Blob] = []
        self.attempt = self._epoch.attempt
        """The trees that have reached it."""

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
        tables = [state.tables[0] for state in self._states.values()]
        deltas = [table.delta() for table in tables]  # all that can fail
        for table, delta in zip(tables, deltas, strict=True):
            table.merge(delta)
        # The timers are not told: those for a time that is past are due in the next run, or epoch, which loads them.

    def load(self, row: Row) -> None:
        """Take a row that :meth:`rows` has made, or the like of it; the last one of all completes the state. Raise
        :class:`~stormlet.errors.StateUnusable` for what does not decode."""
        self._arrived.append(_decode(row.payload))
        if len(self._arrived) < row.size:
            return
        for name, blobs in by_state(self._arrived).items():
            self._states[name.state].load(blobs)
        if self._task.timers is not None:
            self._task.timers.load()
        self._arrived = []

    def rows(self) -> Sequence[Row]:
        """Return the rows that bring all of it back to its place."""
        blobs = [blob for state in self._states.values() for blob in blobs_of(state.id, state.tables[0])]
        return rows_for(self._place, self.task, blobs)


def rows_for(place: Place, task: int, blobs: Sequence[Blob]) -> Sequence[Row]:
    """Return the rows that bring these blobs to a task at this place."""
    return [
        Row(
            Kind.KEYED,
            place.stage,
            place.partition,
            target=task,
            producer=FIRST,
            number=number,
            size=len(blobs),
            payload=_encode(blob),
        )
        for number, blob in enumerate(blobs)
    ]


def blob_in(row: Row) -> Blob:
    """Return the blob of a row."""
    return _decode(row.payload)


def by_state(blobs: Sequence[Blob]) -> Mapping[StateId, list[bytes]]:
    """Return the entries of each state, in the order of the blobs."""
    found: dict[StateId, list[bytes]] = {}
    for blob in blobs:
        found.setdefault(blob.id, []).append(blob.entries)
    return found


def blobs_of(id: StateId, table: AnyTable) -> Iterator[Blob]:
    """Iterate over blobs of all that a table has."""
    entries = table.entries()
    while taken := list(islice(entries, MOST_ENTRIES)):
        for part in _parts(table.in_log(table.portion(taken))):
            yield Blob(id.component, id.state, part)


def _parts(entries: Mapping[Any, Any]) -> Iterator[bytes]:
    if not entries:
        return
    blob = encoded(entries)
    if len(blob) <= MOST_BYTES or len(entries) == 1:
        yield blob
        return
    keys = list(entries)
    middle = len(keys) // 2
    for half in (keys[:middle], keys[middle:]):
        yield from _parts({key: entries[key] for key in half})
