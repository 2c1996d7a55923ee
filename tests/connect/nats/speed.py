"""What a source and a sink cost beside their bare client, at one NATS, in turns.

::

    python -m tests.connect.nats.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeAlias

from stormlet import Topology
from stormlet.connect import nats
from tests.brokers.servers import Nats
from tests.connect.nats.kit import CONSUMER, Server, numbered

AT_ONCE = 500
Work: TypeAlias = Callable[[Server, int], Awaitable[float]]


async def bare_consumer(server: Server, count: int) -> float:
    """Messages per second of the client alone, each acked."""
    await server.consumer(ack_wait=30.0, max_ack_pending=-1)
    subscription = await server.js.pull_subscribe_bind(CONSUMER, server.stream)
    start, seen = perf_counter(), 0
    while seen < count:
        messages = await subscription.fetch(AT_ONCE, timeout=5)
        for message in messages:
            await message.ack()
        seen += len(messages)
    await server.client.flush()
    return count / (perf_counter() - start)


async def source(server: Server, count: int) -> float:
    """Messages per second through one acked bolt."""
    seen, over = 0, asyncio.Event()

    def see(_: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            over.set()

    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    made = nats.Stream(server.url, server.stream, consumer=CONSUMER, as_=bytes)
    topology.bolt("see", see, topology.spout("orders", made).shuffle())
    async with topology.run():
        start = perf_counter()
        await over.wait()
        return count / (perf_counter() - start)


async def bare_publisher(server: Server, count: int) -> float:
    """Messages per second of the client alone, 500 at a time."""
    start = perf_counter()
    for first in range(0, count, AT_ONCE):
        await server.publish(*numbered(min(AT_ONCE, count - first)))
    return count / (perf_counter() - start)


async def sink(server: Server, count: int) -> float:
    """Messages per second of a sink, from a spout that acks."""
    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    made = nats.Publish[str](server.url, server.subject)
    topology.bolt("tell", made, topology.spout("texts", numbered(count)).shuffle())
    start = perf_counter()
    async with topology.run() as running:
        await running.finished()
    return count / (perf_counter() - start)


async def measure(url: str, count: int, rounds: int) -> None:
    """Print the medians, and their ratios to the bare client's."""
    publishers: dict[str, Work] = {"bare client, publish": bare_publisher, "sink": sink}
    consumers: dict[str, Work] = {
        "bare client, fetch and ack": bare_consumer,
        "source, one acked bolt": source,
    }
    rates: dict[str, list[float]] = {name: [] for name in (*publishers, *consumers)}
    async with Server(url, "speed") as server:
        for _ in range(rounds):
            for name, work in (publishers | consumers).items():
                await server.make()
                if name in consumers:
                    await server.publish(*numbered(count))
                rates[name].append(await work(server, count))
                await server.js.delete_stream(server.stream)
    for group in (publishers, consumers):
        first = median(rates[next(iter(group))])
        for name in group:
            print(f"{name:28} {median(rates[name]):8,.0f} /s   {median(rates[name]) / first:.2f}")


def main() -> None:
    """Start a NATS, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(Nats(Path(folder))) as broker:
        broker.start()
        asyncio.run(measure(broker.url, options.messages, options.rounds))


if __name__ == "__main__":
    main()
