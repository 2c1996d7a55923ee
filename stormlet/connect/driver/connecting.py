"""Connecting: once at the start, which fails fast, and for ever when a connection was lost (law R8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Protocol, TypeVar

from stormlet.connect.address import Address
from stormlet.connect.driver.status import Status
from stormlet.connect.secrets import scrubbed
from stormlet.core.settlement.reconnects import ReconnectPolicy
from stormlet.errors import BrokerGivenUp, BrokerRefused, ConnectionLost, ConnectorError
from stormlet.report.connections import ConnectionState

S = TypeVar("S")

LOSSES = (ConnectionLost, BrokerRefused, OSError, EOFError, TimeoutError)
"""The errors that say that a connection is lost, or is of no use."""

SHORT = 1.0
"""Seconds. A connection that lasts less does not reset the growing pauses."""

CLOSING = 10.0
"""Seconds that leaving a broker may take."""


class Closing(Protocol):
    """A session of a source or a sink."""

    async def close(self) -> None:
        """End the connection."""
        ...


async def leave(session: Closing) -> None:
    """Leave a broker, which may not answer any more."""
    try:
        async with asyncio.timeout(CLOSING):
            await session.close()
    except LOSSES:
        return


class Connecting:
    """Makes the connections of one task."""

    def __init__(
        self, address: Address, status: Status, random: Random, policy: ReconnectPolicy, give_up: float
    ) -> None:
        self._address = address
        self._status = status
        self._random = random
        self._policy = policy
        self._give_up = give_up
        self._attempts = 0
        """Attempts since a connection has lasted longer than that."""
        self._refused_since: float | None = None
        """Time since which nothing but refusals has come."""
        self._connected_at = 0.0
        self._settled = 0
        """Messages that were settled when a connection was lost the last time."""

    async def first(self, connect: Callable[[], Awaitable[S]]) -> S:
        """Connect; raise :class:`~stormlet.errors.ConnectorError`, which names the broker and no secret (law R9)."""
        try:
            session = await connect()
        except Exception as error:
            raise self.without_secrets(error) from None
        self._connected_at = self._status.clock()
        self._status.become(ConnectionState.READY)
        return session

    async def again(self, connect: Callable[[], Awaitable[S]], lost: Exception) -> S:
        """Connect as often as it takes. Raise :class:`~stormlet.errors.BrokerGivenUp` if the broker has done nothing
        but refuse for ``give_up`` seconds."""
        status = self._status
        status.become(ConnectionState.RECONNECTING, self.words(lost))
        stood = status.clock() - self._connected_at
        if stood >= SHORT:
            self._attempts = 0
        # A refusal may come long after the connection, as with the first settlement.
        if status.settled > self._settled or stood >= self._give_up:
            self._refused_since = None
        self._settled = status.settled
        self._note(lost)
        while True:
            self._attempts += 1
            status.attempt = self._attempts
            await asyncio.sleep(self._policy.pause(self._attempts, self._random))
            try:
                session = await connect()
            except BrokerGivenUp as error:
                raise BrokerGivenUp(self.words(error)) from None
            except LOSSES as error:
                self._note(error)
            else:
                self._connected_at = status.clock()
                status.reconnects += 1
                status.attempt = 0
                status.become(ConnectionState.READY)
                return session

    def _note(self, error: Exception) -> None:
        """Note that an attempt has failed, or the connection that it has made."""
        status = self._status
        status.error = self.words(error)
        if not isinstance(error, BrokerRefused):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = status.clock()
        elif status.clock() - self._refused_since >= self._give_up:
            raise BrokerGivenUp(status.error) from None

    def words(self, error: BaseException) -> str:
        """Return an error in words without secrets."""
        return scrubbed(str(error) or type(error).__name__, self._address.secrets)

    def without_secrets(self, error: Exception) -> Exception:
        """Return the error to raise: the client's own has secrets in its text, or in that of its causes."""
        if isinstance(error, BrokerRefused):
            return BrokerRefused(self.words(error))
        if isinstance(error, ConnectorError):
            return type(error)(self.words(error))
        if isinstance(error, LOSSES):
            return ConnectionLost(f"{self._address} cannot be reached: {self.words(error)}")
        if scrubbed(f"{error!r}", self._address.secrets) != f"{error!r}":
            return ConnectorError(f"{type(error).__name__} of the connector: {self.words(error)}")
        return error
