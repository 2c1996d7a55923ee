"""Tables of users: in the file of the state, written by the commit of an epoch, and in another one (law X9)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from stormlet import Epoch, InvalidTopology, SqliteTable, StateUnusable, Topology, TopologyCrashed

pytestmark = pytest.mark.simulated_time(allow_leaks=["errors"])


class Entry(msgspec.Struct, frozen=True):
    """A row."""

    id: int
    account: str
    cents: float


class Odd(msgspec.Struct, frozen=True):
    """A row with columns that sqlite does not know."""

    day: date
    price: Decimal
    tags: list[str]
    is_new: bool
    note: str | None = None


ENTRIES = [Entry(number, f"account {number % 2}", number / 4) for number in range(5)]


def topology(rows: Sequence[object], table: SqliteTable[Any], **options: object) -> Topology:
    """A topology that writes rows to a table, two to an epoch."""
    made = Topology("writing", **{"epoch_messages": 2, **options})  # type: ignore[arg-type]
    made.bolt("write", table, made.spout("rows", list(rows)).shuffle())
    return made


async def run(made: Topology) -> None:
    async with made.run() as running:
        await running.finished()


def found(path: Path, table: str) -> list[tuple[object, ...]]:
    """The rows of a table."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f'SELECT * FROM "{table}"').fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.state"


async def test_rows_are_in_the_file_of_the_state(path: Path) -> None:
    """One for each record, once, also when the run comes again."""
    for _ in range(2):
        await run(topology(ENTRIES, SqliteTable("entries", Entry), state=path))
    assert found(path, "entries") == [(each.id, each.account, each.cents) for each in ENTRIES]


async def test_rows_are_in_another_file(tmp_path: Path, path: Path) -> None:
    """With a note of their epoch, by which each comes once."""
    other = tmp_path / "other.db"
    for _ in range(2):
        await run(topology(ENTRIES, SqliteTable("entries", Entry, path=other), state=path))
    assert len(found(other, "entries")) == len(ENTRIES)
    assert [(sink, epoch) for sink, _, epoch in found(other, "stormlet_sinks")] == [("writing/write", 3)]


async def test_a_file_that_is_no_database_is_refused_at_the_start(tmp_path: Path) -> None:
    """Nothing has been emitted by then, and it stays as it is; one that is empty becomes one."""
    other = tmp_path / "notes.txt"
    other.write_text("important")
    with pytest.raises(
        TopologyCrashed, match=r"notes\.txt is no database of SQLite; give the table another path="
    ):
        await run(topology(ENTRIES, SqliteTable("entries", Entry, path=other)))
    assert other.read_text() == "important"
    other.write_text("")
    await run(topology(ENTRIES, SqliteTable("entries", Entry, path=other)))
    assert len(found(other, "entries")) == len(ENTRIES)


async def test_a_file_of_rows_needs_no_state(tmp_path: Path) -> None:
    """Then each run adds what it has read."""
    other = tmp_path / "other.db"
    for _ in range(2):
        await run(topology(ENTRIES, SqliteTable("entries", Entry, path=other)))
    assert len(found(other, "entries")) == 2 * len(ENTRIES)


async def test_an_epoch_that_a_file_has_is_passed_over(tmp_path: Path) -> None:
    """As after a kill between the write and the note of it."""
    committer = SqliteTable("entries", Entry, path=tmp_path / "other.db")()
    committer._sink = "a/b"  # type: ignore[attr-defined]
    for _ in range(2):
        assert committer.commit(Epoch(1, "line"), ENTRIES) is None
    assert len(found(tmp_path / "other.db", "entries")) == len(ENTRIES)
    said = (
        r"other\.db, table 'entries': epoch 1 is of another line, as the state began anew: .* the sink 'a/b'"
    )
    with pytest.raises(StateUnusable, match=said):
        committer.commit(Epoch(1, "other"), ENTRIES)


async def test_a_key_has_rows_replaced(path: Path) -> None:
    """The last one of a key stays."""
    await run(topology(ENTRIES, SqliteTable("entries", Entry, key="account"), state=path))
    assert sorted(found(path, "entries")) == [(3, "account 1", 0.75), (4, "account 0", 1.0)]


@pytest.mark.parametrize("kind", [Entry, int])
async def test_a_row_that_is_all_key_stays(path: Path, kind: type[Any]) -> None:
    """There is nothing that another one of that key could change."""
    names = [name for name, _ in SqliteTable("keys", kind).table.columns]
    rows = [*ENTRIES, *ENTRIES] if kind is Entry else [1, 2, 1]
    await run(topology(rows, SqliteTable("keys", kind, key=names), state=path))
    assert len(found(path, "keys")) == len(set(rows))


async def test_a_table_that_has_another_key_is_refused(path: Path) -> None:
    """Rows would take the place of wrong ones, or stay beside those that they should replace."""
    await run(topology(ENTRIES, SqliteTable("entries", Entry, key="id"), state=path))
    for key in (["account"], ["id", "account"]):
        with pytest.raises(TopologyCrashed, match=f"'entries' is there without the key '{', '.join(key)}'"):
            await run(
                topology([*ENTRIES, Entry(9, "x", 1.0)], SqliteTable("entries", Entry, key=key), state=path)
            )
    assert len(found(path, "entries")) == len(ENTRIES)


async def test_a_table_of_ones_own_may_have_its_key_by_an_index_and_more_columns(path: Path) -> None:
    """What is not in the row stays as it is."""
    other = path.with_name("own.db")
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE entries (note TEXT, id INTEGER, account TEXT UNIQUE, cents REAL)")
        database.execute("INSERT INTO entries VALUES ('kept', 0, 'account 1', 0)")
        database.commit()
    await run(topology(ENTRIES, SqliteTable("entries", Entry, path=other, key="account"), state=path))
    assert found(other, "entries") == [("kept", 3, "account 1", 0.75), (None, 4, "account 0", 1.0)]


async def test_columns_of_other_types_are_text(path: Path) -> None:
    """As JSON has them."""
    row = Odd(date(2026, 2, 3), Decimal("1.50"), ["a", "b"], is_new=True)
    await run(topology([row], SqliteTable("odd", Odd), state=path))
    assert found(path, "odd") == [("2026-02-03", "1.50", '["a","b"]', 1, None)]


async def test_values_that_are_no_records_have_one_column(path: Path) -> None:
    """It is called ``value``."""
    await run(topology(["a", "b"], SqliteTable("letters of users", str), state=path))
    assert found(path, "letters of users") == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            Odd(date(2026, 2, 3), Decimal(1), [], is_new=False),
            "is of type Odd, and the table 'entries' has rows of",
        ),
        (Entry(2**70, "a", 0.0), "has more than 64 bits"),
    ],
)
async def test_a_row_that_does_not_fit_crashes_the_run(path: Path, row: object, message: str) -> None:
    """Nothing of its epoch is kept."""
    with pytest.raises(TopologyCrashed, match=f"committer 'write': .*{message}"):
        await run(topology([*ENTRIES[:2], row], SqliteTable("entries", Entry), state=path))
    assert len(found(path, "entries")) == 2


async def test_a_table_that_does_not_take_the_rows_crashes_the_run(path: Path) -> None:
    """The error says that it is the table."""
    await run(topology(ENTRIES[:1], SqliteTable("entries", Entry), state=path))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE UNIQUE INDEX once ON entries (account)")
    with pytest.raises(
        TopologyCrashed, match="rows do not fit the table 'entries': UNIQUE constraint failed"
    ):
        await run(topology(ENTRIES, SqliteTable("entries", Entry), state=path))


def test_a_table_of_the_state_needs_a_state() -> None:
    """There is no file otherwise."""
    made = topology(ENTRIES, SqliteTable("entries", Entry))
    with pytest.raises(
        InvalidTopology, match=r"bolt 'write' writes the table 'entries' of the state's own file"
    ):
        made.run()


@pytest.mark.parametrize("name", ["", "log", "Outbox", "sqlite_master", "stormlet_sinks"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    """With the way out."""
    with pytest.raises(InvalidTopology, match=r"give (it|this one) another"):
        SqliteTable(name, Entry)


def test_a_table_may_have_a_name_of_the_state_in_another_file(tmp_path: Path) -> None:
    """There it is nobody's."""
    assert SqliteTable("log", Entry, path=tmp_path / "other.db").table.name == "log"


def test_a_key_that_is_no_field_is_refused() -> None:
    """With the fields that there are."""
    with pytest.raises(InvalidTopology, match="no field 'number'; they have id, account, cents"):
        SqliteTable("entries", Entry, key="number")


def test_rows_that_cannot_be_kept_are_refused() -> None:
    """A record says what it is made of."""
    with pytest.raises(InvalidTopology, match="table 'things': its rows"):
        SqliteTable("things", cast("type[object]", object))


async def test_a_committer_that_is_fed_by_two(path: Path) -> None:
    """Each row comes once."""

    def some(begin: int) -> Iterator[Entry]:
        yield from ENTRIES[begin::2]

    made = Topology("two", state=path)
    sources = [made.spout(f"rows {begin}", [*some(begin)]) for begin in (0, 1)]
    made.bolt("write", SqliteTable("entries", Entry), sources[0].shuffle(), sources[1].shuffle())
    await run(made)
    assert sorted(found(path, "entries")) == sorted((each.id, each.account, each.cents) for each in ENTRIES)
