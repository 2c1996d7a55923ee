"""Another client of NATS, and sessions of ours without a topology."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, StreamConfig
from nats.js.errors import NotFoundError

from stormlet.connect import nats
from stormlet.connect.nats.publish import PublishSession
from stormlet.connect.nats.session import StreamSession
from stormlet.connect.session import Written
from tests.connect.place import Place
from tests.connect.sessions import begun, write

CONSUMER = "c"


class Server(Place):
    """A client that makes streams, publishes and looks. ``stream`` is the test's own, of the subjects ``stream.>``."""

    has_leases = True
    forgets = 300  # the server writes acks to its disk a moment later

    def __init__(self, url: str, stream: str) -> None:
        super().__init__(url, stream)
        self.stream = stream
        self.subject = f"{stream}.new"
        self._told = f"{stream}_told"
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

    def consuming(self, *, credit: int = 100, **options: Any) -> AbstractAsyncContextManager[StreamSession]:
        """A session of a source."""
        return begun(self.source(**options), credit)

    def publishing(self, *, url: str = "", **options: Any) -> AbstractAsyncContextManager[PublishSession]:
        """A session of a sink."""
        return begun(nats.Publish[Any](url or self.url, **{"subject": self.subject, **options}))

    async def write(self, *values: object, **options: Any) -> Sequence[Written]:
        """Write values by a sink's session."""
        return await write(nats.Publish[Any](self.url, **{"subject": self.subject, **options}), *values)

    # As a place.

    async def fill(self, *bodies: str) -> None:
        await self.publish(*bodies)

    def through(self, port: int) -> str:
        return through(self.url, port)

    def source(self, *, url: str = "", **options: Any) -> nats.Stream[Any]:
        return nats.Stream(url or self.url, self.stream, **{"consumer": CONSUMER, **options})

    def sink(self, *, url: str = "") -> nats.Publish[str]:
        return nats.Publish[str](url or self.url, f"{self._told}.new", message_id=str)

    async def make_outputs(self) -> None:
        with suppress(NotFoundError):
            await self.js.delete_stream(self._told)
        await self.make(self._told)

    async def outputs(self) -> list[str]:
        return await self.bodies(self._told)


def through(url: str, port: int) -> str:
    """The same URL with another port, and pings each half second."""
    return f"{url.rpartition(':')[0]}:{port}?ping=0.5"
