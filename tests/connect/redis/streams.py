"""What tests of Redis Streams share: a context without a driver, a session, and a client that looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis

from stormlet.connect import redis
from stormlet.connect.address import read_address
from stormlet.connect.driver.context import SourceTask, TaskOf
from stormlet.connect.redis.session import StreamSession
from stormlet.connect.session import Delivery, Item, Settlement, SinkSession, Written
from tests.brokers.processes import HOST, Broker

LEASE = 0.4
"""Seconds, so that a test can wait for its end."""


def _never(*_: object) -> Any:
    raise AssertionError("a stream has no partitions")


@dataclass
class Task:
    """A spout task as the driver has one: what is the same at each of its connections."""

    consumer: str = "here-orders-0"
    random: Random = field(default_factory=Random)
    connections: int = 0

    def context(self) -> SourceTask:
        """The context of its next connection."""
        self.connections += 1
        task = TaskOf("shop", "orders", 0, 1, self.consumer, self.connections, self.random)
        mine = {name: getattr(task, name) for name in TaskOf.__struct_fields__}
        return SourceTask(**mine, credit=1000, take=_never, revoke=_never, lose=_never)


class Place:
    """A stream of its own on a server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.stream = f"s{uuid4().hex[:8]}"
        self.url = f"redis://{HOST}:{port}/0"
        self.client = Redis(port=port, socket_timeout=60)

    async def add(self, *bodies: str) -> list[str]:
        """Add entries; return their ids."""
        return [(await self.client.xadd(self.stream, {"body": body})).decode() for body in bodies]

    async def pending(self, group: str = "g") -> dict[str, tuple[str, int]]:
        """Consumer and count of deliveries of each entry that is not acked, by its id."""
        found = await self.client.xpending_range(self.stream, group, "-", "+", 10_000)
        return {
            each["message_id"].decode(): (each["consumer"].decode(), each["times_delivered"])
            for each in found
        }

    async def consumers(self) -> list[str]:
        """The consumers that the group knows."""
        return [each["name"].decode() for each in await self.client.xinfo_consumers(self.stream, "g")]

    @asynccontextmanager
    async def session(
        self, task: Task | None = None, *, url: str | None = None, **options: Any
    ) -> AsyncIterator[StreamSession]:
        """A source's session."""
        options = {"group": "g", "lease": LEASE, "create": True, **options}
        source = redis.Stream(url or self.url, self.stream, **options)
        session = await begin(source, task or Task())
        try:
            yield session
        finally:
            await session.close()

    async def write(self, *items: object, **options: Any) -> Sequence[Written]:
        """Write values by a sink's session."""
        sink = redis.Add[Any](self.url, self.stream, **options)
        session = await begin_sink(sink)
        try:
            return await session.write([each if isinstance(each, Item) else Item(each) for each in items])
        finally:
            await session.close()


async def begin(source: redis.Stream[Any], task: Task) -> StreamSession:
    """Connect a source to its address."""
    return await source.begin(read_address(source.url or "", where="test"), task.context())


async def begin_sink(sink: redis.Add[Any]) -> SinkSession:
    """Connect a sink to its address."""
    return await sink.begin(read_address(sink.url or "", where="test"), Task().context())


@asynccontextmanager
async def place(broker: Broker) -> AsyncIterator[Place]:
    """A stream of its own."""
    it = Place(broker.port)
    try:
        yield it
    finally:
        await it.client.aclose()


def bodies(deliveries: Sequence[Delivery]) -> list[str]:
    """The bodies of deliveries as text."""
    return [each.body.decode() for each in deliveries]


def done(deliveries: Sequence[Delivery]) -> Settlement:
    """The settlement that acks these."""
    return Settlement(done=[each.receipt for each in deliveries])


async def all_of(session: StreamSession, count: int) -> list[Delivery]:
    """Receive so many."""
    found: list[Delivery] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            found += await session.receive(100, 0.2)
    return found
