"""An exchange of RabbitMQ as a sink."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack

from stormlet.connect.address import Address
from stormlet.connect.driver.options import SinkOptions
from stormlet.connect.rabbitmq.connection import close, close_reason, connected, translated
from stormlet.connect.session import DONE, Item, SinkContext, Written
from stormlet.connect.sink import Sink
from stormlet.errors import InvalidTopology

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel
    from pamqp.commands import Basic

    from stormlet.connect.rabbitmq.frames import ForgivingConnection

T = TypeVar("T")

CONFIRMS: Final = 500
"""Messages that are published and not confirmed at a time."""
ORIGIN: Final = "stormlet-origin"
"""The header with the origin of the message that an output comes of: the same in every attempt at it."""
PERSISTENT: Final = 2


class PublishSession(Generic[T]):
    """A channel in confirm mode."""

    def __init__(self, sink: Publish[T], address: Address, context: SinkContext) -> None:
        self._sink = sink
        self._address = address
        self._context = context
        self._is_blocked = False
        self._room = asyncio.Semaphore(CONFIRMS)
        self._alone = asyncio.Lock()
        self._under_way: dict[str, asyncio.Event] = {}
        self._connection: ForgivingConnection
        self._channel: AbstractChannel

    async def open(self) -> None:
        """Connect, and see that what is published to is there."""
        context = self._context
        self._blocked(None)  # that was another connection
        self._connection = await connected(self._address, f"{context.topology}: {context.consumer}")
        self._connection.blocked = self._blocked
        try:
            with translated(self._address, connecting=True):
                self._channel = await self._connection.channel(on_return_raises=True)
                await self._look()
        except BaseException:
            await close(self._connection)
            raise

    def _blocked(self, reason: str | None) -> None:
        """Note that the broker reads nothing of what is published, or reads it again (``None``)."""
        if reason is not None:
            self._is_blocked = True
            self._context.away(f"the broker blocks all who publish: {reason}")
        elif self._is_blocked:
            self._is_blocked = False
            self._context.back()

    async def _look(self) -> None:
        sink = self._sink
        if sink.exchange:
            await self._channel.exchange_declare(sink.exchange, passive=True)
        elif isinstance(sink.routing_key, str):  # the default exchange has a route to each queue, of its name
            await self._channel.queue_declare(sink.routing_key, passive=True)

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Publish these in their order, and wait until the broker has confirmed or returned each."""
        with translated(self._address):
            channel = self._channel
            found = await asyncio.gather(*map(self._publish, items), return_exceptions=True)
            faults = [each for each in found if isinstance(each, BaseException)]
            if faults and not _refused_message(channel):
                raise faults[0]
            written = [
                await self._publish_alone(item) if isinstance(each, BaseException) else each
                for item, each in zip(items, found, strict=True)
            ]
            return [
                await self._fitting(item, each) if each.later else each
                for item, each in zip(items, written, strict=True)
            ]

    async def _publish(self, item: Item) -> Written:
        from aiormq.exceptions import DeliveryError, PublishError

        try:
            body, key, properties = self._sink.message(item)
        except Exception as error:
            return _never(error)
        try:
            return await self._confirmed(body, key, properties)
        except PublishError:
            where = f"exchange {self._sink.exchange!r}" if self._sink.exchange else "the default exchange"
            return Written(
                f"{where} has no route for routing key {key!r}: no queue has got it", permanent=True
            )
        except DeliveryError:
            words = f"the broker refuses it (nack), with routing key {key!r}: a queue may be full"
            # Of an exchange, other queues may have it, and would get it again and again.
            return Written(words, later=not self._sink.exchange)
        except (TypeError, ValueError, OverflowError, struct.error) as error:  # AMQP cannot express it
            return _never(error)

    async def _confirmed(self, body: bytes, key: str, properties: Basic.Properties) -> Written:
        # The client knows a returned message by its id alone. Of two with one id it would take the wrong one for lost.
        id = properties.message_id
        while id and (other := self._under_way.get(id)) is not None:
            await other.wait()
        over = asyncio.Event()
        if id:
            self._under_way[id] = over
        try:
            async with self._room:
                await self._channel.basic_publish(
                    body,
                    exchange=self._sink.exchange,
                    routing_key=key,
                    properties=properties,
                    mandatory=True,
                )
        finally:
            over.set()
            if id:
                del self._under_way[id]
        return DONE

    async def _publish_alone(self, item: Item) -> Written:
        # A message that the broker cannot take, such as one that is too large, closes the channel for all that are
        # under way, and nobody says which it was. Another channel on this connection might wait for ever: the client
        # may have had no room to answer the end of the last one.
        async with self._alone:
            if self._channel.is_closed:
                await close(self._connection)
                await self.open()
            channel = self._channel
            try:
                return await self._publish(item)
            except Exception as error:
                if not _refused_message(channel):
                    raise
                return Written(f"the broker refuses it: {error}", permanent=True)

    async def _fitting(self, item: Item, refused: Written) -> Written:
        """Return the outcome of a refused message: it waits for room, unless its queue refuses it while it is empty."""
        if not await self._is_empty(item):
            return refused
        # By itself, as others of its batch may have filled the queue. What an empty one refuses is larger than it.
        again = await self._publish(item)
        return Written(again.reason) if again.later and await self._is_empty(item) else again

    async def _is_empty(self, item: Item) -> bool:
        _, queue, _ = self._sink.message(item)
        return not (await self._channel.queue_declare(queue, passive=True)).message_count

    async def close(self) -> None:
        """End the connection."""
        self._connection.blocked = None
        await close(self._connection)


def _refused_message(channel: AbstractChannel) -> bool:
    """Return True if the broker has closed a channel for a message that it cannot take."""
    from aiormq.exceptions import ChannelPreconditionFailed

    return isinstance(close_reason(channel), ChannelPreconditionFailed)


def _never(error: Exception) -> Written:
    return Written(f"it cannot be published: {type(error).__name__}: {error}", permanent=True)


class Publish(Sink[T]):
    """An exchange of RabbitMQ as a sink: each input is published, and acked when the broker has confirmed it.

    ``exchange=""`` is the default one, for which ``routing_key`` is the name of a queue. ``routing_key`` may be a
    function of the value. ``properties`` is one that returns properties of AMQP by their names, such as ``headers``,
    ``message_id``, ``correlation_id``, ``priority`` or ``expiration``. Bytes and text are published as they are, other
    values as JSON. The header ``stormlet-origin`` has the origin of the message, the same in each attempt.

    An input that is routed to no queue is rejected: its message is a dead letter (law S6).
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        exchange: str = "",
        routing_key: str | Callable[[T], str] = "",
        properties: Callable[[T], Mapping[str, object]] | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``options`` are those of :class:`~stormlet.connect.driver.options.SinkSettings`.

        Raises :class:`~stormlet.errors.InvalidTopology` if there is neither an exchange nor a routing key.
        """
        super().__init__(url, **options)
        if not exchange and not routing_key:
            raise InvalidTopology("rabbitmq.Publish needs exchange=, or the name of a queue as routing_key=")
        self.exchange = exchange
        self.routing_key = routing_key
        self.properties = properties

    @property
    def writes(self) -> str:
        """The name of the exchange; for the default one that of the queue."""
        return self.exchange or (self.routing_key if isinstance(self.routing_key, str) else "")

    async def begin(self, address: Address, context: SinkContext) -> PublishSession[T]:
        """Connect, and see that exchange or queue are there."""
        session = PublishSession(self, address, context)
        await session.open()
        return session

    def message(self, item: Item) -> tuple[bytes, str, Basic.Properties]:
        """Return body, routing key and properties of a message."""
        from pamqp.commands import Basic

        value: T = item.value
        key = self.routing_key if isinstance(self.routing_key, str) else self.routing_key(value)
        return self.encode(value), key, Basic.Properties(**self._properties(value, item.origin))

    def _properties(self, value: T, origin: object) -> dict[str, Any]:
        given: dict[str, Any] = {
            "delivery_mode": PERSISTENT,
            "content_type": _content_type(value),
            "timestamp": datetime.now(UTC),
            **(self.properties(value) if self.properties else {}),
        }
        headers = {name: _expressible(each) for name, each in given.get("headers", {}).items()}
        given["headers"] = headers if origin is None else {**headers, ORIGIN: str(origin)}
        return given


def _expressible(header: object) -> object:
    return bytearray(header) if isinstance(header, bytes) else header  # the client takes bytes for a mistake


def _content_type(value: object) -> str:
    match value:
        case bytes():
            return "application/octet-stream"
        case str():
            return "text/plain"
        case _:
            return "application/json"
