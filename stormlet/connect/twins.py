"""The place where a test puts a twin in a broker's stead, by its URL."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from stormlet.connect.address import Address
from stormlet.connect.session import Capabilities, ConnectContext, Session, SinkSession, SourceContext
from stormlet.core.state.outgoing import Epoch


class Reading(Protocol):
    """The facts of a source that a twin needs."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of queues or topics."""
        ...

    @property
    def group(self) -> str:
        """The group whose members share the messages."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The rules of the broker."""
        ...


class Writing(Protocol):
    """The facts of a sink that a twin needs."""

    @property
    def writes(self) -> str:
        """The name of the queue or topic."""
        ...

    def encode(self, value: Any) -> bytes:
        """Return the body for a value."""
        ...


class Row(Protocol):
    """A message of a transaction."""

    @property
    def topic(self) -> str:
        """Topic to write to."""
        ...

    @property
    def body(self) -> bytes:
        """Bytes to write."""
        ...

    @property
    def key(self) -> str | bytes | None:
        """By which it finds its partition."""
        ...


class EpochWriter(Protocol):
    """A writer of transactions, each with the rows of one epoch."""

    async def write(self, epoch: Epoch, rows: Sequence[Row]) -> None:
        """Write the rows of an epoch, unless they are there. Raises :class:`~stormlet.errors.ConnectorError`."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class Twin(Protocol):
    """A broker in memory, such as :mod:`stormlet.testing.brokers` has them."""

    def source(
        self, source: Reading, address: Address, context: SourceContext
    ) -> Coroutine[Any, Any, Session]:
        """Connect a source."""
        ...

    def sink(
        self, sink: Writing, address: Address, context: ConnectContext
    ) -> Coroutine[Any, Any, SinkSession]:
        """Connect a sink."""
        ...

    def transactions(self, name: str, topic: str, address: Address) -> Coroutine[Any, Any, EpochWriter]:
        """Connect a writer of transactions under this name, who takes the place of an earlier one."""
        ...


TWINS: dict[str, Twin] = {}
"""By scheme and servers, such as ``amqps://mq.example``."""


def twin_of(address: Address) -> Twin | None:
    """Return the twin that stands for the broker at this address; None in production."""
    return TWINS.get(f"{address.scheme}://{address.servers}") if TWINS else None


def session_of_twin(
    source: Reading, address: Address, context: SourceContext
) -> Coroutine[Any, Any, Session] | None:
    """Return the connection of a source to a twin, if there is one."""
    twin = twin_of(address)
    return None if twin is None else twin.source(source, address, context)


def sink_session_of_twin(
    sink: Writing, address: Address, context: ConnectContext
) -> Coroutine[Any, Any, SinkSession] | None:
    """Return the connection of a sink to a twin, if there is one."""
    twin = twin_of(address)
    return None if twin is None else twin.sink(sink, address, context)
