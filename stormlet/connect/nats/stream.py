"""A source that reads a stream of JetStream with a durable consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, Unpack, overload

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.decoding import Received
from stormlet.connect.driver.options import Positive, SourceOptions, split_options
from stormlet.connect.nats.connection import Connection, Tls
from stormlet.connect.nats.jetstream import JetStream, Wanted
from stormlet.connect.nats.session import StreamSession
from stormlet.connect.session import Capabilities, ConnectContext, SourceContext
from stormlet.connect.source import Source
from stormlet.connect.warning import warnings
from stormlet.errors import BrokerRefused

T = TypeVar("T")


class StreamOptions(SourceOptions, total=False):
    """Options of :class:`Stream` by their names, those of all sources too."""

    lease: float
    subjects: Sequence[str]
    start: Literal["all", "new"]
    create: Sequence[str]
    rejects: bool
    ca_file: str | None
    insecure: bool
    certificate: str | None
    key: str | None


class StreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Stream`, beside those of all sources."""

    lease: Positive = 30.0
    """Seconds for which a message is this task's without a word of it, the ``ack_wait`` of a new consumer. The task
    says so after each third; messages of a task that has died go to others after this time."""
    subjects: Sequence[str] = ()
    """The subjects that the consumer gives, such as ``orders.*``; none for all of the stream."""
    start: Literal["all", "new"] = "all"
    """Where a new consumer begins: with all that is in the stream, or with what comes next."""
    create: Sequence[str] = ()
    """The subjects of a stream that is made if there is none, instead of refusing to start."""
    rejects: bool = False
    """Terminate a message that is given up (``TERM``), of which the server tells in an advisory. Otherwise the dead
    letters of the run have it, and it is acked."""
    ca_file: str | None = None
    """A file with the certificates of authorities to trust, instead of the system's."""
    insecure: bool = False
    """Trust any certificate."""
    certificate: str | None = None
    """A file with the certificate of this client, and ``key`` with its key, both in PEM."""
    key: str | None = None

    @property
    def tls(self) -> Tls:
        """The part of them that is about TLS."""
        return Tls(self.ca_file, self.insecure, self.certificate, self.key)


class Stream(Source[T]):
    """Messages of a stream of NATS JetStream, shared among all who read with the same consumer.

    The consumer is durable, and is pulled from; it is made if there is none. A message is acked when its tree is done,
    and given to another task when this one has said nothing of it for ``lease`` seconds.
    """

    @overload
    def __init__(
        self: Stream[Received],
        url: str | None,
        stream: str,
        *,
        consumer: str,
        as_: None = None,
        **options: Unpack[StreamOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, url: str | None, stream: str, *, consumer: str, as_: type[T], **options: Unpack[StreamOptions]
    ) -> None: ...
    def __init__(
        self,
        url: str | None,
        stream: str,
        *,
        consumer: str,
        as_: Any = None,
        **options: Unpack[StreamOptions],
    ) -> None:
        """``options`` are those of :class:`StreamSettings` and of
        :class:`~stormlet.connect.driver.options.SourceSettings`. The URL is ``nats://user:password@host:4222``,
        ``nats://:TOKEN@host``, where the seed of an nkey may be the token, or ``nats://host?creds=FILE`` with a
        credentials file; with ``tls`` the connection is encrypted."""
        self.stream_settings, others = split_options(options, StreamSettings)
        super().__init__(url, as_=as_, **others)
        self.stream = stream
        self._consumer = consumer

    @property
    def capabilities(self) -> Capabilities:
        """Leases, which outlive a connection."""
        return Capabilities(
            lease=self.stream_settings.lease,
            receipts_survive=True,
            can_return=True,
            has_dead_letters=self.stream_settings.rejects,
            has_lag=True,
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The stream."""
        return (self.stream,)

    @property
    def group(self) -> str:
        """The consumer."""
        return self._consumer

    async def begin(self, address: Address, context: SourceContext) -> StreamSession:
        """Connect, and find or make the consumer."""
        settings = self.stream_settings
        connection = await connected(address, context, settings.tls)
        try:
            await self._check(JetStream(connection), context)
            session = StreamSession(connection, self.stream, self._consumer, settings.lease)
            await session.begin()
        except BaseException:
            await connection.close()
            raise
        return session

    async def _check(self, api: JetStream, context: SourceContext) -> None:
        settings = self.stream_settings
        found = await api.check_stream(self.stream, settings.create)
        if settings.rejects and found.retention != "limits":
            raise BrokerRefused(
                f"the stream {self.stream!r} ({found.retention}) deletes a message that is terminated: with "
                "rejects=True it would be lost"
            )
        wanted = Wanted(
            stream=self.stream,
            name=self._consumer,
            subjects=settings.subjects,
            lease=settings.lease,
            start=settings.start,
            credit=context.credit,
        )
        await api.check_consumer(wanted, warnings(context))


async def connected(address: Address, context: ConnectContext, tls: Tls) -> Connection:
    """Connect, under the name of the task."""
    connection = Connection(address)
    await connection.open(f"{context.topology}: {context.consumer}", tls)
    return connection
