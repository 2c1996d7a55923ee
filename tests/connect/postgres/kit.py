"""A Postgres that is reached by TCP, another client of it, and sessions of ours without a topology."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import msgspec

from stormlet.connect import postgres
from stormlet.connect.address import read_address
from stormlet.connect.driver.context import SourceTask
from stormlet.connect.postgres.capture import ChangesSession
from stormlet.connect.postgres.session import QueueSession
from stormlet.core.settlement.prefix import Prefix
from tests.brokers.processes import HOST, free_ports
from tests.connect import place
from tests.connect.sessions import begun, write
from tests.examples.postgres_server import USER, Server

LOGICAL = "-c wal_level=logical -c max_replication_slots=20"
"""Options of a server that tells what is changed."""
SLOT = "ours"
PUBLICATION = "Our tables"


class Postgres(Server):
    """A server that listens on loopback, and is killed and started again on its data."""

    def __init__(self, programs: Path, folder: Path, more: str = "") -> None:
        (self.port,) = free_ports(1)
        self._more = more
        super().__init__(programs, folder)

    @property
    def options(self) -> str:
        """Options of the server."""
        return f"{super().options} -c listen_addresses={HOST} -p {self.port} -c synchronous_commit=on {self._more}"

    def database(self, name: str) -> str:
        """Make an empty database, and return its URL."""
        self._run("createdb", "-h", HOST, "-p", str(self.port), "-U", USER, name)
        return f"postgresql://{USER}@{HOST}:{self.port}/{name}"

    def kill(self) -> None:
        """Stop it as if it had failed."""
        self.stop()

    def restart(self) -> None:
        """Stop it as if it had failed, and start it again."""
        self.stop()
        self.start()


class Place(place.Place):
    """A database with a queue ``orders``."""

    has_leases = True

    def __init__(self, url: str, name: str = "orders") -> None:
        super().__init__(url, name)
        self.client: asyncpg.Connection

    async def __aenter__(self) -> Place:
        self.client = await asyncpg.connect(self.url)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def again(self) -> None:
        """Connect again, to a server that was down."""
        self.client = await asyncpg.connect(self.url)

    async def add(self, *bodies: str, table: str = "orders") -> None:
        """Add rows, as anybody may."""
        await self.client.execute(f"INSERT INTO {table} (body) SELECT unnest($1::text[])", bodies)

    async def rows(self, columns: str = "body", table: str = "orders") -> list[Any]:
        """The rows of a table, by their ids; of one column its values."""
        found = [
            tuple(row.values())
            for row in await self.client.fetch(f"SELECT {columns} FROM {table} ORDER BY 1")
        ]
        return [row[0] for row in found] if "," not in columns else found

    async def drop_slots(self) -> None:
        """Drop what a database cannot be dropped with, when nobody is at it any more."""
        for (slot,) in await self.client.fetch(
            "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
        ):
            await self.client.execute("SELECT pg_drop_replication_slot($1)", slot)

    @asynccontextmanager
    async def capturing(
        self, *, url: str = "", behind: str | None = None, again: bool = False, **options: Any
    ) -> AsyncIterator[ChangesSession]:
        """A session of a source of changes, which may go on behind one of them, in this process or ``again``."""
        given = {"slot": SLOT, "publication": PUBLICATION, "create": True, "poll": 0.05, **options}
        source = postgres.Changes(url or self.url, **given)
        source._has_begun = again
        context = msgspec.structs.replace(
            changes_context(), resume=None if behind is None else {SLOT: behind}
        )
        session = await source.begin(read_address(source.url or "", where="here"), context)
        try:
            yield session
        finally:
            await session.close()

    def consuming(self, *, credit: int = 100, **options: Any) -> AbstractAsyncContextManager[QueueSession]:
        """A session of a source."""
        return begun(self.source(**{"create": True, **options}), credit)

    # As a place.

    async def fill(self, *bodies: str) -> None:
        await write(postgres.Put[str](self.url, self.name, create=True), *bodies)

    async def undone(self) -> int:
        return len(await self.rows("id", self.name))

    def through(self, port: int) -> str:
        return through(self.url, port)

    def source(self, *, url: str = "", **options: Any) -> postgres.Queue[Any]:
        return postgres.Queue(url or self.url, self.name, **options)

    def sink(self, *, url: str = "") -> postgres.Upsert[str]:
        return postgres.Upsert[str](url or self.url, "done", key=["id"], row=_row)

    async def make_outputs(self) -> None:
        await self.client.execute("CREATE TABLE done (id int PRIMARY KEY)")

    async def outputs(self) -> list[str]:
        return [str(id) for id in await self.rows("id", "done")]


def _row(number: str) -> dict[str, int]:
    return {"id": int(number)}


def through(url: str, port: int) -> str:
    """The same URL with another port."""
    before, _, after = url.rpartition(":")
    return f"{before}:{port}/{after.partition('/')[2]}"


def changes_context(parallelism: int = 1) -> SourceTask:
    """What the driver gives a source of changes."""

    def revoke(places: object) -> Awaitable[Any]:
        raise AssertionError("nobody else reads a slot")

    names = ("topology", "orders", 0, parallelism, "host-orders-0", 1, Random(1))
    return SourceTask(*names, 100, lambda name, most: Prefix(name, most), revoke, lambda places: None)
