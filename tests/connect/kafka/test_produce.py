"""The sink: what Kafka has of what was written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from stormlet import Topology
from stormlet.connect.address import read_address
from stormlet.connect.kafka import Produce
from stormlet.connect.session import DONE, Item, SinkSession
from stormlet.errors import BrokerRefused, ConnectionLost
from tests.brokers.processes import Broker
from tests.connect.kafka.cluster import PARTITIONS, Cluster, Owner

pytestmark = pytest.mark.asyncio


class Order(msgspec.Struct, frozen=True):
    """What is written."""

    shop: str
    number: int


@asynccontextmanager
async def writing(cluster: Cluster, sink: Produce[Any]) -> AsyncIterator[SinkSession]:
    """A session of a sink."""
    session = await sink.begin(read_address(cluster.url, where="test"), Owner())
    try:
        yield session
    finally:
        await session.close()


def there(cluster: Cluster, topic: str, count: int, more: float = 1.0) -> Sequence[Message]:
    """Read so many messages of a topic, and whatever comes a moment later."""
    consumer = Consumer({"bootstrap.servers": cluster.servers, "group.id": "none"})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    found = list[Message]()
    while len(found) < count:
        found += consumer.consume(count - len(found), 30)
    found += consumer.consume(count, more)
    consumer.close()
    return found


async def test_a_value_is_done_when_kafka_has_it(cluster: Cluster) -> None:
    """With its key, its headers, and the origin of its message."""
    topic = cluster.topic()
    sink = Produce[Order](cluster.url, topic, key=lambda o: o.shop, headers=lambda o: {"kind": "order"})
    async with writing(cluster, sink) as session:
        assert await session.write([Item(Order("a", 1), "events[0]@7")]) == [DONE]
    (message,) = there(cluster, topic, 1)
    assert (message.key(), message.value()) == (b"a", b'{"shop":"a","number":1}')
    assert message.headers() == [("kind", b"order"), ("stormlet-origin", b"events[0]@7")]


async def test_equal_keys_go_where_kafkas_own_client_brings_them(cluster: Cluster) -> None:
    """By murmur2, in their order."""
    topic = cluster.topic()
    sink = Produce[Order](cluster.url, topic, key=lambda o: o.shop)
    async with writing(cluster, sink) as session:
        await session.write([Item(Order("abc", number)) for number in range(50)])
    found = there(cluster, topic, 50)
    assert {each.partition() for each in found} == {0x1C94221B % 4}  # murmur2 of "abc", as Java has it
    assert [msgspec.json.decode(each.value() or b"")["number"] for each in found] == list(range(50))


async def test_a_message_that_is_too_large_is_hopeless(cluster: Cluster) -> None:
    """The others of its batch are written."""
    topic = cluster.topic()
    async with writing(cluster, Produce[bytes](cluster.url, topic)) as session:
        small, large, other = await session.write([Item(b"a"), Item(bytes(2_000_000)), Item(b"b")])
    assert (small, other) == (DONE, DONE)
    assert large.permanent
    assert "large" in large.reason
    assert {each.value() for each in there(cluster, topic, 2)} == {b"a", b"b"}


async def test_a_topic_may_depend_on_the_value(cluster: Cluster) -> None:
    """It is asked of each."""
    topics = [cluster.topic(), cluster.topic()]
    async with writing(cluster, Produce[bytes](cluster.url, lambda value: topics[value == b"1"])) as session:
        await session.write([Item(b"0"), Item(b"1")])
    assert [there(cluster, topic, 1)[0].value() for topic in topics] == [b"0", b"1"]


async def test_a_missing_topic_is_named(cluster: Cluster) -> None:
    """A start that cannot succeed fails at once."""
    with pytest.raises(BrokerRefused, match="no topic 'orders'"):
        async with writing(cluster, Produce[bytes](cluster.url, "orders")):
            pass


async def test_a_missing_topic_may_be_made(real: Cluster) -> None:
    """With so many partitions, once, whoever comes first."""
    for _ in range(2):
        async with writing(real, Produce[bytes](real.url, "made", create=PARTITIONS)) as session:
            assert await session.write([Item(b"0")]) == [DONE]
    assert len(there(real, "made", 2)) == 2


async def test_a_closed_sink_answers(cluster: Cluster) -> None:
    """Whoever waits for a write is not left alone."""
    topic = cluster.topic()
    async with writing(cluster, Produce[bytes](cluster.url, topic, client={"linger.ms": 60_000})) as session:
        waiting = asyncio.create_task(session.write([Item(b"0")]))
        await asyncio.sleep(0.1)
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(waiting, 30)


async def test_a_broker_that_is_killed_gets_everything_once(real: Cluster, kafka: Broker) -> None:
    """The batch in hand waits for it, and the producer is idempotent; no message fails."""
    topic = real.topic()
    topology = Topology("writer", max_spout_pending=500)
    numbers = topology.spout("numbers", [b"%d" % number for number in range(30_000)])
    topology.bolt("write", Produce[bytes](real.url, topic, at_once=2), numbers.shuffle())
    async with topology.run() as running:
        while running.statistics().components["write"].acked < 1000:  # noqa: ASYNC110 - it is another program
            await asyncio.sleep(0.01)
        await asyncio.to_thread(kafka.restart)
        await running.finished()
        statistics = running.statistics().components["numbers"]
    assert (statistics.acked, statistics.failed) == (30_000, 0)
    found = there(real, topic, 30_000)
    print(f"broker killed under a sink: 30000 of 30000, {len(found) - 30_000} twice")
    assert sorted(int(each.value() or b"") for each in found) == list(range(30_000))
