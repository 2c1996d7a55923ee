"""Tables of users in the file of the state, which the commit of an epoch writes to (law X9)."""

from __future__ import annotations

import sqlite3

from stormlet.core.state.commits import Table, TableRows
from stormlet.errors import StateUnusable
from stormlet.state.sqlite.database import Database

OWN = ("meta", "epochs", "positions", "shapes", "log", "outbox", "letters")
"""The tables of the layout."""


def write_rows(database: Database, rows: TableRows) -> None:
    """Write the rows of one epoch, and make the table if it is missing.

    Raises :class:`~stormlet.errors.StateUnusable` for rows that do not fit the table.
    """
    table = rows.table
    make_table(database, table)
    names = ", ".join(quoted(name) for name, _ in table.columns)
    marks = ", ".join("?" * len(table.columns))
    try:
        database.run_many(
            f"INSERT INTO {quoted(table.name)} ({names}) VALUES ({marks}){_upsert(table)}", rows.rows
        )
    except StateUnusable as error:
        cause = error.__cause__
        if isinstance(cause, sqlite3.IntegrityError) or _code(cause) == sqlite3.SQLITE_ERROR:
            raise StateUnusable(f"{database.path}: {_misfit(table, str(cause))}") from cause
        raise


def _upsert(table: Table) -> str:
    """The words by which a row takes the place of an earlier one. Sqlite refuses them where the table that is there has
    no such key."""
    if not table.key:
        return ""
    others = [quoted(name) for name, _ in table.columns if name not in table.key]
    action = (
        f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}" if others else "NOTHING"
    )
    return f" ON CONFLICT ({', '.join(map(quoted, table.key))}) DO {action}"


def _misfit(table: Table, cause: str) -> str:
    if "ON CONFLICT" in cause:
        key = ", ".join(table.key)
        return f"the table {table.name!r} is there without the key {key!r}; add a unique index, or name another table"
    return f"rows do not fit the table {table.name!r}: {cause}; change the table, or the rows"


def _code(error: BaseException | None) -> int | None:
    return getattr(error, "sqlite_errorcode", None)


def make_table(database: Database, table: Table) -> None:
    """Make a table if it is missing."""
    columns = [f"{quoted(name)} {kind}".rstrip() for name, kind in table.columns]
    key = [f"PRIMARY KEY ({', '.join(map(quoted, table.key))})"] if table.key else []
    database.run(f"CREATE TABLE IF NOT EXISTS {quoted(table.name)} ({', '.join([*columns, *key])})")


def user_tables(database: Database) -> list[str]:
    """Return the names of the tables that are no part of the layout."""
    names = database.texts("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for name in names if name not in OWN and not name.startswith("sqlite_")]


def quoted(name: str) -> str:
    """Return a name as sqlite takes any."""
    return '"' + name.replace('"', '""') + '"'
