"""The record of an epoch that becomes durable as a whole, and the interface of the stores that keep such records (law
X1).

Theory of operation
-------------------
A store knows nothing of topologies. It appends what a :class:`Commit` brings in one transaction, and gives all of it
back as :class:`Stored` when a run begins.

Keyed state is a *log of blobs*: each blob is a msgpack map from keys to values, in which nil stands for a key that was
deleted. Loading a state means to go through its blobs in their order, so that the newest value of a key wins. The log
would grow for ever; so a state rewrites all of its live keys bit by bit, beside what has changed, round after round.
The first blob of a round says so by :attr:`Append.begins_round`. By then the round before has written every key that
was alive, so that what is older than the beginning of that round says nothing any more, and the store drops it. A round
goes over the keys of all tasks that share a state. A run that begins does not know how far the last round has come, so
that it writes all keys once before it begins another.

A store may keep the newest value of each key instead, and find it by its key (:class:`Entries`). Then states need not
be in memory (:mod:`stormlet.core.state.lazy`), there are no rounds, and no epoch but the last can be read.

An epoch can be read as long as the store has the blobs since the beginning of the last round but one that had begun by
then. :attr:`Commit.history` has the store keep them for longer.

What is durable when ``commit`` returns is all of the epoch, whatever happens to the process or the machine. A commit
that raises has left nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec


class StateId(msgspec.Struct, frozen=True, order=True):
    """The name of one state: law K1 has no state without a name."""

    component: str
    """The bolt."""
    state: str
    """The name that the bolt declares it by."""

    def __str__(self) -> str:
        return f"{self.component}.{self.state}"


class Shape(msgspec.Struct, frozen=True):
    """The types of a state as the program that wrote it declared them, in words (law K5)."""

    kind: str
    """``value``, ``map`` or ``list``; with `` with ttl`` behind it where each entry has the time when it was
    written."""
    key: str
    value: str


class Append(msgspec.Struct, frozen=True):
    """One more blob of one state."""

    state: StateId
    blob: bytes
    """A msgpack map from keys to values; nil for a key that was deleted."""
    begins_round: bool = False
    """True for the first blob of another round over all keys."""


class Rows(msgspec.Struct, frozen=True):
    """The rows of one epoch for one committer."""

    committer: str
    epoch: int
    blob: bytes


Column: TypeAlias = str | int | float | bytes | None


class Table(msgspec.Struct, frozen=True):
    """A table beside the state, which the commit of an epoch writes to (law X9)."""

    name: str
    columns: Sequence[tuple[str, str]]
    """Names and types of the columns, in the words of sqlite."""
    key: Sequence[str] = ()
    """The columns by which a row takes the place of an earlier one; without them rows are added."""


class TableRows(msgspec.Struct, frozen=True):
    """The rows of one epoch for one table."""

    table: Table
    rows: Sequence[Sequence[Column]]


class Commit(msgspec.Struct, frozen=True):
    """All of one epoch that is to be durable."""

    epoch: int
    """Its number; one more than that of the commit before (law X2)."""
    closed_at: float
    """Seconds since 1970."""
    positions: Mapping[str, bytes]
    """The positions of the sources that have moved, by task: ``lines[0]``."""
    appends: Sequence[Append] = ()
    outbox: Sequence[Rows] = ()
    letters: Sequence[bytes] = ()
    """Dead letters of the epoch, which their sink does not have yet (law X1)."""
    delivered: Sequence[tuple[str, int]] = ()
    """Committers, each with the last epoch whose rows it has had: these rows and the ones before are dropped."""
    letters_delivered: int = 0
    """The last epoch whose dead letters their sink has."""
    tables: Sequence[TableRows] = ()
    history: float = 0.0
    """Seconds before ``closed_at`` since when each epoch stays readable (law K8)."""


class Entries(Protocol):
    """The entries of one state in a store that finds each by its key, so that they need not be in memory. They are
    those of the last commit; methods may be called while the next one goes on, and then see it whole or not at all.

    A key is given in its bytes (:func:`~stormlet.core.state.blobs.bytes_of_key`), an entry is a blob that has it alone.
    Methods raise :class:`~stormlet.errors.StateUnusable` for what cannot be read.
    """

    def get(self, key: bytes) -> bytes | None:
        """One entry; None if there is none."""
        ...

    def scan(self, prefix: bytes = b"", begin: bytes = b"") -> Iterator[bytes]:
        """Iterate over the entries whose keys begin so, in the order of the bytes, as they are when it begins;
        ``begin`` leaves out those with smaller keys."""
        ...

    def last(self, prefix: bytes) -> bytes | None:
        """The last one of these; None if there is none."""
        ...


class Stored(msgspec.Struct, frozen=True):
    """All that is durable."""

    line: str
    """The line of epochs that these belong to; another one after a rewind."""
    epoch: int = 0
    """The last one that is durable; 0 before the first."""
    closed_at: float | None = None
    positions: Mapping[str, bytes] = {}
    shapes: Mapping[StateId, Shape] = {}
    states: Mapping[StateId, Sequence[bytes]] = {}
    """The blobs of each state, oldest first."""
    outbox: Sequence[Rows] = ()
    """Rows that were not delivered, by epoch."""
    letters: Sequence[tuple[int, bytes]] = ()
    """Dead letters that their sink may not have, with their epochs."""
    ancestors: Sequence[tuple[str, int]] = ()
    """The lines that this one was rewound from, each with the last of its epochs that belong to this line too."""
    entries: Callable[[StateId], Entries] | None = None
    """The entries of each state, where the store finds them by their keys; then ``states`` has none of them."""

    def blobs(self, state: StateId) -> Iterable[bytes]:
        """The blobs of a state, oldest first."""
        return self.states.get(state, ()) if self.entries is None else self.entries(state).scan()

    def in_memory(self) -> Stored:
        """The same, with all entries in memory."""
        if self.entries is None:
            return self
        states = {id: blobs for id in self.shapes if (blobs := tuple(self.entries(id).scan()))}
        return msgspec.structs.replace(self, states=states, entries=None)


class Store(Protocol):
    """Keeps the epochs of one topology.

    The methods block, and are called by one thread at a time. They raise
    :class:`~stormlet.errors.StateUnusable` for what cannot be read or written, naming the place and the way out.
    """

    def load(self) -> Stored:
        """All that is durable."""
        ...

    def declare(self, shapes: Mapping[StateId, Shape]) -> None:
        """Note the types that the program has declared, before its first commit (law K5)."""
        ...

    def commit(self, commit: Commit) -> None:
        """Make this epoch durable, as a whole."""
        ...

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        """Note the last epoch whose rows each committer has had, and the last one whose dead letters their sink has,
        where no further commit would say so."""
        ...

    def at(self, epoch: int) -> Stored:
        """All that was durable after this epoch, if it is still kept."""
        ...

    def backup(self, path: str) -> None:
        """Write a copy of all that is durable, while a run goes on (``state save``)."""
        ...

    def close(self) -> None:
        """Let go of the store, so that another run can have it."""
        ...
