"""A source that reads a stream with a consumer group."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, Unpack, overload

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.decoding import Received
from stormlet.connect.driver.options import Positive, SourceOptions, split_options
from stormlet.connect.redis.client import Client, TlsOptions, check_address, connecting
from stormlet.connect.redis.consumers import own_name, token_of
from stormlet.connect.redis.entries import BODY
from stormlet.connect.redis.server import check_group, check_server
from stormlet.connect.redis.session import Group, StreamSession
from stormlet.connect.session import Capabilities, SourceContext
from stormlet.connect.source import Source
from stormlet.connect.warning import warnings

T = TypeVar("T")


class StreamOptions(SourceOptions, total=False):
    """Options of :class:`Stream` by their names, those of all sources too."""

    lease: float
    body: str
    start: str
    create: bool
    trim: Literal["acked"] | None
    ca_file: str | None
    insecure: bool


class StreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Stream`, beside those of all sources."""

    lease: Positive = 60.0
    """Seconds for which an entry is this task's without a word of it. It says so after each third; entries of a task
    that has died go to others after this time."""
    body: str = BODY
    """The field of an entry that ``as_`` decodes. Of an entry without it all fields are decoded, as one JSON object of
    texts."""
    start: str = "0"
    """The id behind which a new group begins: ``"0"`` for all that is in the stream, ``"$"`` for what comes next."""
    create: bool = False
    """Create the stream if there is none, instead of refusing to start."""
    trim: Literal["acked"] | None = None
    """``"acked"`` deletes entries that all groups of the stream have acked. Otherwise they stay."""
    ca_file: str | None = None
    """A file with the certificates of authorities to trust, instead of the system's."""
    insecure: bool = False
    """Trust any certificate."""


class Stream(Source[T]):
    """Entries of a stream of Redis 7 or Valkey, shared among all who read with the same group.

    An entry is acked when its tree is done, and given to another consumer when this one has said nothing of it for
    ``lease`` seconds. Lists and channels (pub/sub) are not offered: they forget an entry when they hand it over.
    """

    @overload
    def __init__(
        self: Stream[Received],
        url: str | None,
        stream: str,
        *,
        group: str,
        as_: None = None,
        **options: Unpack[StreamOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, url: str | None, stream: str, *, group: str, as_: type[T], **options: Unpack[StreamOptions]
    ) -> None: ...
    def __init__(
        self, url: str | None, stream: str, *, group: str, as_: Any = None, **options: Unpack[StreamOptions]
    ) -> None:
        """``options`` are those of :class:`StreamSettings` and of
        :class:`~stormlet.connect.driver.options.SourceSettings`. The URL is ``redis://user:password@host:6379/0``, or
        begins with ``rediss``, ``valkey`` or ``valkeys``; with ``s`` the connection is encrypted."""
        self.stream_settings, others = split_options(options, StreamSettings)
        super().__init__(url, as_=as_, **others)
        self.stream = stream
        self._group = group

    @property
    def capabilities(self) -> Capabilities:
        """Leases, which outlive a connection."""
        return Capabilities(
            lease=self.stream_settings.lease, receipts_survive=True, can_return=True, has_lag=True
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The stream."""
        return (self.stream,)

    @property
    def group(self) -> str:
        """The consumer group."""
        return self._group

    async def begin(self, address: Address, context: SourceContext) -> StreamSession:
        """Connect, and find or make the group."""
        settings = self.stream_settings
        tls = TlsOptions(insecure=settings.insecure, ca_file=settings.ca_file)
        with connecting(address):
            check_address(address)
            control, reader = Client(address, tls), Client(address, tls, blocks=True)
            try:
                await check_server(control, warnings(context))
                await check_group(control, self.stream, self._group, settings.start, create=settings.create)
                return await self._session(reader, control, context)
            except BaseException:
                await reader.close()
                await control.close()
                raise

    async def _session(self, reader: Client, control: Client, context: SourceContext) -> StreamSession:
        settings = self.stream_settings
        place = f"{self.stream}/{self._group}"
        consumer, number = await own_name(reader, place, context.consumer, token_of(context))
        group = Group(
            stream=self.stream,
            name=self._group,
            consumer=consumer,
            lease=settings.lease,
            body=settings.body,
            trims=settings.trim == "acked",
        )
        return StreamSession(group, reader, number, control)
