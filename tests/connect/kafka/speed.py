"""What a source costs beside its bare client, at one Kafka, in turns.

::

    python -m tests.connect.kafka.speed --messages 300000 --rounds 3

All read the same topic in this process and commit every 0.5 s. The clock begins with the first message that is handed
over, as the client begins to fetch, and ends with the last one. The bare clients are those that people write:

- ``poll`` takes one message after another and stores its offset; the client commits what is stored.
- ``asyncio`` has a thread ``consume`` up to 500, hands each to a function in the loop, and stores the last offset of
  each partition.
- ``consume`` does that without a loop, so that it waits for nothing: the most that the client can give.

As the client comes, it stops fetching for a second whenever it has fetched enough. A *tuned* client has the setting by
which the source goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from confluent_kafka import Consumer, Message

import stormlet
from stormlet import Topology
from stormlet.connect.kafka import Topics
from stormlet.connect.kafka.topics import FETCHING
from tests.brokers.servers import Kafka
from tests.connect.kafka.cluster import Cluster

EVERY = 0.5
"""Seconds between two commits."""
AT_ONCE = 500
GROUPS = count()


class Seen:
    """The function that gets each message: it looks at the body, and knows when all have come."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self.count = self._size = 0
        self._start = 0.0
        self.rate = 0.0
        self.over = asyncio.Event()

    def __call__(self, body: bytes) -> None:
        if not self.count:
            self._start = perf_counter()
        self.count += 1
        self._size += len(body)
        if self.count == self._messages:
            self.rate = self.count / (perf_counter() - self._start)
            self.over.set()


def consumer_of(cluster: Cluster, topic: str, tuning: Mapping[str, Any]) -> Consumer:
    """A client that commits the offsets that are stored."""
    settings: dict[str, Any] = {
        "bootstrap.servers": cluster.servers,
        "group.id": f"speed {next(GROUPS)}",
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": False,
        "auto.commit.interval.ms": int(EVERY * 1000),
        **tuning,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    return consumer


def by_poll(cluster: Cluster, topic: str, messages: int, **tuning: Any) -> float:
    """Messages per second, one after another."""
    see, consumer = Seen(messages), consumer_of(cluster, topic, tuning)
    while not see.rate:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            see(message.value() or b"")
            consumer.store_offsets(message)
    consumer.close()
    return see.rate


def _see_all(consumer: Consumer, see: Seen, messages: Sequence[Message]) -> None:
    last: dict[int | None, Message] = {}
    for message in messages:
        if message.error() is None:
            see(message.value() or b"")
            last[message.partition()] = message
    for message in last.values():
        consumer.store_offsets(message)


def by_consume(cluster: Cluster, topic: str, messages: int, **tuning: Any) -> float:
    """Messages per second, 500 at once."""
    see, consumer = Seen(messages), consumer_of(cluster, topic, tuning)
    while not see.rate:
        _see_all(consumer, see, consumer.consume(AT_ONCE, 0.1))
    consumer.close()
    return see.rate


async def _by_asyncio(cluster: Cluster, topic: str, messages: int, **tuning: Any) -> float:
    see, consumer = Seen(messages), consumer_of(cluster, topic, tuning)
    while not see.rate:
        _see_all(consumer, see, await asyncio.to_thread(consumer.consume, AT_ONCE, 0.1))
    await asyncio.to_thread(consumer.close)
    return see.rate


def by_asyncio(cluster: Cluster, topic: str, messages: int, **tuning: Any) -> float:
    """Messages per second, 500 at once by a thread, in the loop."""
    return asyncio.run(_by_asyncio(cluster, topic, messages, **tuning))


async def through_bolt(cluster: Cluster, topic: str, messages: int) -> float:
    """Messages per second through one acked bolt."""
    see = Seen(messages)
    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    made = Topics[bytes](cluster.url, [topic], group=f"speed {next(GROUPS)}", as_=bytes, settle_every=EVERY)
    topology.bolt("see", see, topology.spout("events", made).shuffle())
    async with topology.run():
        await see.over.wait()
        return see.rate


def source(cluster: Cluster, topic: str, messages: int) -> float:
    """Messages per second through one acked bolt."""
    return asyncio.run(through_bolt(cluster, topic, messages))


async def _generator(messages: int) -> float:
    see = Seen(messages)
    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    body = b"%0100d" % 1
    events = topology.spout("events", (body for _ in range(messages)))
    topology.bolt("see", see, events.shuffle())
    async with topology.run() as running:
        await running.finished()
    return see.rate


def generator(_cluster: Cluster, _topic: str, messages: int) -> float:
    """Messages per second of a generator through one acked bolt, without a broker."""
    return asyncio.run(_generator(messages))


WORKS: dict[str, Callable[[Cluster, str, int], float]] = {
    "bare client, poll": by_poll,
    "bare client, asyncio": by_asyncio,
    "tuned client, poll": partial(by_poll, **FETCHING),
    "tuned client, asyncio": partial(by_asyncio, **FETCHING),
    "tuned client, consume": partial(by_consume, **FETCHING),
    "source, one acked bolt": source,
    "generator, one acked bolt": generator,
}


def measure(cluster: Cluster, messages: int, rounds: int, only: str) -> None:
    """Print the medians, and the source's share of each."""
    topic = cluster.topic()
    cluster.fill(topic, (f"{number:0100}" for number in range(messages)), partitions=4)
    works = {name: work for name, work in WORKS.items() if only in name}
    rates: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        for name in reversed(works) if number % 2 else works:
            rates[name].append(works[name](cluster, topic, messages))
    print(f"stormlet is {'compiled' if stormlet.is_compiled() else 'interpreted'}")
    mine = rates.get("source, one acked bolt", [])
    for name, found in rates.items():
        share = median([one / other for one, other in zip(mine, found, strict=True)]) if mine else 0.0
        print(f"{name:28} {median(found):9,.0f} /s   the source is {share:.2f} of it")


def main() -> None:
    """Start a Kafka, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="those with this in their name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(Kafka(Path(folder))) as broker:
        broker.start()
        measure(Cluster(f"127.0.0.1:{broker.port}"), options.messages, options.rounds, options.only)


if __name__ == "__main__":
    main()
