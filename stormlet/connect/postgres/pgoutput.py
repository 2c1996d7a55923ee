"""The messages of the plugin ``pgoutput``, which tell what a transaction has changed (protocol 1, values as text).

A relation is described before its first change, and again when that has changed. All else is of one transaction::

    Begin  Relation?  Insert | Update | Delete | Truncate ...  Commit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, Final, Literal, NamedTuple

import msgspec

Kind = Literal["insert", "update", "delete", "truncate"]
Row = dict[str, Any]

EPOCH: Final = 946_684_800
"""Seconds from 1970 to 2000, where Postgres begins to count."""
BOOL: Final = 16
NUMBERS: Final = (20, 21, 23, 26, 700, 701)
"""``int8``, ``int2``, ``int4``, ``oid``, ``float4`` and ``float8``, the types whose text is a number of JSON, except
for ``NaN`` and ``Infinity``."""
KEY: Final = 1
"""The flag of a column of the replica identity."""

_BYTE = Struct("!B")
_SHORT = Struct("!H")
_INT = Struct("!I")
_BEGIN = Struct("!QqI")
_COMMIT = Struct("!BQQq")


class Change(msgspec.Struct, frozen=True):
    """A row that was changed, or a table that was emptied. Values are as Postgres prints them, in text; numbers (except
    for ``numeric``), booleans and NULL are themselves."""

    table: str
    """With its schema: ``public.orders``."""
    kind: Kind
    row: Row = msgspec.field(default_factory=dict[str, Any])
    """The row as it is now, by its columns. A large value that an update has not changed is not there, unless the table
    has ``REPLICA IDENTITY FULL``."""
    old: Row = msgspec.field(default_factory=dict[str, Any])
    """The row as it was: the columns of its key where it was deleted or its key was changed, and all of them if the
    table has ``REPLICA IDENTITY FULL``."""


class Begin(NamedTuple):
    """A transaction begins."""

    lsn: int
    """The position of its commit."""
    committed: float
    """The time of its commit, in seconds since 1970."""


class Commit(NamedTuple):
    """The transaction is complete."""

    end: int
    """The position behind it."""


class Column(NamedTuple):
    """A column of a relation."""

    name: str
    is_key: bool
    type: int


class Relation(NamedTuple):
    """A table."""

    name: str
    columns: Sequence[Column]


class Decoder:
    """Reads the messages of one slot, in their order."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}

    def read(self, message: bytes) -> Begin | Commit | Sequence[bytes]:
        """Return what a message says: the bodies of its changes, in JSON, where it is none of the other two. Raises
        :class:`ValueError` for a message of an unknown kind."""
        reader = Reader(message)
        match kind := reader.letter():
            case b"B":
                lsn, committed, _ = reader.take(_BEGIN)
                return Begin(lsn, EPOCH + committed / 1e6)
            case b"C":
                return Commit(reader.take(_COMMIT)[2])
            case b"R":
                self._relate(reader)
            case b"I" | b"U" | b"D":
                return (self._changed(kind, reader),)
            case b"T":
                return self._truncated(reader)
            case b"O" | b"Y" | b"M":  # origins, types, and messages of other programs
                pass
            case _:
                raise ValueError(f"pgoutput has sent a message of the unknown kind {kind!r}")
        return ()

    def _relate(self, reader: Reader) -> None:
        (number,) = reader.take(_INT)
        name = f"{reader.text() or 'pg_catalog'}.{reader.text()}"
        reader.letter()
        (count,) = reader.take(_SHORT)
        self._relations[number] = Relation(name, [_column(reader) for _ in range(count)])

    def _changed(self, kind: bytes, reader: Reader) -> bytes:
        relation = self._relations[reader.take(_INT)[0]]
        old, part = Row(), reader.letter()
        if part != b"N":
            old = _tuple(reader, relation, key_only=part == b"K")
        if kind == b"D":
            return _body(relation, "delete", {"old": old})
        if part != b"N":
            reader.letter()
        row = _tuple(reader, relation, known=old)
        if kind == b"I":
            return _body(relation, "insert", {"row": row})
        return _body(relation, "update", {"row": row, "old": old} if old else {"row": row})

    def _truncated(self, reader: Reader) -> Sequence[bytes]:
        (count,) = reader.take(_INT)
        reader.letter()
        return [_body(self._relations[reader.take(_INT)[0]], "truncate", {}) for _ in range(count)]


class Reader:
    """Reads the parts of a message, one after another."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._at = 0

    def take(self, what: Struct) -> tuple[Any, ...]:
        """Return numbers."""
        taken = what.unpack_from(self._message, self._at)
        self._at += what.size
        return taken

    def letter(self) -> bytes:
        """Return one byte."""
        return self.bytes(1)

    def bytes(self, count: int) -> bytes:
        """Return so many bytes."""
        self._at += count
        return self._message[self._at - count : self._at]

    def text(self) -> str:
        """Return the text before the next zero."""
        end = self._message.index(0, self._at)
        text = self._message[self._at : end].decode()
        self._at = end + 1
        return text


def _column(reader: Reader) -> Column:
    (flags,) = reader.take(_BYTE)
    name = reader.text()
    (type_,) = reader.take(_INT)
    reader.take(_INT)  # its modifier
    return Column(name, bool(flags & KEY), type_)


def _tuple(
    reader: Reader, relation: Relation, *, key_only: bool = False, known: Mapping[str, Any] | None = None
) -> Row:
    """Return the values of a row; ``known`` are those before, for large values that are the same."""
    reader.take(_SHORT)
    row = Row()
    for column, value in _values(reader, relation.columns):
        if value is UNCHANGED:
            if known and column.name in known:
                row[column.name] = known[column.name]
        elif column.is_key or not key_only:
            row[column.name] = value
    return row


UNCHANGED: Final = object()


def _values(reader: Reader, columns: Sequence[Column]) -> Iterator[tuple[Column, Any]]:
    for column in columns:
        match reader.letter():
            case b"n":
                yield column, None
            case b"u":
                yield column, UNCHANGED
            case _:
                yield column, _value(reader.bytes(reader.take(_INT)[0]), column.type)


def _value(text: bytes, type_: int) -> object:
    if type_ in NUMBERS and text[-1:].isdigit():
        return msgspec.Raw(text)
    return text == b"t" if type_ == BOOL else text.decode()


def _body(relation: Relation, kind: Kind, rows: Mapping[str, Row]) -> bytes:
    return msgspec.json.encode({"table": relation.name, "kind": kind, **rows})
