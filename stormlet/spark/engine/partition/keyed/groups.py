"""Key groups: the parts of a task's keyed state that are read and written as a whole.

Theory of operation
-------------------
A key is in one of 256 groups, by its stable hash, and a task has the part of each group that its grouping gives it. The
rows that bring a group back to its task stay as they are until something in it changes: an epoch writes the groups that
it has changed, and its record refers to those of earlier epochs for the others
(:mod:`stormlet.spark.engine.stream.checkpoint`). So what an epoch writes depends on what it has changed, and not on how
large the state is.

All groups come to their task in each epoch, as nobody knows before which keys it will meet. But a group stays *closed*,
as the bytes that it was read as, until one of its keys is asked for. It is also opened when its time has come: that of
its first timer, or the one when values are older than twice their ``ttl`` and must not stay for ever (law K6). A batch
opens all groups and writes them all, and so does the first epoch of a run open them, so that a value that cannot be
decoded any more fails the start (law K5).

A blob has some entries of one state, in the bytes that a state file has: a msgpack map from keys to values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import msgspec

from stormlet.core.keys import stable_hash
from stormlet.core.state.codecs import encoded
from stormlet.core.state.commits import StateId
from stormlet.core.state.map_table import AnyTable
from stormlet.core.state.states import State
from stormlet.core.state.timers import NAME
from stormlet.core.state.value_table import ValueTable
from stormlet.spark.engine.partition.rows import FIRST, Kind, Row
from stormlet.spark.engine.planning.numbering import Place, StatePlan

GROUPS: Final = 256
MOST_ENTRIES: Final = 10_000
"""Entries of a blob."""
MOST_BYTES: Final = 8 << 20
"""Bytes of a blob, unless one value has more."""
UNWRITTEN: Final = -1
"""Stands for the epoch of a row that no epoch has written yet."""


def group_of(key: object) -> int:
    """Return the group of a key."""
    return stable_hash(key) % GROUPS


class GroupId(NamedTuple):
    """The part of a group that one task has."""

    stage: int
    partition: int
    group: int


class Blob(msgspec.Struct, frozen=True, omit_defaults=True):
    """Some entries of one state in one group: the payload of a row."""

    component: str
    state: str
    entries: bytes
    """A msgpack map, as in a state file."""
    due: float | None = None
    """The time from which on the group must be opened."""

    @property
    def id(self) -> StateId:
        """The state that they are of."""
        return StateId(self.component, self.state)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Blob).decode


class Group:
    """One group of one task."""

    __slots__ = ("blobs", "entries", "is_changed")

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        """All of it, while it is closed."""
        self.entries: dict[str, list[Any]] = {}
        """The entries that each state had when it was opened; and in the end, those that were changed."""
        self.is_changed = False
        """True if it is to be written."""


class Groups:
    """Those of one task."""

    def __init__(self, states: Mapping[str, State], plan: StatePlan, *, writes_all: bool) -> None:
        self._states = states
        self._plan = plan
        self._writes_all = writes_all
        self._groups: dict[int, Group] = {}
        self._changed: dict[str, dict[Any, None]] = {name: {} for name in states}
        """The entries that have changed, by state."""
        self.closed: set[int] = set()
        """The numbers of those that are closed."""
        self._rows: dict[int, list[Row]] = {}
        """The rows of each group that have come, until it begins."""

    def take(self, row: Row) -> None:
        """Take a row that :func:`rows_of` has made, in any order; one that an epoch has written before the last that
        has written its group does not count."""
        rows = self._rows.setdefault(row.target, [])
        if rows and row.size > rows[0].size:
            rows.clear()
        if not rows or row.size == rows[0].size:
            rows.append(row)

    def begin(self) -> Sequence[Row]:
        """Begin with all rows that have come, and open the groups whose time has come; return the rows that count.
        Raise :class:`~stormlet.errors.StateUnusable` for what does not decode."""
        taken, self._rows = [row for rows in self._rows.values() for row in rows], {}
        due = {row.target for row in taken if self._close(row)}
        for number in due:
            self._groups[number].is_changed = True  # what is too old in it is left out when it is written
        for number in list(self.closed) if self._plan.opens_all else due:
            self._open(number)
        return taken

    def _close(self, row: Row) -> bool:
        """Take what a row brings to its group; return True if the time of the group has come."""
        blob, group = blob_in(row), self._of(row.target)
        group.blobs.append(blob)
        group.is_changed |= self._writes_all or row.size == UNWRITTEN or row.size in self._plan.rewritten
        self.closed.add(row.target)
        return blob.due is not None and blob.due <= self._plan.now

    def open_for(self, key: object) -> None:
        """Open the group of a key."""
        number = group_of(key)
        if number in self.closed:
            self._open(number)

    def note(self, name: str, delta: Iterable[Any]) -> None:
        """Note the entries of a state that change."""
        self._changed[name] |= dict.fromkeys(delta)

    def rows(self, place: Place) -> Sequence[Row]:
        """Return the rows of those that are to be written, in the end."""
        for name, changed in self._changed.items():
            for number, entry in zip(_groups_of(self._states[name].tables[0], changed), changed, strict=True):
                group = self._of(number)
                assert not group.blobs, "the group of a key is opened when the key is read"
                group.is_changed = True
                group.entries.setdefault(name, []).append(entry)
        changed_ = [(number, each) for number, each in sorted(self._groups.items()) if each.is_changed]
        return rows_of(place, {number: self._blobs(each) for number, each in changed_}, self._plan.epoch)

    def _of(self, number: int) -> Group:
        group = self._groups.get(number)
        if group is None:
            group = self._groups[number] = Group()
        return group

    def _open(self, number: int) -> None:
        group = self._groups[number]
        for id, blobs in by_state(group.blobs).items():
            state = self._states[id.state]
            entries = state.read(blobs)
            group.entries[id.state] = [*entries]
            state.tables[0].take(entries)
        group.blobs = []
        self.closed.discard(number)

    def _blobs(self, group: Group) -> Sequence[Blob]:
        found = group.blobs or [
            blob for name, entries in group.entries.items() for blob in blobs_of(self._states[name], entries)
        ]
        if found:
            return found
        id = next(
            iter(self._states.values())
        ).id  # one without entries takes the place of those that were there
        return [Blob(id.component, id.state, encoded({}))]


def rows_of(place: Place, groups: Mapping[int, Sequence[Blob]], epoch: int) -> Sequence[Row]:
    """Return the rows that bring groups to the task at this place."""
    blobs = chain.from_iterable([(number, blob) for blob in each] for number, each in groups.items())
    return [
        Row(
            Kind.KEYED,
            place.stage,
            place.partition,
            target=group,
            producer=FIRST,
            number=number,
            size=epoch,
            payload=_encode(blob),
        )
        for number, (group, blob) in enumerate(blobs)
    ]


def id_of(row: Row) -> GroupId:
    """Return the group of a row."""
    return GroupId(row.stage, row.partition, row.target)


def blob_in(row: Row) -> Blob:
    """Return the blob of a row."""
    return _decode(row.payload)


def by_state(blobs: Iterable[Blob]) -> Mapping[StateId, list[bytes]]:
    """Return the entries of each state, in the order of the blobs."""
    found: dict[StateId, list[bytes]] = {}
    for blob in blobs:
        found.setdefault(blob.id, []).append(blob.entries)
    return found


def by_group(table: AnyTable) -> Mapping[int, Sequence[Any]]:
    """Return the entries of a table by their groups."""
    found: dict[int, list[Any]] = {}
    entries = list(table.entries())
    for number, entry in zip(_groups_of(table, entries), entries, strict=True):
        found.setdefault(number, []).append(entry)
    return found


def _groups_of(table: AnyTable, entries: Iterable[Any]) -> Iterator[int]:
    keys = entries if isinstance(table, ValueTable) else (key for key, _ in entries)
    return (hashed % GROUPS for hashed in map(stable_hash, keys))


def blobs_of(state: State, entries: Iterable[Any], task: int = 0) -> Iterator[Blob]:
    """Iterate over blobs of these entries of one group, as far as the table of a task has them."""
    table, left = state.tables[task], iter(dict.fromkeys(entries))
    while taken := list(islice(left, MOST_ENTRIES)):
        for part, blob in _parts(table.in_log(table.portion(taken))):
            yield Blob(state.id.component, state.id.state, blob, _due(state, table, part))


def _due(state: State, table: AnyTable, entries: Iterable[Any]) -> float | None:
    """The time from which on a group with these entries must be opened."""
    if state.id.state == NAME:
        return float(min(at for _, at in entries))
    if table.declared.ttl is None:
        return None
    return float(min(map(table.time_of, entries))) + 2 * table.declared.ttl


def _parts(entries: Mapping[Any, Any]) -> Iterator[tuple[Mapping[Any, Any], bytes]]:
    if not entries:
        return
    blob = encoded(entries)
    if len(blob) <= MOST_BYTES or len(entries) == 1:
        yield entries, blob
        return
    keys = list(entries)
    middle = len(keys) // 2
    for half in (keys[:middle], keys[middle:]):
        yield from _parts({key: entries[key] for key in half})
