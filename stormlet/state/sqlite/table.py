"""A sink for records: a table of sqlite, in the state's own file or in another one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec

from stormlet.core.records import field_names, known_annotations
from stormlet.core.shortened import shortened
from stormlet.core.state.codecs import LEAST_INT, single_class, unfit
from stormlet.core.state.commits import Column, Table, TableRows
from stormlet.core.state.outgoing import Epoch
from stormlet.errors import InvalidTopology, StateUnusable
from stormlet.model.components import TaskContext
from stormlet.model.state.committers import Committer, TableFactory
from stormlet.state.places import absolute, check_place, is_database
from stormlet.state.sqlite.database import Database
from stormlet.state.sqlite.user_tables import OWN, write_rows

T = TypeVar("T")

TYPES: Final[dict[object, str]] = {bool: "INTEGER", int: "INTEGER", float: "REAL", bytes: "BLOB"}
"""Types of columns; any other is TEXT."""
PLAIN: Final = (str, float, bytes, type(None))
MOST_INT: Final = 2**63 - 1
"""The largest int that sqlite can hold."""
SINKS: Final = Table(
    "stormlet_sinks", [("sink", "TEXT"), ("line", "TEXT"), ("epoch", "INTEGER")], key=("sink",)
)
"""The last epoch that each sink has had, in a file that is not the state's."""


class SqliteTable(TableFactory[T]):
    """A table of records, each of which is written exactly once (law X9).

    ::

        topology.bolt("write", SqliteTable("entries", Entry), entries.global_())

    Without ``path`` the table is in the file of the topology's state, and rows are written in the very transaction that
    makes their epoch durable. With ``path`` it is in another file, where a table ``stormlet_sinks`` notes the last
    epoch.

    ``kind`` is a record class, whose fields are the columns, or a basic type, of which there is one column ``value``.
    A table that is missing is made. ``key`` names fields by which a row takes the place of an earlier one. Datetimes,
    decimals and the like are written as text, as JSON has them, lists, dicts and records as JSON.

    Raises :class:`~stormlet.errors.InvalidTopology` for a name or a key that cannot be, and rows of a type that sqlite
    cannot hold.
    """

    def __init__(
        self,
        name: str,
        kind: type[T],
        *,
        path: str | os.PathLike[str] | None = None,
        key: str | Sequence[str] = (),
    ) -> None:
        names = (key,) if isinstance(key, str) else tuple(key)
        _check(name, kind, names, in_state=path is None)
        self.kind = kind
        self.in_state = path is None
        self.table = Table(name, list(_columns(kind)), names)
        self.file = None if path is None else absolute(path)
        self._fields = field_names(kind)
        self._class = single_class(kind)

    def __call__(self) -> Committer[T]:
        """Make the committer."""
        return _Kept[T]() if self.file is None else _InFile(self, self.file)

    def columns_of(self, row: T) -> Sequence[Column]:
        """Return the columns of a row; raise :class:`TypeError` for one of another type."""
        if self._class is not None and not isinstance(row, self._class):
            raise TypeError(
                f"the row {shortened(row)} is of type {type(row).__name__}, and the table {self.table.name!r} has rows "
                f"of type {self._class.__name__}"
            )
        if self._fields is None:
            return (_column(row),)
        return tuple(_column(getattr(row, name)) for name in self._fields)


class _Kept(Committer[T]):
    """Its rows are written by the store."""

    def commit(self, epoch: Epoch, rows: Sequence[T]) -> None:
        raise NotImplementedError("rows of a table in the state are written by the commit of their epoch")


class _InFile(Committer[T]):
    """Writes rows to a file, with a note of their epoch in the same transaction."""

    def __init__(self, table: SqliteTable[T], path: Path) -> None:
        self._table = table
        self._path = path
        self._sink = ""

    def prepare(self, context: TaskContext) -> None:
        check_place(self._path)
        self._check_file()
        self._sink = f"{context.topology}/{context.component}"

    def _check_file(self) -> None:
        with suppress(OSError):  # of a file that cannot be read, which sqlite names
            if self._path.is_file() and self._path.stat().st_size and not is_database(self._path):
                raise StateUnusable(f"{self._path} is no database of SQLite; give the table another path=")

    def commit(self, epoch: Epoch, rows: Sequence[T]) -> Awaitable[None] | None:
        # Simulated time knows no threads (law L16).
        if getattr(asyncio.get_running_loop(), "simulated_time", False):
            self._write(epoch, rows)
            return None
        return asyncio.to_thread(self._write, epoch, rows)

    def _write(self, epoch: Epoch, rows: Sequence[T]) -> None:
        written = TableRows(self._table.table, [self._table.columns_of(row) for row in rows])
        with closing(Database(self._path, "rwc")) as database:
            database.set("synchronous", "FULL")
            with database.transaction():
                if self._is_new(epoch, database):
                    write_rows(database, written)
                    note = (self._sink, epoch.line, epoch.number)
                    write_rows(database, TableRows(SINKS, [note]))

    def _is_new(self, epoch: Epoch, database: Database) -> bool:
        try:
            return epoch.follows(self._last(database))
        except ValueError as error:
            raise StateUnusable(
                f"{self._path}, table {self._table.table.name!r}: {error}; the note is the row of the sink "
                f"{self._sink!r} in the table {SINKS.name!r} there"
            ) from error

    def _last(self, database: Database) -> Epoch | None:
        if not database.number("SELECT count(*) FROM sqlite_master WHERE name = ?", SINKS.name):
            return None
        lines = database.texts(f"SELECT line FROM {SINKS.name} WHERE sink = ?", self._sink)
        if not lines:
            return None
        return Epoch(database.number(f"SELECT epoch FROM {SINKS.name} WHERE sink = ?", self._sink), lines[0])


def _check(name: str, kind: object, key: Sequence[str], *, in_state: bool) -> None:
    where = f"table {name!r}"
    lowered = name.lower()
    if not name.strip() or lowered.startswith("sqlite_") or lowered == SINKS.name:
        raise InvalidTopology(f"{where}: sqlite cannot have a table of that name; give it another one")
    if in_state and lowered in OWN:
        raise InvalidTopology(
            f"{where}: the state has a table of that name itself; give this one another name"
        )
    fault = unfit(kind)
    if fault is not None:
        raise InvalidTopology(f"{where}: its rows: {fault}")
    names = [column for column, _ in _columns(kind)]
    for each in key:
        if each not in names:
            raise InvalidTopology(f"{where}: its rows have no field {each!r}; they have {', '.join(names)}")


def _columns(kind: object) -> Sequence[tuple[str, str]]:
    names = field_names(kind) if isinstance(kind, type) else None
    if names is None:
        return [("value", TYPES.get(kind, "TEXT"))]
    hints = known_annotations(kind)
    return [(name, TYPES.get(hints.get(name), "TEXT")) for name in names]


def _column(value: object) -> Column:
    if isinstance(value, int):
        return _fitting(int(value))
    if isinstance(value, PLAIN):
        return value
    plain = cast("object", msgspec.to_builtins(value, order="deterministic"))
    if isinstance(plain, int):
        return _fitting(plain)
    return plain if isinstance(plain, PLAIN) else msgspec.json.encode(plain).decode()


def _fitting(value: int) -> int:
    if not LEAST_INT <= value <= MOST_INT:
        raise TypeError(f"{value} has more than 64 bits, which sqlite cannot hold; write it as text")
    return value
