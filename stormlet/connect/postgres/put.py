"""A sink that adds rows to a queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack

from stormlet.connect.address import Address
from stormlet.connect.driver.options import SinkOptions, checked
from stormlet.connect.postgres.batches import BatchSession, columns_of
from stormlet.connect.postgres.connection import Tls, connected, quoted
from stormlet.connect.postgres.table import check_queue
from stormlet.connect.session import ConnectContext, Item
from stormlet.connect.sink import Sink

T = TypeVar("T")


class PutSettings(Tls, frozen=True, kw_only=True):
    """Options of :class:`Put`, beside those of all sinks."""

    create: bool


class Put(Sink[T]):
    """Adds a row for each value to a table that is a queue: its JSON in ``body``, and the origin of its message in
    ``origin``. Whoever waits for rows is notified."""

    def __init__(
        self,
        url: str | None,
        table: str,
        *,
        key: Callable[[T], str] | None = None,
        create: bool = False,
        ca_file: str | None = None,
        insecure: bool = False,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``key`` makes the ``key`` of a row; ``create``, ``ca_file`` and ``insecure`` are those of
        :class:`~stormlet.connect.postgres.queue.QueueSettings`."""
        super().__init__(url, **options)
        self.table = table
        self._key = key
        self._create = create
        self._tls = checked(PutSettings(ca_file, insecure, create=create))

    @property
    def writes(self) -> str:
        """The table."""
        return self.table

    async def begin(self, address: Address, context: ConnectContext) -> BatchSession:
        """Connect, and find or make the table."""
        connection = await connected(address, f"{context.topology}: {context.consumer}", self._tls)
        try:
            kind = await check_queue(connection, self.table, create=self._create)
        except BaseException:
            await connection.close()
            raise
        given = "bytea" if kind == "bytea" else "text"
        statement = f"""WITH added AS (
    INSERT INTO {quoted(self.table)} (body, key, origin)
    SELECT body::{kind}, key, origin
    FROM unnest($1::{given}[], $2::text[], $3::text[]) WITH ORDINALITY AS r(body, key, origin, place) ORDER BY place
) SELECT pg_notify($4, '')"""

        async def insert(rows: Sequence[Sequence[Any]]) -> None:
            await connection.ask(statement, *columns_of(rows), self.table)

        return BatchSession(connection, self._row if given == "bytea" else self._text, insert)

    def _row(self, item: Item) -> tuple[bytes, str | None, str | None]:
        key = None if self._key is None else self._key(item.value)
        return self.encode(item.value), key, None if item.origin is None else str(item.origin)

    def _text(self, item: Item) -> tuple[str, str | None, str | None]:
        body, key, origin = self._row(item)
        return body.decode(), key, origin
