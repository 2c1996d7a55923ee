"""The connections of sources and sinks to their brokers, in words: one line for each component."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from stormlet.cli.running.meter import Frame
from stormlet.cli.units import duration
from stormlet.core.shortened import counted, printable
from stormlet.report.connections import Connection, ConnectionState, lag_of

MOST_CONNECTED = 4
"""The most components whose connections are shown on the terminal, one line each."""
EXTRAS = ("rejected", "returned", "redelivered", "withdrawn", "stale")
"""Counts that the last line has where they are not 0."""

Count = Callable[[int], str]


def connection_lines(frame: Frame, count: Count, most: int = MOST_CONNECTED) -> Iterator[tuple[str, bool]]:
    """A line for each component, those first whose broker is away; with it, True if that is so."""
    known = sorted(frame.connections.items(), key=lambda each: _are_ready(each[1]))
    for component, connections in islice(known, most):
        yield printable(f"{component}: {_words(connections, count)}"), not _are_ready(connections)


def lost_connections(frame: Frame) -> Iterator[str]:
    """``orders is reconnecting``: the components whose broker is away."""
    for component, connections in frame.connections.items():
        if not _are_ready(connections):
            yield printable(f"{component} is {_worst(connections).state.value}")


def closed_connections(frame: Frame, count: Count) -> Iterator[str]:
    """``orders: 12,340 received, 12,340 settled at amqp://mq``: what became of each component's."""
    for component, connections in frame.connections.items():
        counts = {name: sum(getattr(each, name) for each in connections) for name in EXTRAS}
        received, settled = (
            sum(getattr(each, name) for each in connections) for name in ("received", "settled")
        )
        more = [f"{count(number)} {name}" for name, number in counts.items() if number]
        reconnects = sum(each.reconnects for each in connections)
        if reconnects:
            more.append(counted(reconnects, "reconnect"))
        words = [f"{count(received)} received", f"{count(settled)} settled", *more]
        yield printable(f"{component}: {', '.join(words)} at {connections[0].address}")


def _are_ready(connections: Sequence[Connection]) -> bool:
    return all(each.is_ready or each.state is ConnectionState.DRAINING for each in connections)


def _worst(connections: Sequence[Connection]) -> Connection:
    """The one that has been away for the longest time; if none is, the first."""
    away = [each for each in connections if not _are_ready((each,))]
    return max(away, key=lambda each: each.since, default=connections[0])


def _words(connections: Sequence[Connection], count: Count) -> str:
    worst = _worst(connections)
    if _are_ready(connections):
        lag, oldest = lag_of(connections), max((each.oldest or 0.0 for each in connections), default=0.0)
        lagging = "" if lag is None else f", lag {count(lag)}"
        waiting = f", the oldest unsettled for {duration(oldest)}" if oldest >= 1.0 else ""
        return f"{worst.state.value} at {worst.address}{lagging}{waiting}"
    away = sum(not _are_ready((each,)) for each in connections)
    tasks = f" in {away} of {len(connections)} tasks" if len(connections) > 1 else ""
    attempt = f", attempt {worst.attempt}" if worst.attempt else ""
    why = f": {worst.error}" if worst.error else ""
    return f"{worst.state.value}{tasks} for {duration(worst.since)} at {worst.address}{attempt}{why}"
