"""A queue of RabbitMQ as a source."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Unpack, overload

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.decoding import Decode, Received
from stormlet.connect.driver.options import Positive, SourceOptions, checked
from stormlet.connect.rabbitmq.connection import (
    close,
    close_reason,
    closing_of,
    connected,
    meaning,
    translated,
)
from stormlet.connect.rabbitmq.tags import Tags
from stormlet.connect.session import Capabilities, Delivery, Settlement, SourceContext
from stormlet.connect.source import Source
from stormlet.connect.warning import log_warning
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import BrokerRefused, ConnectionLost, ConnectorError

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection, DeliveredMessage
    from pamqp.commands import Basic

T = TypeVar("T")

MOST_PREFETCHED: Final = 65_535
"""AMQP has 16 bits for it."""
CONSUMER_TIMEOUT: Final = 1800.0
"""Seconds of the broker's ``consumer_timeout``, unless it was changed there."""
OFTEN: Final = 11
"""Deliveries of one message that are logged. A quorum queue of RabbitMQ 4 drops it after 21, unless it has a limit of
its own, and tells nobody."""
FRAMES: Final = 60
"""Frames that the client reads before it hands them on, three for a message. With its own 10, messages come three at a
time, and each costs nearly twice as much; with more the loop is held longer, and nothing is gained."""
PROPERTIES: Final = (
    *("message_id", "correlation_id", "reply_to", "content_type", "content_encoding"),
    *("message_type", "app_id", "user_id"),
)
OFFSET: Final = "x-stream-offset"
"""The header with the position of a message in its stream; of what is consumed, where to begin."""
STREAM: Final = (
    "which keeps what is acknowledged and tells nobody where to go on; a source of streams is needed for it"
)


class Receipt(NamedTuple):
    """A delivery, for the channel that it came on."""

    tag: int
    name: str


class Misread(Delivery, kw_only=True, gc=False):
    """A message of whose metadata nothing could be made."""

    error: Exception


class QueueSession:
    """A channel that consumes one queue. The broker pushes as many messages as there is credit."""

    def __init__(
        self,
        address: Address,
        queue: str,
        connection: AbstractConnection,
        channel: AbstractChannel,
        *,
        unique_ids: bool,
        warn: Callable[[str], None],
    ) -> None:
        self._address = address
        self._queue = queue
        self._connection = connection
        self._channel = channel
        self._arrived = deque[Delivery]()
        self._named = set[str]()
        self._tags = Tags()
        self._news = asyncio.Event()
        self._cancelled: asyncio.Task[None] | None = None
        self._refused: ConnectorError | None = None
        self._unique_ids = unique_ids
        self._warn = warn
        self._has_warned = False
        self._is_ordinary = False
        """True if it is known to be no stream."""
        self._consumer = ""
        self._prefetch = 1

    async def consume(self, credit: int) -> None:
        """Begin to consume."""
        channel = self._channel
        self._prefetch = min(max(credit, 1), MOST_PREFETCHED)  # 0 would be no bound at all
        closing_of(channel).add_done_callback(lambda _: self._news.set())
        channel.on_consumer_cancel_callbacks.add(lambda _: self._gone())
        await channel.queue_declare(self._queue, passive=True)
        await channel.basic_qos(prefetch_count=self._prefetch)
        self._consumer = (await channel.basic_consume(self._queue, self._came)).consumer_tag or ""

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - the face has it
        """Return what has been pushed."""
        self._news.clear()
        if not self._arrived and self._cancelled is None and self._error is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._news.wait()
        if (error := self._error) is not None:
            raise error
        taken = list(islice(self._arrived, most))
        for _ in taken:
            self._arrived.popleft()
        if not self._is_ordinary and any(OFFSET in each.headers for each in taken):
            await self._refuse_stream()
        return taken

    async def _refuse_stream(self) -> None:
        """Raise :class:`BrokerRefused` if the queue is a stream. A message with a position may also be in an ordinary
        queue: its publisher has given it, such as one that has read a stream."""
        from aiormq.exceptions import ChannelPreconditionFailed

        with translated(self._address):
            channel = await self._connection.channel(publisher_confirms=False)
            await channel.basic_qos(prefetch_count=1)
            try:
                # The broker does not say of what type a queue is. But it refuses to begin in an ordinary one at a
                # position, which changes nothing there; a stream gives its messages to each that reads.
                await channel.basic_consume(self._queue, _ignore, arguments={OFFSET: "next"})
            except ChannelPreconditionFailed:
                self._is_ordinary = True
                return
            await channel.close()
        raise BrokerRefused(f"{self._address}: queue {self._queue!r} is a stream, {STREAM}")

    @property
    def _error(self) -> ConnectorError | None:
        reason = close_reason(self._channel)
        return self._refused or (None if reason is None else meaning(reason, self._address))

    def interrupt(self) -> None:
        """Stop consuming: what is pushed and not taken counts as delivered once more."""
        if self._cancelled is None:
            self._cancelled = asyncio.get_running_loop().create_task(self._stop(), name="stop consuming")
        self._news.set()

    async def _stop(self) -> None:
        with suppress(ConnectorError), translated(self._address):
            await self._channel.basic_cancel(self._consumer)

    async def settle(self, settlement: Settlement) -> int:
        """Tell the broker all of it, and wait for its answer to a question that comes behind."""
        with translated(self._address):
            refused = await self._rejected((each.receipt for each in settlement.rejected), requeue=False)
            refused += await self._rejected(settlement.returned, requeue=True)
            refused += await self._acknowledged(settlement.done)
            # Nothing answers an acknowledgement. A channel does all in order, and this one changes nothing.
            await self._channel.basic_qos(prefetch_count=self._prefetch)
        return refused

    async def _rejected(self, receipts: Iterable[Receipt], *, requeue: bool) -> int:
        fresh, refused = self._settled(receipts)
        for tag in fresh:
            await self._channel.basic_nack(tag, requeue=requeue, wait=False)
        return refused

    async def _acknowledged(self, receipts: Iterable[Receipt]) -> int:
        fresh, refused = self._settled(receipts)
        for tag, multiple in self._tags.acknowledgements(fresh):
            await self._channel.basic_ack(tag, multiple=multiple, wait=False)
        return refused

    def _settled(self, receipts: Iterable[Receipt]) -> tuple[list[int], int]:
        given = list(receipts)
        fresh = self._tags.settle(receipt.tag for receipt in given)
        self._named.difference_update(receipt.name for receipt in given)
        return fresh, len(given) - len(fresh)

    async def renew(self, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Do nothing: there are no leases."""
        return ()

    async def pause(self, places: Collection[Prefix]) -> None:
        """Do nothing: there are no partitions."""

    async def resume(self, places: Collection[Prefix]) -> None:
        """Do nothing: there are no partitions."""

    async def lag(self) -> Mapping[str, int]:
        """Return the messages that are ready, and those that this channel has and that are not settled."""
        with translated(self._address):
            declared = await self._channel.queue_declare(self._queue, passive=True)
        return {self._queue: (declared.message_count or 0) + self._tags.open}

    async def close(self) -> None:
        """End the connection."""
        await close(self._connection)
        if self._cancelled is not None:
            await self._cancelled  # whatever it waited for has ended with the connection

    async def _came(self, message: DeliveredMessage) -> None:
        try:
            delivery = self._delivery(message)
        except Exception as error:
            # The client would only log it, and the message would be open as long as the connection lasts.
            receipt = Receipt(message.delivery_tag or 0, "")
            delivery = Misread(body=message.body, receipt=receipt, key=message.routing_key, error=error)
        self._arrived.append(delivery)
        self._news.set()

    def _delivery(self, message: DeliveredMessage) -> Delivery:
        tag, properties = message.delivery_tag or 0, message.header.properties
        self._tags.delivered = tag
        headers: Mapping[str, object] = properties.headers or {}
        deliveries = _deliveries(headers, bool(message.redelivered))
        if deliveries >= OFTEN and not self._has_warned:
            self._has_warned = True
            self._warn(
                f"queue {self._queue!r} has delivered a message {deliveries} times: from RabbitMQ 4.0 on a quorum queue"
                " drops a message after 21 times, if it has neither a dead-letter exchange nor another x-delivery-limit"
            )
        plain = _headers(headers, properties)
        published = None if properties.timestamp is None else properties.timestamp.timestamp()
        name = self._name(properties.message_id)
        return Delivery(
            body=message.body,
            receipt=Receipt(tag, name),
            name=name,
            key=message.routing_key,
            headers=plain,
            deliveries=deliveries,
            published=published,
        )

    def _name(self, id: str | None) -> str:
        # A publisher that got no confirm publishes once more, and then two messages of one id are here at a time.
        if not id or not self._unique_ids or id in self._named:
            return ""
        self._named.add(id)
        return id

    def _gone(self) -> None:
        # The client says nothing else, and would wait for ever for a queue that is deleted.
        self._refused = ConnectionLost(
            f"{self._address}: the broker has ended the consumer of queue {self._queue!r}: it was deleted, or has moved"
            ", or a message was open for longer than its consumer_timeout (from RabbitMQ 4.3 on)"
        )
        self._news.set()


async def _ignore(_: DeliveredMessage) -> None:
    """Take no note of a message that another consumer has."""


def _legible(decode: Decode) -> Decode:
    """Decode as this does, and refuse what could not be taken in."""

    def decoded(delivery: Delivery) -> Any:
        if type(delivery) is Misread:
            raise delivery.error
        return decode(delivery)

    return decoded


def _deliveries(headers: Mapping[str, object], redelivered: bool) -> int:
    # A quorum queue counts, and some versions leave out a zero; a classic one says only whether it is the first. On the
    # first the header is another queue's, which has dead-lettered the message, or a publisher's.
    before = headers.get("x-delivery-count")
    return 1 + max(before if isinstance(before, int) else 0, 1) if redelivered else 1


def _headers(headers: Mapping[str, object], properties: Basic.Properties) -> dict[str, str | bytes]:
    given = {name: getattr(properties, name) for name in PROPERTIES}
    found = {name: value for name, value in given.items() if value is not None}
    return found | {name: _plain(value) for name, value in headers.items()}


def _plain(value: object) -> str | bytes:
    match value:
        case str() | bytes():
            return value
        case bytearray():
            return bytes(value)
        case datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return msgspec.json.encode(value, enc_hook=str).decode()


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Queue`, beside those of all sources."""

    rejects: bool
    unique_ids: bool
    consumer_timeout: Positive | None


class Queue(Source[T]):
    """A queue of RabbitMQ as a source: classic or quorum, but no stream.

    As many messages are prefetched as ``max_spout_pending`` allows. With ``rejects`` a message that is given up is
    rejected, so that the dead-letter exchange of the queue gets it. Without it the dead letters of the run have it:
    AMQP does not say if there is such an exchange, and a queue that has none drops what is rejected.

    ``unique_ids`` says that each message has a ``message_id`` of its own, or that messages with equal ids are the same.
    Then the id is the origin of the tree, the same in each delivery.
    """

    @overload
    def __init__(
        self: Queue[Received],
        url: str | None,
        queue: str,
        *,
        as_: None = None,
        rejects: bool = ...,
        unique_ids: bool = ...,
        consumer_timeout: float | None = ...,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url: str | None,
        queue: str,
        *,
        as_: type[T],
        rejects: bool = ...,
        unique_ids: bool = ...,
        consumer_timeout: float | None = ...,
        **options: Unpack[SourceOptions],
    ) -> None: ...
    def __init__(
        self,
        url: str | None,
        queue: str,
        *,
        as_: Any = None,
        rejects: bool = False,
        unique_ids: bool = False,
        consumer_timeout: float | None = CONSUMER_TIMEOUT,
        **options: Unpack[SourceOptions],
    ) -> None:
        """``url`` is such as ``amqps://user:password@host/virtual-host``; None if it is written elsewhere.
        ``consumer_timeout`` is that of the broker, in seconds, None if it waits for ever: a message that is under way
        for four fifths of it is given back. ``options`` are those of
        :class:`~stormlet.connect.driver.options.SourceSettings`."""
        super().__init__(url, as_=as_, **options)
        checked(QueueSettings(rejects=rejects, unique_ids=unique_ids, consumer_timeout=consumer_timeout))
        self.decode = _legible(self.decode)
        self.queue = queue
        self.rejects = rejects
        self.unique_ids = unique_ids
        self.consumer_timeout = consumer_timeout

    @property
    def capabilities(self) -> Capabilities:
        """The rules of RabbitMQ."""
        return Capabilities(has_dead_letters=self.rejects, has_lag=True, most_held=self.consumer_timeout)

    @property
    def reads(self) -> tuple[str, ...]:
        """The name of the queue."""
        return (self.queue,)

    async def begin(self, address: Address, context: SourceContext) -> QueueSession:
        """Connect, and consume the queue."""
        connection = await connected(address, f"{context.topology}: {context.consumer}")
        try:
            with translated(address, connecting=True):
                channel = await connection.channel(publisher_confirms=False, frame_buffer_size=FRAMES)
                session = QueueSession(
                    address,
                    self.queue,
                    connection,
                    channel,
                    unique_ids=self.unique_ids,
                    warn=partial(log_warning, context),
                )
                await session.consume(context.credit)
        except BaseException:
            await close(connection)
            raise
        return session
