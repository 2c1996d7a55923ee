"""States and counts of one connection, for health, statistics and views; each change of state is logged once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from stormlet.report.connections import Connection, ConnectionState
from stormlet.report.failures import log_fields

logger = logging.getLogger("stormlet.connect")

LOST = ConnectionState.RECONNECTING
THERE = (ConnectionState.READY, ConnectionState.PAUSED, ConnectionState.DRAINING)


class Status:
    """One connection of one task, as it goes on."""

    def __init__(self, topology: str, component: str, address: str, clock: Callable[[], float]) -> None:
        self.state = ConnectionState.CONNECTING
        self.is_draining = False
        self.attempt = 0
        self.error = ""
        self.lag: Mapping[str, int] = {}
        self.received = 0
        self.settled = 0
        self.returned = 0
        self.rejected = 0
        self.redelivered = 0
        self.stale = 0
        self.withdrawn = 0
        self.renewals = 0
        self.reconnects = 0
        self._topology = topology
        self._component = component
        self._address = address
        self.clock = clock
        self._since = clock()

    def become(self, state: ConnectionState, error: str = "", event: str = "has lost") -> None:
        """Enter this state; nothing happens if it is in it already. A connection that is there while the end is near is
        draining. ``event`` is for the log."""
        if self.is_draining and state in THERE:
            state = ConnectionState.DRAINING
        if state is self.state:
            return
        before, self.state, self._since = self.state, state, self.clock()
        if state is LOST:
            self.error = error
            self._log(logging.WARNING, f"%s {event} %s, and tries again: %s", error)
        elif before is LOST and state in THERE:
            self._log(logging.INFO, "%s has %s again")

    def drain(self) -> None:
        """The end is near; a connection that is lost stays lost."""
        self.is_draining = True
        if self.state is not LOST:
            self.become(ConnectionState.DRAINING)

    def _log(self, level: int, text: str, *more: object) -> None:
        fields = log_fields(self._topology, self._component)
        logger.log(level, text, self._component, self._address, *more, extra=fields)

    def warn(self, text: str, *arguments: object) -> None:
        """Log a warning, which begins with the component."""
        fields = log_fields(self._topology, self._component)
        logger.warning("%s: " + text, self._component, *arguments, extra=fields)

    def connection(self, *, oldest: float | None = None, buffered: int = 0, stale: int = 0) -> Connection:
        """Return the record of it now; ``oldest`` is a time of the clock."""
        now = self.clock()
        return Connection(
            address=self._address,
            state=self.state,
            since=now - self._since,
            attempt=self.attempt,
            error=self.error,
            lag=self.lag,
            oldest=None if oldest is None else now - oldest,
            buffered=buffered,
            received=self.received,
            settled=self.settled,
            returned=self.returned,
            rejected=self.rejected,
            redelivered=self.redelivered,
            stale=self.stale + stale,
            withdrawn=self.withdrawn,
            renewals=self.renewals,
            reconnects=self.reconnects,
        )
