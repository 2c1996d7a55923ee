"""One connection to a file: transactions, and rows with seals."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar
from zlib import crc32

import msgspec

from stormlet.core.state.commits import Column
from stormlet.errors import StateUnusable
from stormlet.state.places import may_be_written
from stormlet.state.sqlite.failures import Damaged, damaged, named
from stormlet.state.sqlite.read_only import (
    IMMUTABLE,
    Look,
    is_without_room,
    log_size,
    look_at,
    options_for,
    written_meanwhile,
)

PATIENCE = 30.0
"""Seconds to wait for another program that writes to the file."""

Row: TypeAlias = tuple[Column, ...]
T = TypeVar("T")


def seal(row: Row) -> int:
    """The checksum by which a row that the disk has changed is told: sqlite has none of its own."""
    return crc32(msgspec.msgpack.encode(row))


def _refuse_emptied(path: Path) -> None:
    """Refuse an empty file that has had epochs, whose log sqlite would remove, also to read it. One without a log is
    new, or was left so by a run that was killed at once: sqlite makes an empty file first."""
    if path.exists() and not path.stat().st_size and log_size(path) > 0:
        raise StateUnusable(f"{path} {damaged('it is empty, and the -wal file beside it is not')}")


class Database:
    """One connection. Its methods raise :class:`~stormlet.errors.StateUnusable`, and block."""

    def __init__(self, path: Path, mode: Literal["ro", "rw", "rwc"]) -> None:
        """Open a file: ``rwc`` makes one that is missing, ``ro`` changes nothing of what it has."""
        self.path = path
        self._as_it_was: Look | None = None
        _refuse_emptied(path)
        options = "mode=rwc" if mode == "rwc" else "mode=rw"
        # Whoever may write the file reads it so, too, and mends what a killed run has left.
        if mode == "ro" and (not may_be_written(path) or is_without_room(path)):
            look = look_at(path)
            options = options_for(path, look)
            self._as_it_was = look if options == IMMUTABLE else None
        with named(path):
            self._connection = sqlite3.connect(
                f"{path.as_uri()}?{options}",
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
        self._connection.text_factory = _text
        if mode == "ro":
            self.set("query_only", 1)

    def close(self) -> None:
        """Let go of the file."""
        with named(self.path):
            self._connection.close()

    def set(self, name: str, value: object) -> None:
        """Give one of sqlite's parameters a value."""
        self.run(f"PRAGMA {name}={value}")

    def number(self, query: str, *values: Column) -> int:
        """The one number that a query finds."""
        with named(self.path):
            return int(self._connection.execute(query, values).fetchone()[0])

    def texts(self, query: str, *values: Column) -> list[str]:
        """The texts that a query finds."""
        with named(self.path):
            return [str(text) for (text,) in self._connection.execute(query, values)]

    def run(self, statement: str, *values: Column) -> int:
        """Carry out one statement, and return the number of rows that it has changed."""
        with named(self.path):
            return self._connection.execute(statement, values).rowcount

    def run_many(self, statement: str, rows: Iterable[Sequence[Column]]) -> None:
        """Carry out one statement for each of these rows."""
        with named(self.path):
            self._connection.executemany(statement, rows)

    def put(self, table: str, *row: Column) -> None:
        """Write one row, in the place of one with the same key."""
        marks = ", ".join("?" * (len(row) + 1))
        self.run(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", *row, seal(row))

    def rows(self, kind: Callable[..., T], table: str, rest: str = "", *values: Column) -> Iterator[T]:
        """The rows of a table, each with its seal compared. ``rest`` follows the table's name in the query."""
        with named(self.path):
            for *row, mark in self._connection.execute(f"SELECT * FROM {table} {rest}", values):
                if mark != seal(tuple(row)):
                    raise Damaged(f"a row of its table {table} is not as it was written")
                yield kind(*row)

    def row(self, kind: Callable[..., T], table: str, rest: str, *values: Column) -> T:
        """The row that must be there."""
        with named(self.path):
            for row in self.rows(kind, table, rest, *values):
                return row
            raise Damaged(f"a row of its table {table} is missing")

    def check(self) -> None:
        """Raise :class:`~stormlet.errors.StateUnusable` if something is missing or misplaced, which no seal shows."""
        with named(self.path):
            found = self.texts("PRAGMA quick_check(1)")
            if found != ["ok"]:
                raise Damaged(found[0].splitlines()[-1])  # below a headline

    @contextmanager
    def transaction(self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Generator[None]:
        """Make all that is written within durable when it ends, or nothing of it if it raises; ``DEFERRED`` reads one
        state of the file throughout."""
        self.run(f"BEGIN {kind}")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self._roll_back()
            self._check_as_it_was()  # else what a run has written meanwhile would look like damage
            raise
        self._check_as_it_was()

    def _check_as_it_was(self) -> None:
        if self._as_it_was is not None and look_at(self.path) != self._as_it_was:
            raise written_meanwhile(self.path)

    def _roll_back(self) -> None:
        # Sqlite has done it by itself after some errors; what the file has is right in any case.
        with suppress(StateUnusable):
            if self._connection.in_transaction:
                self.run("ROLLBACK")

    def copy_to(self, other: Database) -> None:
        """Copy all of it, as it is at one moment."""
        with named(other.path):
            self._connection.backup(other._connection)
        self._check_as_it_was()


def _text(found: bytes) -> str:
    # What is no text any more has another seal.
    return found.decode(errors="replace")
