"""A Kafka to test with: librdkafka's own mock, which is in this process, or the real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stormlet.connect.address import read_address
from stormlet.connect.kafka import Topics
from stormlet.connect.session import Delivery, Session, Settlement
from stormlet.core.settlement.prefix import Front, Prefix

NUMBERS = count()


PARTITIONS = 4
"""Of each topic: the mock has no others."""


class Cluster:
    """Where it is, and what a test does there by itself."""

    def __init__(self, servers: str, *, is_mock: bool = False) -> None:
        self.servers = servers
        self.url = f"kafka://{servers}"
        self._is_mock = is_mock
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "linger.ms": 1,
                "queue.buffering.max.messages": 1_000_000,
                "enable.idempotence": True,  # else a batch that is sent again comes after the next one
            }
        )

    def close(self) -> None:
        """End its client, whose threads would look for a broker that is gone."""
        assert self._producer.close()

    def topic(self, **config: str) -> str:
        """Make a topic with a name of its own."""
        name = f"topic-{next(NUMBERS)}"
        if self._is_mock:
            self._producer.list_topics(name, timeout=30)
        else:
            admin = AdminClient({"bootstrap.servers": self.servers})
            for made in admin.create_topics([NewTopic(name, PARTITIONS, 1, config=config)]).values():
                made.result(30)
        return name

    def fill(self, topic: str, bodies: Iterable[object], partitions: int = 1) -> None:
        """Publish these, in turn to the first so many partitions."""
        for number, body in enumerate(bodies):
            self._producer.produce(topic, str(body).encode(), partition=number % partitions)
            if number % 1000 == 0:
                self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def committed(self, topic: str) -> list[int]:
        """Return what a group has committed."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": f"readers of {topic}"})
        found = consumer.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], 30)
        consumer.close()
        return [each.offset for each in found]


class Owner:
    """What a driver would be to a session."""

    topology, component, task_index, parallelism, consumer, connection = "test", "events", 0, 1, "test", 1
    random = Random(1)
    credit = 1000
    resume = None

    def __init__(self) -> None:
        self.places = dict[str, Prefix]()
        self.drained = asyncio.Event()
        self.drained.set()
        self.asked = asyncio.Event()
        self.revoked = list[str]()
        self.gone = list[str]()

    def assigned(self, name: str, most_uncommitted: int = 10_000) -> Prefix:
        self.places[name] = Prefix(name, most_uncommitted)
        return self.places[name]

    async def revoking(self, places: Collection[Prefix]) -> Sequence[tuple[Prefix, Front]]:
        self.revoked += [place.name for place in places]
        self.asked.set()
        await self.drained.wait()
        fronts = [(place, front) for place in places if (front := place.to_commit())]
        for place in places:
            place.revoke()
        return fronts

    def lost(self, places: Collection[Prefix]) -> None:
        self.gone += [place.name for place in places]
        for place in places:
            place.revoke()


@asynccontextmanager
async def connected(
    cluster: Cluster, topic: str, owner: Owner | None = None, **options: Any
) -> AsyncIterator[Session]:
    """A session of its own."""
    options = {"group": f"readers of {topic}", **options}
    source = Topics[Any](options.pop("url", cluster.url), [topic], **options)
    session = await source.begin(read_address(source.url or "", where="test"), owner or Owner())
    try:
        yield session
    finally:
        await session.close()


async def read(session: Session, most: int, within: float = 60.0) -> list[Delivery]:
    """Read so many messages, and note them with their partitions."""
    found = list[Delivery]()
    async with asyncio.timeout(within):
        while len(found) < most:
            for delivery in await session.receive(most - len(found), 1.0):
                assert delivery.place is not None
                if not delivery.place.is_revoked:
                    delivery.receipt = delivery.place.add(delivery.position)
                    found.append(delivery)
    return found


def done(deliveries: Iterable[Delivery]) -> Settlement:
    """Settle these; return what a broker is to be told."""
    places = dict[Prefix, None]()
    for each in deliveries:
        assert each.place is not None
        each.place.settle(each.receipt)
        places[each.place] = None
    return Settlement(fronts=[(place, front) for place in places if (front := place.to_commit())])
