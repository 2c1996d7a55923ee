"""The tables of a state file, their rows, and the marks by which it is told from other files.

Each row ends with a seal (:func:`~stormlet.state.sqlite.database.seal`).
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import msgspec

from stormlet.errors import StateUnusable
from stormlet.state.refusals import NotBegun
from stormlet.state.sqlite.database import Database

APPLICATION = 0x7374726D
"""``strm``, in the header of the file."""
VERSION = 1
"""Number of the layout."""
PAGE = 8192
"""Bytes of a page. With sqlite's usual 4096 a commit of 600 kB takes a quarter more of the processor; a small one takes
the same."""

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT, seal INTEGER) WITHOUT ROWID;
CREATE TABLE epochs (number INTEGER PRIMARY KEY, line TEXT, closed_at REAL, seal INTEGER);
CREATE TABLE positions (
    task TEXT, epoch INTEGER, position BLOB, seal INTEGER, PRIMARY KEY (task, epoch)
) WITHOUT ROWID;
CREATE TABLE shapes (
    component TEXT, state TEXT, kind TEXT, key TEXT, value TEXT, seal INTEGER, PRIMARY KEY (component, state)
) WITHOUT ROWID;
CREATE TABLE log (
    n INTEGER PRIMARY KEY, epoch INTEGER, component TEXT, state TEXT, begins_round INTEGER, blob BLOB, seal INTEGER
);
CREATE INDEX log_of_state ON log (component, state);
CREATE INDEX rounds ON log (component, state) WHERE begins_round;
CREATE TABLE outbox (n INTEGER PRIMARY KEY, epoch INTEGER, committer TEXT, blob BLOB, seal INTEGER);
CREATE TABLE letters (n INTEGER PRIMARY KEY, epoch INTEGER, letter BLOB, seal INTEGER)
"""


class MetaRow(NamedTuple):
    """``topology``, ``line`` or ``ancestors``."""

    name: str
    value: str


class EpochRow(NamedTuple):
    """An epoch that can be read; the last one is the last that is durable."""

    number: int
    line: str
    closed_at: float | None


class PositionRow(NamedTuple):
    """The position of a source after an epoch in which it has moved."""

    task: str
    epoch: int
    position: bytes


class ShapeRow(NamedTuple):
    """The types of a state."""

    component: str
    state: str
    kind: str
    key: str
    value: str


class LogRow(NamedTuple):
    """Some keys of a state and their values."""

    n: int
    epoch: int
    component: str
    state: str
    begins_round: int
    """1 for the first one of a round, else 0."""
    blob: bytes


class OutboxRow(NamedTuple):
    """Rows of one epoch that a committer may not have had."""

    n: int
    epoch: int
    committer: str
    blob: bytes


class LetterRow(NamedTuple):
    """A dead letter that its sink may not have."""

    n: int
    epoch: int
    letter: bytes


def settle(database: Database) -> None:
    """Set sqlite's parameters of a connection that writes."""
    if database.texts("PRAGMA journal_mode=WAL") != ["wal"]:
        raise StateUnusable(
            f"{database.path} cannot have a write-ahead log on its file system; keep it on a disk of this machine"
        )
    database.set("synchronous", "FULL")
    database.set("fullfsync", 1)  # on macOS, where fsync alone leaves data in the disk's cache
    database.set("checkpoint_fullfsync", 1)
    # Some builds overwrite what is deleted with zeros, so that dropped rows would cost as much as new ones.
    database.set("secure_delete", 0)


def create(database: Database, topology: str) -> None:
    """Make a state file of an empty one, whole or not at all."""
    database.set("page_size", PAGE)
    with database.transaction():
        for statement in SCHEMA.split(";"):
            database.run(statement)
        line = secrets.token_hex(8)
        database.put("meta", *MetaRow("topology", topology))
        database.put("meta", *MetaRow("line", line))
        database.put("meta", *MetaRow("ancestors", "[]"))
        database.put("epochs", *EpochRow(0, line, None))
        database.set("application_id", APPLICATION)
        database.set("user_version", VERSION)


def is_empty(database: Database) -> bool:
    """True for a file that has just been made, or was left so by a run that was killed then."""
    return not database.number("PRAGMA application_id") and not database.number(
        "SELECT count(*) FROM sqlite_master"
    )


def check_marks(database: Database) -> None:
    """Raise :class:`NotBegun` for an empty file, and :class:`~stormlet.errors.StateUnusable` for that of another
    program or of a newer version."""
    if is_empty(database):
        raise NotBegun(
            f"{database.path} is empty: no run has begun with it, or one was killed in that moment; give another path, "
            f"or start a run with it as its state="
        )
    if database.number("PRAGMA application_id") != APPLICATION:
        raise StateUnusable(
            f"{database.path} is the sqlite file of another program; give the path of a new file"
        )
    version = database.number("PRAGMA user_version")
    if version > VERSION:
        raise StateUnusable(
            f"{database.path} was written by a newer version of stormlet (layout {version}; this one reads up to "
            f"{VERSION}); install that version, or give the path of a new file"
        )


def check_topology(database: Database, topology: str) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for the file of another topology."""
    owner = meta(database, "topology")
    if owner != topology:
        raise StateUnusable(
            f"{database.path} has the state of the topology {owner!r}; give {topology!r} a file of its own"
        )


def meta(database: Database, name: str) -> str:
    """A value of the table ``meta``."""
    return database.row(MetaRow, "meta", "WHERE name = ?", name).value


def ancestors(database: Database) -> tuple[tuple[str, int], ...]:
    """The lines that this one was rewound from, each with the last epoch that both have."""
    return msgspec.json.decode(meta(database, "ancestors"), type=tuple[tuple[str, int], ...])


def begin_line(database: Database, epoch: int) -> str:
    """Begin another line of epochs after this one (law X10), and return its name."""
    line = secrets.token_hex(8)
    shared = [*ancestors(database), (meta(database, "line"), epoch)]
    kept = [(each, min(last, epoch)) for each, last in shared]
    database.put("meta", *MetaRow("ancestors", msgspec.json.encode(kept).decode()))
    database.put("meta", *MetaRow("line", line))
    return line
