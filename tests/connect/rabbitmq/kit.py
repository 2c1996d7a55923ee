"""Another client of RabbitMQ, and sessions of ours without a topology."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage

from stormlet.connect.address import read_address
from stormlet.connect.driver.context import SourceTask
from stormlet.connect.rabbitmq import Publish, Queue
from stormlet.connect.rabbitmq.publish import PublishSession
from stormlet.connect.rabbitmq.queue import QueueSession
from stormlet.connect.session import Delivery, Settlement
from stormlet.core.settlement.prefix import Prefix


class Rabbit:
    """A client that declares, publishes and looks. ``queue`` is the test's own, which is declared when asked for."""

    def __init__(self, url: str, queue: str) -> None:
        self.url = url
        self.queue = queue
        self._channel: AbstractChannel

    async def __aenter__(self) -> Rabbit:
        self._connection = await aiormq.connect(self.url)
        self._channel = await self._connection.channel()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def declare(self, queue: str = "", **arguments: Any) -> str:
        """Declare a durable queue; ``x_queue_type="quorum"`` is an argument."""
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        await self._channel.queue_declare(queue or self.queue, durable=True, arguments=named)
        return queue or self.queue

    async def fanout(self, exchange: str, *queues: str) -> None:
        """Declare an exchange that gives everything to these queues."""
        await self._channel.exchange_declare(exchange, exchange_type="fanout")
        for queue in queues:
            await self._channel.queue_bind(queue, exchange)

    async def publish(self, *bodies: str, queue: str = "", **properties: Any) -> None:
        """Publish these, and wait until the broker has them."""
        for body in bodies:
            given = aiormq.spec.Basic.Properties(delivery_mode=2, **properties)
            key = queue or self.queue
            await self._channel.basic_publish(
                body.encode(), routing_key=key, properties=given, mandatory=True
            )

    async def publish_many(self, bodies: Sequence[str]) -> None:
        """Publish these, as fast as it goes."""
        await asyncio.gather(*map(self.publish, bodies))

    async def ready(self, queue: str = "") -> int:
        """The number of messages that a queue has ready."""
        return (await self._channel.queue_declare(queue or self.queue, passive=True)).message_count or 0

    async def consumers(self, queue: str = "") -> int:
        """The number of those who consume a queue."""
        return (await self._channel.queue_declare(queue or self.queue, passive=True)).consumer_count or 0

    async def take(self, queue: str = "") -> list[DeliveredMessage]:
        """Take out all that a queue has ready."""
        taken = list[DeliveredMessage]()
        while (message := await self._channel.basic_get(queue or self.queue, no_ack=True)).delivery_tag:
            taken.append(message)
        return taken

    async def bodies(self, queue: str = "") -> list[str]:
        """Take out all that a queue has ready, and return the bodies."""
        return [message.body.decode() for message in await self.take(queue)]

    async def purge(self) -> None:
        """Take out all that the queue has ready, without looking."""
        await self._channel.queue_purge(self.queue)

    async def delete(self, queue: str = "") -> None:
        """Delete a queue."""
        await self._channel.queue_delete(queue or self.queue)

    async def delete_exchange(self, exchange: str) -> None:
        """Delete an exchange."""
        await self._channel.exchange_delete(exchange)


def through(url: str, port: int) -> str:
    """The same URL with another port, and heartbeats each second."""
    return f"{url.rpartition(':')[0]}:{port}/?heartbeat=1"


def context(credit: int = 100, connection: int = 1) -> SourceTask:
    """What the driver gives a source; partitions are not RabbitMQ's."""

    def take(name: str, most: int) -> Prefix[Any]:
        raise AssertionError(f"{name} is no partition")

    def revoke(places: object) -> Awaitable[Any]:
        raise AssertionError("there are no partitions")

    names = ("topology", "orders", 0, 1, "host-orders-0", connection, Random(1))
    return SourceTask(*names, credit, take, revoke, lambda places: None)


@asynccontextmanager
async def consuming(url: str, queue: str, credit: int = 100, **options: Any) -> AsyncIterator[QueueSession]:
    """A session of a source."""
    source = Queue[bytes](url, queue, as_=bytes, **options)
    session = await source.begin(read_address(url, where="here"), context(credit))
    try:
        yield session
    finally:
        await session.close()


@asynccontextmanager
async def publishing(url: str, **options: Any) -> AsyncIterator[PublishSession[Any]]:
    """A session of a sink."""
    session = await Publish[Any](url, **options).begin(read_address(url, where="here"), context())
    try:
        yield session
    finally:
        await session.close()


async def received(session: QueueSession, count: int, within: float = 10.0) -> list[Delivery]:
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


def numbered(count: int) -> list[str]:
    """The texts ``"0"``, ``"1"`` and so on."""
    return list(map(str, range(count)))
