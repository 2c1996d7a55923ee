"""A sink that writes the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, Unpack

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.driver.options import SinkOptions, checked
from stormlet.connect.postgres.batches import BatchSession, columns_of
from stormlet.connect.postgres.connection import Connection, Tls, connected, quoted, translated
from stormlet.connect.session import ConnectContext, Item
from stormlet.connect.sink import Sink
from stormlet.errors import BrokerRefused, InvalidTopology

T = TypeVar("T")

COLUMNS: Final = """SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"""


class Upsert(Sink[T]):
    """Writes a row of a table for each value: a new one, or, where one has the same ``key``, in its stead.

    A value is a record or a mapping with the names of the columns. Without a ``key`` each row is a new one. A row that
    the table never takes, by its types or constraints, is rejected: its message is a dead letter (law S6).
    """

    def __init__(
        self,
        url: str | None,
        table: str,
        *,
        key: Sequence[str] = (),
        columns: Sequence[str] = (),
        row: Callable[[T], Mapping[str, object]] | None = None,
        ca_file: str | None = None,
        insecure: bool = False,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``key`` are columns with a unique index. ``columns`` are those that are written, all of the table unless they
        are given. ``row`` makes the columns of a value. ``ca_file`` and ``insecure`` are those of
        :class:`~stormlet.connect.postgres.queue.QueueSettings`."""
        super().__init__(url, **options)
        self.table = table
        self._key = _listed("key", key)
        self._columns = _listed("columns", columns)
        self._made = row
        self._tls = checked(Tls(ca_file, insecure))

    @property
    def writes(self) -> str:
        """The table."""
        return self.table

    async def begin(self, address: Address, context: ConnectContext) -> BatchSession:
        """Connect, and see that the table has the columns."""
        connection = await connected(address, f"{context.topology}: {context.consumer}", self._tls)
        try:
            types = await self._types(connection)
            statement = self._statement(types)
            with translated(address, connecting=True):
                await connection.ask(statement, *[list[object]() for _ in types])
        except BaseException:
            await connection.close()
            raise
        names = list(types)
        places = [names.index(name) for name in self._key]

        async def insert(rows: Sequence[Sequence[Any]]) -> None:
            await connection.ask(statement, *columns_of(_last(rows, places)))

        return BatchSession(connection, lambda item: self._row(item, names), insert)

    async def _types(self, connection: Connection) -> dict[str, str]:
        with translated(connection.address, connecting=True):
            rows = await connection.ask(COLUMNS, quoted(self.table))
        types = {str(row["name"]): str(row["type"]) for row in rows}
        wanted = self._columns or tuple(types)
        if missing := [name for name in {*wanted, *self._key} if name not in types]:
            raise BrokerRefused(
                f"{connection.address}: the table {self.table!r} has no column {missing[0]!r}"
            )
        if arrays := [name for name in wanted if types[name].endswith("[]")]:
            raise BrokerRefused(
                f"{connection.address}: the column {arrays[0]!r} of {self.table!r} is an array, which is not written "
                "in batches: leave it out by columns=, or make it jsonb"
            )
        return {name: types[name] for name in wanted}

    def _statement(self, types: Mapping[str, str]) -> str:
        names = ", ".join(map(_name, types))
        given = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(types.values(), 1))
        insert = f"INSERT INTO {quoted(self.table)} ({names}) SELECT * FROM unnest({given})"
        if not self._key:
            return insert
        others = [_name(name) for name in types if name not in self._key]
        update = (
            f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}" if others else "NOTHING"
        )
        return f"{insert} ON CONFLICT ({', '.join(map(_name, self._key))}) DO {update}"

    def _row(self, item: Item, names: Sequence[str]) -> list[Any]:
        value: T = item.value
        given = msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value
        row: Any = given if self._made is None else self._made(value)
        return (
            [row[name] for name in names]
            if isinstance(row, Mapping)
            else [getattr(row, name) for name in names]
        )


def _listed(option: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str | bytes):
        raise InvalidTopology(f"{option}={names!r} must be a list, such as [{names!r}]")
    return tuple(names)


def _name(column: str) -> str:
    return quoted(column.replace(".", "\0")).replace("\0", ".")


def _last(rows: Sequence[Sequence[Any]], places: Sequence[int]) -> Sequence[Sequence[Any]]:
    """Of rows with the same key the last: one statement cannot write a row twice."""
    if not places:
        return rows
    return list({tuple(row[place] for place in places): row for row in rows}.values())
