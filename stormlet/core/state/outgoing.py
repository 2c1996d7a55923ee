"""Rows on their way to a committer: gathered in an epoch, durable with it, then delivered in order (law X9, X10).

Theory of operation
-------------------
A committer is not called while its epoch is open, as the epoch may still be forgotten. Its inputs are *gathered*. When
the epoch is sealed they become one blob, which is part of the commit. What is *due* is delivered after that, by the
number of the epoch, as often as it takes. So the rows that come with a number never change, whatever fails between: a
committer that remembers the number of the last epoch can tell what it has had (:meth:`Epoch.follows`).

The rows are what the blob says, also the first time: then they are the same after ``kill -9``. That they do come back
from their bytes as they were given is proved before the commit, as nothing could be done about it after that.

A committer with a :class:`~stormlet.core.state.commits.Table` needs none of that: its rows are written by the commit
itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import GenericAlias
from typing import Any

import msgspec

from stormlet.core.shortened import shortened
from stormlet.core.state.codecs import words_of
from stormlet.core.state.commits import Column, Rows, Table, TableRows
from stormlet.errors import StateUnusable

_encode = msgspec.msgpack.Encoder().encode


class Epoch(msgspec.Struct, frozen=True):
    """The epoch that rows belong to, by which a :class:`~stormlet.Committer` is made idempotent (law X9)."""

    number: int
    """From 1, one more for each; the rows of a number never change. See :attr:`by_source`."""
    line: str
    """The line of epochs that it belongs to: another one after the state was rewound, or restored from a copy (law
    X10). Without ``state=`` each run has a line of its own."""
    is_durable: bool = True
    """False without ``state=``, unless it is :attr:`by_source`."""
    ancestors: Sequence[tuple[str, int]] = ()
    """The lines that its own was rewound from, each with the last of its epochs that belong to this line too."""
    by_source: bool = False
    """True where a source cuts epochs and there is no ``state=`` (law X8): number and line are the source's. If the
    process dies before all committers have had it, it comes again, maybe with other rows of the same messages."""

    def follows(self, last: Epoch | None) -> bool:
        """Return True if the rows of this epoch are new to a sink that has had those up to ``last``, None for one that
        has had none; False if it has them.

        Raises :class:`ValueError` where it has rows that this line of epochs knows nothing of: somebody must decide
        which ones are to stay.
        """
        if last is None:
            return True
        if last.line == self.line:
            return self.number > last.number
        if not self.is_durable:
            return True
        shared = dict(self.ancestors).get(last.line, 0)
        if last.number > shared:
            begun, way_out = "the state began anew", "remove them, and the note of that"
            if self.by_source:
                begun = "its source is another one or had a state"
            if shared:
                begun = f"the state was rewound to epoch {shared:,}"
                way_out = f"remove those after epoch {shared:,}, and note that it has had epoch {shared:,}"
            raise ValueError(
                f"{self} is of another line, as {begun}: the sink has rows up to epoch {last.number:,}; "
                f"{way_out}"
            )
        return self.number > last.number

    def __str__(self) -> str:
        return f"epoch {self.number:,}"


class _Due(msgspec.Struct, frozen=True):
    epoch: int
    blob: bytes
    rows: int


class Outgoing:
    """The rows of one committer."""

    def __init__(self, committer: str, kind: Any, *, replaces: bool = False) -> None:
        """``kind`` is the type of the rows; Any for plain data. ``replaces`` is true for one that replaces the rows of
        an epoch that comes again."""
        self.committer = committer
        self._replaces = replaces
        self.gathered: list[Any] = []
        """The rows of the open attempt, in the order in which they came."""
        self._kind = kind
        self._read: Callable[[bytes], list[Any]] = msgspec.msgpack.Decoder(GenericAlias(list, (kind,))).decode
        self._proved: bytes | None = None
        self._sealed: _Due | None = None
        self._due: deque[_Due] = deque()
        self.delivered = 0
        """The last epoch that the committer has had in this run."""

    @property
    def is_due(self) -> bool:
        """True if rows that are durable wait for the committer."""
        return bool(self._due)

    @property
    def first(self) -> tuple[int, Sequence[Any]]:
        """The epoch that is delivered next, and its rows; there must be one."""
        # Read anew for each call: a commit that fails may have changed what it was given.
        due = self._due[0]
        return due.epoch, self._read(due.blob)

    def load(self, outbox: Iterable[Rows]) -> None:
        """Take what earlier runs have not delivered. Raises :class:`~stormlet.errors.StateUnusable` for rows that do
        not decode as they are declared now."""
        for rows in outbox:
            try:
                self._due.append(_Due(rows.epoch, rows.blob, len(self._read(rows.blob))))
            except msgspec.DecodeError as error:
                raise StateUnusable(
                    f"rows of epoch {rows.epoch} were not delivered to committer {self.committer!r}, and are no "
                    f"{words_of(self._kind)} now: {error}; run once with the types as they were"
                ) from error

    def roll_back(self) -> None:
        """Forget the rows of the open attempt (law K3)."""
        self.gathered = []
        self._proved = None

    def encode(self) -> None:
        """Encode the rows of the open attempt for :meth:`seal`. Raises :class:`TypeError`, naming committer and row,
        for one that does not come back as it is; nothing has changed then."""
        try:
            self._proved = self._encoded(self.gathered)
        except Exception as error:  # too deep, a field that is unset, or what the class itself raises
            row, why = next(filter(None, map(self._fault, self.gathered)), (self.gathered, error))
            known = "plain data" if self._kind is Any else words_of(self._kind)
            raise TypeError(
                f"committer {self.committer!r}: the row {shortened(row)} cannot be kept as {known}: {why}; declare the "
                f"type of its rows, as in Committer[Entry], and emit what is of that type"
            ) from why

    def _encoded(self, rows: list[Any]) -> bytes:
        blob = _encode(rows)
        back: list[Any] = self._read(blob)
        # Without a declared type a record has the bytes of a dict.
        if _encode(back) != blob or (self._kind is Any and back != rows):
            raise TypeError("they come back as other values")
        return blob

    def _fault(self, row: Any) -> tuple[Any, Exception] | None:
        """Return a row that does not come back by itself, and the reason."""
        try:
            self._encoded([row])
        except Exception as error:  # as above
            return row, error
        return None

    def seal(self, epoch: int, *, empty: bool = False) -> Rows | None:
        """Return the rows of the epoch for the store, if there are any; with ``empty`` also that there are none, for a
        committer that replaces what it may have had of this epoch."""
        if not self.gathered and not (empty and self._replaces):
            return None
        if self._proved is None:
            self.encode()
        assert self._proved is not None
        blob, self._proved = self._proved, None
        self._sealed = _Due(epoch, blob, len(self.gathered))
        self.gathered = []
        return Rows(self.committer, epoch, blob)

    def written(self) -> None:
        """Note that the sealed epoch is durable: its rows are due."""
        if self._sealed is not None:
            self._due.append(self._sealed)
            self._sealed = None

    def due(self) -> Sequence[tuple[int, int]]:
        """Return the epochs that wait for the committer, each with the number of its rows."""
        return [(each.epoch, each.rows) for each in self._due]

    def had(self) -> None:
        """The committer has had the first of what is due."""
        self.delivered = self._due.popleft().epoch


class OutgoingTable:
    """The rows of a committer that the store itself writes, in the transaction of their epoch."""

    def __init__(self, committer: str, table: Table, columns_of: Callable[[Any], Sequence[Column]]) -> None:
        """``columns_of`` gives the columns of a row; it raises :class:`TypeError` for one that has none."""
        self.committer = committer
        self.table = table
        self.gathered: list[Any] = []
        """The rows of the open attempt, in the order in which they came."""
        self._columns_of = columns_of
        self._encoded: TableRows | None = None

    def roll_back(self) -> None:
        """Forget the rows of the open attempt (law K3)."""
        self.gathered = []
        self._encoded = None

    def encode(self) -> None:
        """Encode the rows of the open attempt for :meth:`seal`. Raises :class:`TypeError`, naming the committer."""
        try:
            self._encoded = TableRows(self.table, [self._columns_of(row) for row in self.gathered])
        except TypeError as error:
            raise TypeError(f"committer {self.committer!r}: {error}") from error

    def seal(self) -> TableRows | None:
        """Return the rows of the epoch for the store, if there are any."""
        if not self.gathered:
            return None
        if self._encoded is None:
            self.encode()
        encoded, self._encoded = self._encoded, None
        self.gathered = []
        return encoded
