"""Another client of NATS, and sessions of ours without a topology."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, StreamConfig
from nats.js.errors import NotFoundError

from stormlet.connect import nats
from stormlet.connect.address import read_address
from stormlet.connect.driver.context import SourceTask
from stormlet.connect.nats.publish import PublishSession
from stormlet.connect.nats.session import StreamSession
from stormlet.connect.session import Delivery, Item, Rejection, Settlement, Written
from stormlet.core.settlement.prefix import Prefix

CONSUMER = "c"


class Server:
    """A client that makes streams, publishes and looks. ``stream`` is the test's own, of the subjects ``stream.>``."""

    def __init__(self, url: str, stream: str) -> None:
        self.url = url
        self.stream = stream
        self.subject = f"{stream}.new"
        self.client = Client()

    async def __aenter__(self) -> Server:
        async def say_nothing(_: Exception) -> None:
            """The server is away, as the test wants it."""

        await self.client.connect(
            self.url, error_cb=say_nothing, reconnect_time_wait=0.1, max_reconnect_attempts=-1
        )
        self.js = self.client.jetstream()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def make(self, stream: str = "", **options: Any) -> None:
        """Make a stream."""
        name = stream or self.stream
        await self.js.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **options))

    async def consumer(self, **options: Any) -> None:
        """Make the consumer."""
        config = ConsumerConfig(durable_name=CONSUMER, ack_policy="explicit")  # type: ignore[arg-type]
        await self.js.add_consumer(self.stream, config.evolve(**options))

    async def publish(self, *bodies: str, subject: str = "", headers: dict[str, str] | None = None) -> None:
        """Publish these, and wait until the stream has them."""
        for start in range(0, len(bodies), 500):
            some = bodies[start : start + 500]
            publish = self.js.publish
            await asyncio.gather(
                *(
                    publish(subject or self.subject, each.encode(), headers=headers, timeout=20)
                    for each in some
                )
            )

    async def info(self) -> Any:
        """What the server says of the consumer."""
        return await self.js.consumer_info(self.stream, CONSUMER)

    async def undone(self) -> int:
        """The number of messages that are not acked."""
        info = await self.info()
        return int(info.num_pending + info.num_ack_pending)

    async def messages(self, stream: str = "") -> list[Any]:
        """All messages of a stream."""
        name = stream or self.stream
        state = (await self.js.stream_info(name)).state
        found = []
        for number in range(state.first_seq, state.last_seq + 1):
            try:
                found.append(await self.js.get_msg(name, number))
            except NotFoundError:
                continue
        return found

    async def bodies(self, stream: str = "") -> list[str]:
        """The bodies of all messages of a stream."""
        return [(each.data or b"").decode() for each in await self.messages(stream)]

    @asynccontextmanager
    async def advisories(self) -> AsyncIterator[list[Any]]:
        """What the server tells of messages that were terminated."""
        told: list[Any] = []

        async def tell(message: Msg) -> None:
            told.append(json.loads(message.data))

        subject = f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{self.stream}.{CONSUMER}"
        subscription = await self.client.subscribe(subject, cb=tell)
        await self.client.flush()
        yield told
        await subscription.unsubscribe()

    @asynccontextmanager
    async def consuming(
        self, *, url: str = "", credit: int = 100, **options: Any
    ) -> AsyncIterator[StreamSession]:
        """A session of a source."""
        source = self.source(url=url, **options)
        session = await source.begin(read_address(source.url or "", where="here"), context(credit))
        try:
            yield session
        finally:
            await session.close()

    def source(self, *, url: str = "", **options: Any) -> nats.Stream[Any]:
        """A source of the stream."""
        return nats.Stream(url or self.url, self.stream, **{"consumer": CONSUMER, **options})

    @asynccontextmanager
    async def publishing(self, *, url: str = "", **options: Any) -> AsyncIterator[PublishSession]:
        """A session of a sink."""
        sink = nats.Publish[Any](url or self.url, **{"subject": self.subject, **options})
        session = await sink.begin(read_address(sink.url or "", where="here"), context())
        try:
            yield session
        finally:
            await session.close()

    async def write(self, *values: object, **options: Any) -> Sequence[Written]:
        """Write values by a sink's session."""
        async with self.publishing(**options) as session:
            return await session.write([each if isinstance(each, Item) else Item(each) for each in values])


def through(url: str, port: int) -> str:
    """The same URL with another port, and pings each half second."""
    return f"{url.rpartition(':')[0]}:{port}?ping=0.5"


def context(credit: int = 100, connection: int = 1) -> SourceTask:
    """What the driver gives a source; streams of NATS have no partitions."""

    def take(name: str, most: int) -> Prefix[Any]:
        raise AssertionError(f"{name} is no partition")

    def revoke(places: object) -> Awaitable[Any]:
        raise AssertionError("there are no partitions")

    names = ("topology", "orders", 0, 1, "host-orders-0", connection, Random(1))
    return SourceTask(*names, credit, take, revoke, lambda places: None)


async def received(session: StreamSession, count: int, within: float = 5.0) -> list[Delivery]:
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
