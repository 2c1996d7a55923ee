"""A source of the changes of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, Unpack, overload

import msgspec

from stormlet.connect.address import Address
from stormlet.connect.driver.options import AtLeastOne, Positive, SourceOptions, split_options
from stormlet.connect.postgres.capture import ChangesSession
from stormlet.connect.postgres.connection import Tls, connected
from stormlet.connect.postgres.pgoutput import Change
from stormlet.connect.postgres.slot import Slot
from stormlet.connect.session import Capabilities, Session, Settles, SourceContext
from stormlet.connect.source import Source
from stormlet.connect.twins import twin_of
from stormlet.errors import BrokerRefused

T = TypeVar("T")


class ChangesOptions(SourceOptions, total=False):
    """Options of :class:`Changes` by their names, those of all sources too."""

    create: bool | Sequence[str]
    poll: float
    warn_bytes: int
    ca_file: str | None
    insecure: bool


class ChangesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of :class:`Changes`, beside those of all sources."""

    create: bool | Sequence[str] = False
    """Make the publication and the slot if they are not there, instead of refusing to start: for these tables, or, with
    True, for all. The first change that comes is then the first one after that."""
    poll: Positive = 0.2
    """Seconds between two looks for more."""
    warn_bytes: AtLeastOne = 2**30
    """Bytes of WAL that the server keeps for the slot, beyond which there is a warning: they fill its disk."""
    ca_file: str | None = None
    """A file with the certificates of authorities to trust, instead of the system's."""
    insecure: bool = False
    """Trust any certificate."""


class Changes(Source[T]):
    """The changes of rows in tables of Postgres, in the order of their commits; each is kept by a replication slot
    until its tree is done.

    Bodies are JSON: ``{"table": "public.orders", "kind": "update", "row": {...}, "old": {...}}``, as
    :class:`~stormlet.connect.postgres.pgoutput.Change` has them. Needs ``wal_level=logical``, and Postgres 14 or later.
    One run reads a slot, with one task. With ``state=`` it goes on behind the last change that is there, and the slot
    keeps what is not durable.
    """

    @overload
    def __init__(
        self: Changes[Change],
        url: str | None,
        *,
        slot: str,
        publication: str,
        as_: None = None,
        **options: Unpack[ChangesOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        url: str | None,
        *,
        slot: str,
        publication: str,
        as_: type[T],
        **options: Unpack[ChangesOptions],
    ) -> None: ...
    def __init__(
        self,
        url: str | None,
        *,
        slot: str,
        publication: str,
        as_: Any = None,
        **options: Unpack[ChangesOptions],
    ) -> None:
        """``options`` are those of :class:`ChangesSettings` and of
        :class:`~stormlet.connect.driver.options.SourceSettings`. The role of the URL must have the attribute
        ``REPLICATION``. Raises :class:`ValueError` for an ``encoding`` that is not JSON."""
        self.changes_settings, others = split_options(options, ChangesSettings)
        super().__init__(url, as_=Change if as_ is None else as_, **others)
        if self.settings.encoding != "json":
            raise ValueError(f"encoding={self.settings.encoding!r}: changes are JSON")
        self.slot = slot
        self.publication = publication
        self._has_begun = False

    @property
    def capabilities(self) -> Capabilities:
        """Positions in the WAL."""
        return Capabilities(settles=Settles.PREFIX, has_lag=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """The slot."""
        return (self.slot,)

    @property
    def resumable(self) -> bool:
        """True unless changes may be emitted in another order than that of their commits."""
        return self.settings.ordered_by is None

    @property
    def resume_advice(self) -> str:
        """The option that is in the way."""
        return "leave out ordered_by=, or state="

    async def connect(self, address: Address, context: SourceContext) -> Session:
        """Connect to the server, for which no twin can stand."""
        if twin_of(address) is not None:
            raise BrokerRefused(
                f"{address}: a twin has no changes; test with a TwinSource in the stead of {self}"
            )
        return await self.begin(address, context)

    async def begin(self, address: Address, context: SourceContext) -> ChangesSession:
        """Connect twice, find or make publication and slot, and read for the first time."""
        if context.parallelism > 1:
            raise BrokerRefused(
                f"{context.component!r} reads the replication slot {self.slot!r}, which one task does: parallelism "
                "must be 1"
            )
        settings = self.changes_settings
        name, tls = f"{context.topology}: {context.consumer}", Tls(settings.ca_file, settings.insecure)
        control = await connected(address, name, tls)
        try:
            reader = await connected(address, name, tls)
        except BaseException:
            await control.close()
            raise
        slot = Slot(reader, control, self.slot, self.publication)
        try:
            confirmed = await slot.begin(settings.create)
            session = ChangesSession(
                context,
                slot,
                confirmed,
                poll=settings.poll,
                warn_bytes=settings.warn_bytes,
                is_durable=not self._has_begun,  # as it is what the state of another process has
            )
            await session.begin()
            self._has_begun = True
        except BaseException:
            await slot.close()
            raise
        return session
