"""A source that takes rows from a table."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack, overload

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.decoding import Decode, Received
from stormlet.connect.driver.options import Positive, SourceOptions, split_options
from stormlet.connect.postgres.connection import Tls, connected
from stormlet.connect.postgres.session import QueueSession, WithoutBody
from stormlet.connect.postgres.table import check_queue
from stormlet.connect.session import Capabilities, Delivery, SourceContext
from stormlet.connect.source import Source

T = TypeVar("T")


class QueueOptions(SourceOptions, total=False):
    """Options of :class:`Queue` by their names, those of all sources too."""

    lease: float
    poll: float
    create: bool
    rejects: bool
    ca_file: str | None
    insecure: bool


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Queue`, beside those of all sources."""

    lease: Positive = 60.0
    """Seconds for which a row is this task's without a word of it. The task says so after each third; rows of a task
    that has died go to others after this time."""
    poll: Positive = 1.0
    """Seconds after which rows are looked for that came without a notification."""
    create: bool = False
    """Make the table if there is none, instead of refusing to start."""
    rejects: bool = False
    """Leave a row that is given up in the table, leased until ``infinity`` and with its ``reason``. Otherwise the dead
    letters of the run have it, and it is deleted."""
    ca_file: str | None = None
    """A file with the certificates of authorities to trust, instead of the system's."""
    insecure: bool = False
    """Trust any certificate."""


class Queue(Source[T]):
    """Rows of a table of Postgres as a queue, shared among all who read it; an outbox is one.

    A row is claimed with ``FOR UPDATE SKIP LOCKED`` in a transaction of its own, is leased to one task, and is deleted
    when its tree is done.
    """

    @overload
    def __init__(
        self: Queue[Received],
        url: str | None,
        table: str,
        *,
        as_: None = None,
        **options: Unpack[QueueOptions],
    ) -> None: ...
    @overload
    def __init__(
        self, url: str | None, table: str, *, as_: type[T], **options: Unpack[QueueOptions]
    ) -> None: ...
    def __init__(
        self, url: str | None, table: str, *, as_: Any = None, **options: Unpack[QueueOptions]
    ) -> None:
        """``options`` are those of :class:`QueueSettings` and of
        :class:`~stormlet.connect.driver.options.SourceSettings`. The URL is
        ``postgresql://user:password@host:5432/database``, with ``?sslmode=require`` for TLS."""
        self.queue_settings, others = split_options(options, QueueSettings)
        super().__init__(url, as_=as_, **others)
        self.decode = _with_body(self.decode)
        self.table = table

    @property
    def capabilities(self) -> Capabilities:
        """Leases, which outlive a connection."""
        return Capabilities(
            lease=self.queue_settings.lease,
            receipts_survive=True,
            can_return=True,
            has_dead_letters=self.queue_settings.rejects,
            has_lag=True,
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The table."""
        return (self.table,)

    async def begin(self, address: Address, context: SourceContext) -> QueueSession:
        """Connect twice, and find or make the table."""
        settings = self.queue_settings
        name, tls = f"{context.topology}: {context.consumer}", Tls(settings.ca_file, settings.insecure)
        control = await connected(address, name, tls)
        try:
            await check_queue(control, self.table, create=settings.create)
            reader = await connected(address, name, tls)
        except BaseException:
            await control.close()
            raise
        session = QueueSession(reader, control, self.table, lease=settings.lease, poll=settings.poll)
        try:
            await session.begin()
        except BaseException:
            await session.close()
            raise
        return session


def _with_body(decode: Decode) -> Decode:
    """Decode as this does, and refuse a row without a body: as a text it would be taken for an empty one."""

    def decoded(delivery: Delivery) -> Any:
        if isinstance(delivery, WithoutBody):
            raise msgspec.DecodeError("its body is NULL")
        return decode(delivery)

    return decoded
