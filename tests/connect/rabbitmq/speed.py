"""What a source and a sink cost beside their bare client, at one RabbitMQ, in turns.

::

    python -m tests.connect.rabbitmq.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeAlias

import aiormq
from aiormq.abc import DeliveredMessage

from stormlet import Topology
from stormlet.connect import rabbitmq
from tests.brokers.servers import RabbitMQ
from tests.connect.rabbitmq.kit import Rabbit, numbered

PREFETCH = 500
Work: TypeAlias = Callable[[Rabbit, int], Awaitable[float]]


async def bare_consumer(rabbit: Rabbit, count: int, every: int) -> float:
    """Messages per second of the client alone, with an acknowledgement for so many."""
    connection = await aiormq.connect(rabbit.url)
    channel = await connection.channel(publisher_confirms=False)
    await channel.basic_qos(prefetch_count=PREFETCH)
    seen, over = 0, asyncio.Event()

    async def came(message: DeliveredMessage) -> None:
        nonlocal seen
        seen += 1
        if seen % every == 0:
            await channel.basic_ack(message.delivery_tag or 0, multiple=True, wait=False)
        if seen == count:
            over.set()

    start = perf_counter()
    await channel.basic_consume(rabbit.queue, came)
    await over.wait()
    rate = count / (perf_counter() - start)
    await connection.close()
    return rate


async def source(rabbit: Rabbit, count: int) -> float:
    """Messages per second through one acked bolt."""
    seen, over = 0, asyncio.Event()

    def see(_: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            over.set()

    topology = Topology("speed", max_spout_pending=PREFETCH)
    made = rabbitmq.Queue[bytes](rabbit.url, rabbit.queue, as_=bytes)
    topology.bolt("see", see, topology.spout("orders", made).shuffle())
    async with topology.run():
        start = perf_counter()
        await over.wait()
        return count / (perf_counter() - start)


async def bare_publisher(rabbit: Rabbit, count: int) -> float:
    """Confirmed messages per second of the client alone, 500 at a time."""
    start = perf_counter()
    for first in range(0, count, PREFETCH):
        await rabbit.publish_many(numbered(min(PREFETCH, count - first)))
    return count / (perf_counter() - start)


async def sink(rabbit: Rabbit, count: int) -> float:
    """Confirmed messages per second of a sink, from a spout that acks."""
    topology = Topology("speed", max_spout_pending=2 * PREFETCH)
    made = rabbitmq.Publish[str](rabbit.url, routing_key=rabbit.queue)
    topology.bolt("tell", made, topology.spout("texts", numbered(count)).shuffle())
    start = perf_counter()
    async with topology.run() as running:
        await running.finished()
    return count / (perf_counter() - start)


async def measure(url: str, count: int, rounds: int) -> None:
    """Print the medians, and their ratios to the bare client's."""
    consumers: dict[str, Work] = {
        "bare client, ack for 100": lambda rabbit, count: bare_consumer(rabbit, count, 100),
        "bare client, ack for each": lambda rabbit, count: bare_consumer(rabbit, count, 1),
        "source, one acked bolt": source,
    }
    publishers: dict[str, Work] = {"bare client, confirms": bare_publisher, "sink, confirms": sink}
    rates: dict[str, list[float]] = {name: [] for name in (*publishers, *consumers)}
    async with Rabbit(url, "speed") as rabbit:
        await rabbit.declare()
        for _ in range(rounds):
            for name, publish in publishers.items():
                rates[name].append(await publish(rabbit, count))
                await rabbit.purge()
            for name, consume in consumers.items():
                await bare_publisher(rabbit, count)
                rates[name].append(await consume(rabbit, count))
    for group in (publishers, consumers):
        first = median(rates[next(iter(group))])
        for name in group:
            print(f"{name:28} {median(rates[name]):8,.0f} /s   {median(rates[name]) / first:.2f}")


def main() -> None:
    """Start a RabbitMQ, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(RabbitMQ(Path(folder))) as broker:
        broker.start()
        asyncio.run(measure(broker.url, options.messages, options.rounds))


if __name__ == "__main__":
    main()
