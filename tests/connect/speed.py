"""What a source and a sink cost beside their bare client, at one broker, in turns.

The modules ``speed`` of the brokers run this, such as ``python -m tests.connect.nats.speed --rounds 3``.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

from stormlet import Topology
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from tests.connect.sessions import numbered

AT_ONCE = 500
"""Messages that a client writes or asks for at a time."""
Work: TypeAlias = Callable[[], Awaitable[float]]
"""One measurement, in messages per second."""


async def through_a_bolt(source: Source[Any], count: int, pending: int = 2 * AT_ONCE) -> float:
    """Messages per second of a source through one acked bolt."""
    seen, over = 0, asyncio.Event()

    def see(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            over.set()

    topology = Topology("speed", max_spout_pending=pending)
    topology.bolt("see", see, topology.spout("orders", source).shuffle())
    async with topology.run():
        start = perf_counter()
        await over.wait()
        return count / (perf_counter() - start)


async def from_a_spout(sink: Sink[str], count: int) -> float:
    """Messages per second of a sink, from a spout that acks."""
    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    topology.bolt("tell", sink, topology.spout("texts", numbered(count)).shuffle())
    start = perf_counter()
    async with topology.run() as running:
        await running.finished()
    return count / (perf_counter() - start)


async def by_the_client(write: Callable[..., Awaitable[object]], count: int) -> float:
    """Messages per second of the client alone, 500 at a time."""
    start = perf_counter()
    for first in range(0, count, AT_ONCE):
        await write(*numbered(min(AT_ONCE, count - first)))
    return count / (perf_counter() - start)


class Compared:
    """What writes and reads so many messages, each time at a broker that has been made ready for it."""

    def __init__(self, ready: Callable[[int], AbstractAsyncContextManager[object]], count: int) -> None:
        """``ready`` makes a place that has so many messages, and does away with it."""
        self._ready = ready
        self._count = count

    def sinks(self, how: str, write: Callable[..., Awaitable[object]], sink: Sink[str]) -> Mapping[str, Work]:
        """The client, which writes like this, and a sink."""
        count = self._count
        return {
            f"bare client, {how}": self._measured(0, lambda: by_the_client(write, count)),
            "sink": self._measured(0, lambda: from_a_spout(sink, count)),
        }

    def sources(
        self,
        clients: Mapping[str, Callable[[int], Awaitable[float]]],
        source: Callable[[], Source[Any]],
        pending: int = 2 * AT_ONCE,
    ) -> Mapping[str, Work]:
        """The client, in one way or several, and a source."""
        count = self._count
        reading = {
            f"bare client, {how}": self._measured(count, lambda read=read: read(count))
            for how, read in clients.items()
        }
        through = self._measured(count, lambda: through_a_bolt(source(), count, pending))
        return {**reading, "source, one acked bolt": through}

    def _measured(self, messages: int, work: Callable[[], Awaitable[float]]) -> Work:
        async def measured() -> float:
            async with self._ready(messages):
                return await work()

        return measured


async def compare(rounds: int, *groups: Mapping[str, Work]) -> None:
    """Print the medians, and their ratios to the first of each group, which is the bare client's."""
    rates: dict[str, list[float]] = {name: [] for group in groups for name in group}
    for _ in range(rounds):
        for group in groups:
            for name, work in group.items():
                rates[name].append(await work())
    for group in groups:
        first = median(rates[next(iter(group))])
        for name in group:
            print(f"{name:30} {median(rates[name]):8,.0f} /s   {median(rates[name]) / first:.2f}")


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read ``--messages`` and ``--rounds``."""
    parser = argparse.ArgumentParser(description="What a source and a sink cost beside their bare client.")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args(arguments)
