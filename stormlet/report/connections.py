"""Records of the connections of sources and sinks to their brokers, for health, statistics and views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec


class ConnectionState(Enum):
    """The stages of a connection to a broker."""

    CONNECTING = "connecting"
    """It is made for the first time."""
    READY = "ready"
    PAUSED = "paused"
    """It is there, and its source asks for nothing, as the topology is not active."""
    RECONNECTING = "reconnecting"
    """It was lost, and is tried again; of a sink also: the broker takes nothing now."""
    DRAINING = "draining"
    """A source takes nothing more; what is under way is finished and settled."""
    CLOSED = "closed"


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """One connection of one task, now; the counts are since the start."""

    address: str
    """The address of the broker, without secrets."""
    state: ConnectionState = ConnectionState.CONNECTING
    since: float = 0.0
    """Seconds for which it has been in this state."""
    attempt: int = 0
    """While it reconnects: attempts so far."""
    error: str = ""
    """The last error, without secrets."""
    lag: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """Source: messages that the broker has and that are not settled, by partition; the sum is :attr:`total_lag`. Empty
    if the broker does not say; while it is not reached, what it said last."""
    oldest: float | None = None
    """Source: seconds since the oldest message that is not settled came; None if all are."""
    buffered: int = 0
    """Source: messages that have come and are not emitted."""
    received: int = 0
    """Source: messages that have come. Sink: inputs."""
    settled: int = 0
    """Source: messages of which the broker knows that they are done. Sink: outputs that it has taken."""
    returned: int = 0
    """Source: messages given back to the broker without a penalty."""
    rejected: int = 0
    """Messages that went to dead letters."""
    redelivered: int = 0
    """Source: messages that came while they were under way, or had been delivered before."""
    stale: int = 0
    """Source: receipts that were valid no more when their message was settled; it comes again."""
    withdrawn: int = 0
    """Source: messages that came to belong to somebody else while they were under way."""
    renewals: int = 0
    """Source: renewals of leases."""
    reconnects: int = 0
    """Times that it was lost and made again."""

    @property
    def total_lag(self) -> int | None:
        """The lag of all partitions; None if the broker does not say, and while it is not reached."""
        return lag_of([self])

    @property
    def is_ready(self) -> bool:
        """True if messages can come or go."""
        return self.state in (ConnectionState.READY, ConnectionState.PAUSED)


def lag_of(connections: Iterable[Connection]) -> int | None:
    """Return the lag of several connections; a place that more than one tells of is counted once. None if no broker
    says, or if the lag of some place is known only from a connection that is lost."""
    places = lag_by_place(connections)
    return sum(places.values()) if places else None


def lag_by_place(connections: Iterable[Connection]) -> Mapping[str, int]:
    """Return the lag of each place, as in :func:`lag_of`; empty if that of one is unknown."""
    places: dict[str, int] = {}
    unreached: set[str] = set()
    for each in connections:
        if each.state is ConnectionState.RECONNECTING:
            unreached.update(each.lag)
            continue
        for place, lag in each.lag.items():
            places[place] = max(lag, places.get(place, 0))
    return places if unreached <= places.keys() else {}
