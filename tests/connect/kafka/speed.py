"""What a source costs beside its bare client, at one Kafka, in turns.

::

    python -m tests.connect.kafka.speed --messages 100000 --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from confluent_kafka import Consumer

from stormlet import Topology
from stormlet.connect.kafka import Topics
from tests.brokers.servers import Kafka
from tests.connect.kafka.cluster import Cluster

EVERY = 0.5
"""Seconds between two commits."""
GROUPS = count()


def bare(cluster: Cluster, topic: str, messages: int, at_once: int) -> float:
    """Messages per second of the client alone, from the first one on, each looked at."""
    settings = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer(
        {"bootstrap.servers": cluster.servers, "group.id": f"speed {next(GROUPS)}", **settings}
    )
    consumer.subscribe([topic])
    seen, size, start, committed = 0, 0, 0.0, 0.0
    while seen < messages:
        for message in consumer.consume(at_once, 0.1):
            if not seen:
                start = committed = perf_counter()
            seen += 1
            size += len(message.value() or b"")
        if seen and perf_counter() - committed > EVERY:
            consumer.commit(asynchronous=True)
            committed = perf_counter()
    rate = messages / (perf_counter() - start)
    consumer.close()
    return rate


async def source(cluster: Cluster, topic: str, messages: int) -> float:
    """Messages per second through one acked bolt, from the first one on."""
    seen, size, start, over = 0, 0, 0.0, asyncio.Event()

    def see(body: bytes) -> None:
        nonlocal seen, size, start
        if not seen:
            start = perf_counter()
        seen += 1
        size += len(body)
        if seen == messages:
            over.set()

    topology = Topology("speed", max_spout_pending=1000)
    made = Topics[bytes](cluster.url, [topic], group=f"speed {next(GROUPS)}", as_=bytes, settle_every=EVERY)
    topology.bolt("see", see, topology.spout("events", made).shuffle())
    async with topology.run():
        await over.wait()
        return messages / (perf_counter() - start)


async def generator(messages: int) -> float:
    """Messages per second of a generator through one acked bolt, without a broker."""
    topology = Topology("speed", max_spout_pending=1000)
    events = topology.spout("events", (b"%0100d" % number for number in range(messages)))
    topology.bolt("see", len, events.shuffle())
    start = perf_counter()
    async with topology.run() as running:
        await running.finished()
    return messages / (perf_counter() - start)


def measure(cluster: Cluster, messages: int, rounds: int) -> None:
    """Print the medians, and their ratio."""
    topic = cluster.topic()
    cluster.fill(topic, (f"{number:0100}" for number in range(messages)), partitions=4)
    works: dict[str, Callable[[], float]] = {
        "bare client, 500 at once": lambda: bare(cluster, topic, messages, 500),
        "bare client, one at a time": lambda: bare(cluster, topic, messages, 1),
        "source, one acked bolt": lambda: asyncio.run(source(cluster, topic, messages)),
        "generator, one acked bolt": lambda: asyncio.run(generator(messages)),
    }
    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            rates[name].append(work())
    mine = median(rates["source, one acked bolt"])
    for name in works:
        rate = median(rates[name])
        print(f"{name:28} {rate:9,.0f} /s   the source is {mine / rate:.2f} of it")


def main() -> None:
    """Start a Kafka, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(Kafka(Path(folder))) as broker:
        broker.start()
        measure(Cluster(f"127.0.0.1:{broker.port}"), options.messages, options.rounds)


if __name__ == "__main__":
    main()
