"""Another client of RabbitMQ, and sessions of ours without a topology."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiormq
from aiormq.abc import AbstractChannel, DeliveredMessage

from stormlet.connect.rabbitmq import Publish, Queue
from stormlet.connect.rabbitmq.publish import PublishSession
from stormlet.connect.rabbitmq.queue import QueueSession
from tests.connect.place import Place
from tests.connect.rabbitmq.odd import KEY, ODD, Latin1, Properties, text
from tests.connect.sessions import begun, soon


class Rabbit(Place):
    """A client that declares, publishes and looks. ``queue`` is the test's own, which is declared when asked for."""

    forgets = 300  # the broker writes acks to its disk a moment later
    keeps_once = False

    def __init__(self, url: str, queue: str, kind: str = "classic") -> None:
        super().__init__(url, queue)
        self.queue = queue
        self.kind = kind
        self._done = f"{queue} done"
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

    async def publish_odd(self, odd: str, exchange: str) -> None:
        """Publish a message with odd metadata, whose body says which, by an exchange that takes any routing key."""
        name, raw = ODD.get(odd, ("app_id", text(b"shop")))
        key = Latin1("caf\xe9") if odd == KEY else self.queue
        given = Properties(**{name: raw})
        await self._channel.basic_publish(
            odd.encode(), exchange=exchange, routing_key=key, properties=given, mandatory=True
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

    async def has(self, *bodies: str, queue: str = "") -> bool:
        """Wait until a queue has so many ready, as those of a closed channel come back a moment later; take them, and
        return true if they are these."""

        async def are_ready() -> bool:
            return await self.ready(queue) >= len(bodies)

        await soon(are_ready)
        return await self.bodies(queue) == list(bodies)

    async def purge(self) -> None:
        """Take out all that the queue has ready, without looking."""
        await self._channel.queue_purge(self.queue)

    async def delete(self, queue: str = "") -> None:
        """Delete a queue."""
        await self._channel.queue_delete(queue or self.queue)

    async def delete_exchange(self, exchange: str) -> None:
        """Delete an exchange."""
        await self._channel.exchange_delete(exchange)

    # As a place.

    async def fill(self, *bodies: str) -> None:
        await self.declare(x_queue_type=self.kind)
        await self.publish_many(bodies)

    async def undone(self) -> int:
        return await self.ready()

    def through(self, port: int) -> str:
        return through(self.url, port)

    def source(self, *, url: str = "", **options: Any) -> Queue[Any]:
        return Queue(url or self.url, self.queue, **options)

    def sink(self, *, url: str = "") -> Publish[str]:
        return Publish[str](url or self.url, routing_key=self._done)

    async def make_outputs(self) -> None:
        await self.declare(self._done)

    async def outputs(self) -> list[str]:
        return await self.bodies(self._done)


def through(url: str, port: int, options: str = "?heartbeat=3") -> str:
    """The same URL with another port, and heartbeats so often that a test can wait for one that is missing, and not so
    often that a machine with other work misses one."""
    return f"{url.rpartition(':')[0]}:{port}/{options}"


def consuming(
    url: str, queue: str, credit: int = 100, **options: Any
) -> AbstractAsyncContextManager[QueueSession]:
    """A session of a source."""
    return begun(Queue[bytes](url, queue, as_=bytes, **options), credit)


def publishing(url: str, **options: Any) -> AbstractAsyncContextManager[PublishSession[Any]]:
    """A session of a sink."""
    return begun(Publish[Any](url, **options))
