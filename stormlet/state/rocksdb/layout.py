"""The keys and records of a directory, and the marks by which it is told from others.

======  ===================================  ==============================
letter  then                                 record
======  ===================================  ==============================
``m``                                        :class:`Head`
``h``   component and state, in msgpack      :class:`StateRow`
``p``   the task of a source                 its position
``o``   a number of 8 bytes, in order        :class:`OutboxRow`
``l``   likewise                             :class:`LetterRow`
``s``   the number of a state, and the       a blob of one entry
        bytes of the key
======  ===================================  ==============================
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from stormlet.core.state.commits import Shape, StateId
from stormlet.errors import StateUnusable
from stormlet.state.refusals import NotBegun
from stormlet.state.rocksdb.database import Database
from stormlet.state.rocksdb.epoch_note import lost
from stormlet.state.rocksdb.failures import BEGIN_ANEW, damaged

APPLICATION: Final = "stormlet"
VERSION: Final = 1
"""Number of the layout."""
HEAD: Final = b"m"
STATES: Final = b"h"
POSITIONS: Final = b"p"
OUTBOX: Final = b"o"
LETTERS: Final = b"l"
ENTRIES: Final = b"s"

T = TypeVar("T")


class Mark(msgspec.Struct, frozen=True):
    """The part of the head that each version has."""

    application: str
    version: int


class Head(Mark, frozen=True):
    """All that there is one of."""

    topology: str
    line: str
    ancestors: tuple[tuple[str, int], ...] = ()
    epoch: int = 0
    """The last one, which alone can be read."""
    closed_at: float | None = None


class StateRow(msgspec.Struct, frozen=True):
    """A state: its number, which the keys of its entries begin with, and its types."""

    number: int
    shape: Shape | None


class OutboxRow(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one epoch that a committer may not have had."""

    epoch: int
    committer: str
    blob: bytes


class LetterRow(msgspec.Struct, frozen=True, array_like=True):
    """A dead letter that its sink may not have."""

    epoch: int
    letter: bytes


def encoded(record: object) -> bytes:
    """Return a record in bytes."""
    return msgspec.msgpack.encode(record)


def decoded(path: Path, record: bytes, kind: type[T]) -> T:
    """Return a record; raise :class:`~stormlet.errors.StateUnusable` for one that is none."""
    try:
        return msgspec.msgpack.decode(record, type=kind)
    except msgspec.DecodeError as error:
        raise StateUnusable(f"{path} {damaged(str(error))}") from error


def undelivered(database: Database, letter: bytes, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Iterate over the records that have a number, with that."""
    for key, record in database.scan(letter):
        yield int.from_bytes(key[1:], "big"), decoded(database.path, record, kind)


def numbered(letter: bytes, number: int) -> bytes:
    """Return the key of a record that has a number."""
    return letter + number.to_bytes(8, "big")


def prefix_of(number: int) -> bytes:
    """Return the bytes that the keys of all entries of a state begin with."""
    return ENTRIES + number.to_bytes(4, "big")


def state_key(id: StateId) -> bytes:
    """Return the key of a state's row."""
    return STATES + encoded((id.component, id.state))


def state_rows(database: Database) -> Iterator[tuple[StateId, StateRow]]:
    """Iterate over the states."""
    for key, record in database.scan(STATES):
        names = decoded(database.path, key[1:], tuple[str, str])
        yield StateId(*names), decoded(database.path, record, StateRow)


def new_head(topology: str) -> Head:
    """Return the head of a directory that begins."""
    return Head(APPLICATION, VERSION, topology, secrets.token_hex(8))


def another_line(head: Head) -> Head:
    """Return the head of one that goes on in another line of epochs (law X10)."""
    shared = (*head.ancestors, (head.line, head.epoch))
    return msgspec.structs.replace(head, line=secrets.token_hex(8), ancestors=shared)


def head_of(database: Database, noted: int = 0) -> Head:
    """Return the head. Raise :class:`NotBegun` for an empty database, and :class:`~stormlet.errors.StateUnusable` for
    that of another program, or of a newer version, and for one without the epoch that was ``noted`` beside it."""
    record = database.get(HEAD)
    if record is None and noted:
        raise lost(database.path, noted)
    if record is None and next(database.scan(), None) is None:
        raise NotBegun(
            f"{database.path} has no state: a run was killed as it made it; a run with state= begins with it"
        )
    mark = None if record is None else _mark(record)
    if record is None or mark is None or mark.application != APPLICATION:
        raise StateUnusable(
            f"{database.path} is the RocksDB of another program; give the path of a new directory"
        )
    if mark.version > VERSION:
        raise StateUnusable(
            f"{database.path} was written by a newer version of stormlet (layout {mark.version}; this one reads up to "
            f"{VERSION}); install that version, or give the path of a new directory"
        )
    head = decoded(database.path, record, Head)
    if head.epoch < noted:
        raise lost(database.path, noted, head.epoch)
    return head


def _mark(record: bytes) -> Mark | None:
    try:
        return msgspec.msgpack.decode(record, type=Mark)
    except msgspec.DecodeError:
        return None


def check_topology(path: Path, head: Head, topology: str) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for the directory of another topology."""
    if head.topology != topology:
        raise StateUnusable(
            f"{path} has the state of the topology {head.topology!r}; give {topology!r} a directory of its own"
        )


UNFINISHED: Final = ("LOCK", "LOG", "IDENTITY", "MANIFEST-", "OPTIONS-", "rocksdict-config.json", "0")
"""Beginnings of the names of files that RocksDB makes before ``CURRENT``, which all others come after."""
DATA: Final = (".sst", ".log", ".blob")


def is_new(path: Path) -> bool:
    """Return True for a directory that is missing or empty, or was left so by a run that was killed at once. Raise
    :class:`~stormlet.errors.StateUnusable` for one that is no RocksDB."""
    names = [each.name for each in path.iterdir()] if path.exists() else []
    if "CURRENT" in names:
        return False
    if any(name.endswith(DATA) for name in names):
        raise StateUnusable(f"{path} {damaged('its file CURRENT is missing')}")
    if not all(name.startswith(UNFINISHED) for name in names):
        raise StateUnusable(f"{path} is no directory of RocksDB; give another path, or {BEGIN_ANEW}")
    return True
