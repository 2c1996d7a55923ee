"""All that is kept under a component's id: its states, the positions of its tasks, and rows that it has not had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stormlet.core.state.commits import Column, StateId
from stormlet.state.refusals import component_of, refuse_no_state, refuse_taken, refuse_unknown
from stormlet.state.sqlite.database import Database, Row
from stormlet.state.sqlite.layout import ShapeRow


class Kept(NamedTuple):
    """Rows of one table."""

    table: str
    column: str
    """The one that has the name."""
    place: int
    """… which is the one with this number, from 0."""
    name: str


def drop(database: Database, component: str) -> None:
    """Forget all of it. Raises :class:`~stormlet.errors.StateUnusable` if there is nothing."""
    with database.transaction():
        refuse_unknown(database.path, component, components(database))
        for kept in _kept(database, component):
            database.run(f"DELETE FROM {kept.table} WHERE {kept.column} = ?", kept.name)


def drop_state(database: Database, state: StateId) -> None:
    """Forget one state of a component, and nothing else of it. Raises :class:`~stormlet.errors.StateUnusable` if there
    is none."""
    with database.transaction():
        refuse_no_state(database.path, state, states(database))
        for table in ("log", "shapes"):
            database.run(
                f"DELETE FROM {table} WHERE component = ? AND state = ?", state.component, state.state
            )


def states(database: Database) -> set[StateId]:
    """The states that have a shape or a value."""
    shapes = database.rows(ShapeRow, "shapes")
    rows = database.texts("SELECT DISTINCT component || char(0) || state FROM log")
    return {StateId(row.component, row.state) for row in shapes} | {
        StateId(*row.split("\0", 1)) for row in rows
    }


def rename(database: Database, old: str, new: str) -> None:
    """Have it go by another id. Raises :class:`~stormlet.errors.StateUnusable` if there is nothing, or if there is
    something of that other id."""
    with database.transaction():
        known = components(database)
        refuse_unknown(database.path, old, known)
        refuse_taken(database.path, old, new, known)
        for kept in _kept(database, old):
            _rename(database, kept, f"{new}{kept.name.removeprefix(old)}")


def _rename(database: Database, kept: Kept, name: str) -> None:
    where = f"WHERE {kept.column} = ?"
    rows = list(database.rows(_row, kept.table, where, kept.name))
    database.run(f"DELETE FROM {kept.table} {where}", kept.name)
    for row in rows:
        database.put(kept.table, *row[: kept.place], name, *row[kept.place + 1 :])


def components(database: Database) -> set[str]:
    """The ids by which something is kept."""
    named = database.texts(
        "SELECT component FROM log UNION SELECT component FROM shapes UNION SELECT committer FROM outbox"
    )
    return {*named, *map(component_of, _tasks(database))}


def _kept(database: Database, component: str) -> Iterator[Kept]:
    yield Kept("log", "component", 2, component)
    yield Kept("shapes", "component", 0, component)
    yield Kept("outbox", "committer", 2, component)
    for task in _tasks(database):
        if component_of(task) == component:
            yield Kept("positions", "task", 0, task)


def _tasks(database: Database) -> list[str]:
    return database.texts("SELECT DISTINCT task FROM positions")


def _row(*columns: Column) -> Row:
    return columns
