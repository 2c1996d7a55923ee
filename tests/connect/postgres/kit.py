"""A Postgres that is reached by TCP, another client of it, and sessions of ours without a topology."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import asyncpg

from stormlet.connect import postgres
from stormlet.connect.address import read_address
from stormlet.connect.driver.context import SourceTask
from stormlet.connect.postgres.capture import ChangesSession
from stormlet.connect.postgres.session import QueueSession
from stormlet.connect.session import Delivery, Item, Rejection, Session, Settlement, Written
from stormlet.connect.sink import Sink
from stormlet.core.settlement.prefix import Prefix
from tests.brokers.processes import HOST, free_ports
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

    def restart(self) -> None:
        """Stop it as if it had failed, and start it again."""
        self.stop()
        self.start()


class Place:
    """A database with a queue ``orders``."""

    def __init__(self, url: str) -> None:
        self.url = url
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
    async def capturing(self, *, url: str = "", **options: Any) -> AsyncIterator[ChangesSession]:
        """A session of a source of changes."""
        given = {"slot": SLOT, "publication": PUBLICATION, "create": True, "poll": 0.05, **options}
        source = postgres.Changes(url or self.url, **given)
        session = await source.begin(read_address(source.url or "", where="here"), changes_context())
        try:
            yield session
        finally:
            await session.close()

    @asynccontextmanager
    async def consuming(
        self, *, url: str = "", credit: int = 100, **options: Any
    ) -> AsyncIterator[QueueSession]:
        """A session of a source."""
        source = postgres.Queue(url or self.url, "orders", **{"create": True, **options})
        session = await source.begin(read_address(source.url or "", where="here"), context(credit))
        try:
            yield session
        finally:
            await session.close()

    async def write(self, sink: Sink[Any], *values: object) -> Sequence[Written]:
        """Write values by a sink's session."""
        session = await sink.begin(read_address(sink.url or "", where="here"), context())
        try:
            return await session.write([each if isinstance(each, Item) else Item(each) for each in values])
        finally:
            await session.close()


def through(url: str, port: int) -> str:
    """The same URL with another port."""
    before, _, after = url.rpartition(":")
    return f"{before}:{port}/{after.partition('/')[2]}"


def context(credit: int = 100, connection: int = 1) -> SourceTask:
    """What the driver gives a source; tables have no partitions."""

    def take(name: str, most: int) -> Prefix[Any]:
        raise AssertionError(f"{name} is no partition")

    def revoke(places: object) -> Awaitable[Any]:
        raise AssertionError("there are no partitions")

    names = ("topology", "orders", 0, 1, "host-orders-0", connection, Random(1))
    return SourceTask(*names, credit, take, revoke, lambda places: None)


def changes_context(parallelism: int = 1) -> SourceTask:
    """What the driver gives a source of changes."""

    def revoke(places: object) -> Awaitable[Any]:
        raise AssertionError("nobody else reads a slot")

    names = ("topology", "orders", 0, parallelism, "host-orders-0", 1, Random(1))
    return SourceTask(*names, 100, lambda name, most: Prefix(name, most), revoke, lambda places: None)


async def received(session: Session, count: int, within: float = 5.0) -> list[Delivery]:
    """Receive until there are so many, or nothing comes any more."""
    got = list[Delivery]()
    while len(got) < count and (more := await session.receive(count - len(got), within)):
        got += more
    return got


def bodies(deliveries: Sequence[Delivery]) -> list[str]:
    """Their bodies, as text."""
    return [delivery.body.decode() for delivery in deliveries]


def done(*deliveries: Delivery) -> Settlement:
    """These are done."""
    return Settlement(done=[delivery.receipt for delivery in deliveries])


def returned(*deliveries: Delivery) -> Settlement:
    """These are given back."""
    return Settlement(returned=[delivery.receipt for delivery in deliveries])


def rejected(delivery: Delivery, reason: str) -> Settlement:
    """This one is given up."""
    return Settlement(rejected=[Rejection(delivery.receipt, reason)])


def numbered(count: int) -> list[str]:
    """The texts ``"0"``, ``"1"`` and so on."""
    return list(map(str, range(count)))


async def soon(condition: Any, seconds: float = 20.0) -> None:
    """Wait until this is true."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - a server is watched
            await asyncio.sleep(0.02)
