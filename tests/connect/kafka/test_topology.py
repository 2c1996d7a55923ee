"""Whole topologies over Kafka: what fails, and what becomes of the messages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any

import msgspec
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from stormlet import DeadLetter, Running, Topology
from stormlet.connect.kafka import Topics
from stormlet.report.connections import Connection
from tests.brokers.processes import HOST, Broker
from tests.connect.kafka.cluster import Cluster
from tests.connect.kafka.servers import ProxiedKafka
from tests.connect.sessions import until

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(400)]

PENDING = 200


class Order(msgspec.Struct, frozen=True):
    """What some topics have."""

    number: int


async def moment(value: object) -> None:
    """Take a moment."""


class Reader:
    """A topology that reads a topic, and notes what it has processed."""

    def __init__(self, cluster: Cluster, topic: str, url: str = "", **options: Any) -> None:
        self.processed = Counter[Any]()
        self.letters = list[DeadLetter]()
        self.wait: Callable[[Any], Awaitable[None]] = moment
        self.topology = Topology("reader", max_spout_pending=PENDING, replay_delay=0.1, max_attempts=2)
        source = Topics[Any](
            url or cluster.url,
            [topic],
            **{
                "group": f"readers of {topic}",
                "as_": bytes,
                "settle_every": 0.1,
                "lag_every": 0.2,
                **options,
            },
        )
        read = self.topology.spout("read", source)
        self.topology.bolt("work", self._work, read.shuffle(), concurrency=PENDING)

    async def _work(self, value: Any) -> None:
        await self.wait(value)
        self.processed[value] += 1

    def run(self) -> Any:
        """``async with reader.run() as running``."""
        return self.topology.run(dead_letters=self.letters.append)

    async def until(self, count: int, within: float = 120.0) -> None:
        """Wait until it has processed so many different values."""
        async with asyncio.timeout(within):
            while len(self.processed) < count:  # noqa: ASYNC110 - it is another program that is watched
                await asyncio.sleep(0.02)


def numbers(count: int) -> list[bytes]:
    """The bodies that ``Cluster.fill`` makes of a range."""
    return [str(number).encode() for number in range(count)]


def connection(running: Running) -> Connection:
    """The connection of the spout."""
    return running.health().connections["read[0]"]


async def test_two_runs_one_after_the_other_repeat_nothing(real: Cluster) -> None:
    """What is under way when a run ends is finished and committed."""
    topic = real.topic()
    real.fill(topic, range(3000), partitions=4)
    first, second = Reader(real, topic), Reader(real, topic)
    async with first.run():
        await first.until(1000)
    async with second.run():
        await second.until(3000 - len(first.processed))
    assert first.processed + second.processed == Counter(numbers(3000))
    assert sum(real.committed(topic)) == 3000


async def test_a_cluster_in_memory(mock: Cluster) -> None:
    """That of librdkafka, which needs no Java, is enough to test a topology with: all is read, and committed."""
    topic = mock.topic()
    mock.fill(topic, range(1000), partitions=4)
    reader = Reader(mock, topic)
    async with reader.run():
        await reader.until(1000)
    assert reader.processed == Counter(numbers(1000))
    assert sum(mock.committed(topic)) == 1000


async def test_two_runs_share_a_topic(real: Cluster) -> None:
    """With trees open when the second comes, nothing is lost or comes twice."""
    topic = real.topic()
    real.fill(topic, range(20_000), partitions=4)
    first, second = Reader(real, topic), Reader(real, topic)
    first.wait = second.wait = lambda _: asyncio.sleep(0.05)
    async with first.run():
        await first.until(1000)
        async with second.run():
            await second.until(1000)
            await until(lambda: len(first.processed) + len(second.processed) >= 20_000, 120)
    assert first.processed + second.processed == Counter(numbers(20_000))


async def test_a_poisonous_message_is_a_dead_letter(real: Cluster) -> None:
    """Once, with the reason; the others go on behind it, and it is committed."""
    topic = real.topic()
    real.fill(topic, range(10))
    reader = Reader(real, topic)

    async def refuse(value: bytes) -> None:
        if value == b"3":
            raise ValueError("three")

    reader.wait = refuse
    async with reader.run():
        await reader.until(9)
    assert [(each.value, "three" in str(each.failure)) for each in reader.letters] == [(b"3", True)]
    assert real.committed(topic)[0] == 10


async def test_what_cannot_be_decoded_is_a_dead_letter_with_its_bytes(real: Cluster) -> None:
    """It stops nobody."""
    topic = real.topic()
    real.fill(topic, ['{"number": 1}', "nonsense", '{"number": 2}'])
    reader = Reader(real, topic, as_=Order)
    async with reader.run():
        await reader.until(2)
    assert set(reader.processed) == {Order(1), Order(2)}
    assert [each.value for each in reader.letters] == [b"nonsense"]
    assert real.committed(topic)[0] == 3


async def test_a_message_that_hangs_is_never_passed_over(real: Cluster) -> None:
    """The others of its partition go on up to the bound, those of other partitions beyond."""
    topic = real.topic()
    real.fill(topic, range(4000), partitions=2)
    reader = Reader(real, topic, max_uncommitted=300, settle_every=0.05)
    release = asyncio.Event()

    async def wait(value: bytes) -> None:
        if value == b"0":
            await release.wait()

    reader.wait = wait
    async with reader.run():
        await until(lambda: sum(int(each) % 2 for each in reader.processed) >= 2000, 120)
        await until(lambda: real.committed(topic)[1] >= 2000)
        stuck = sum(int(each) % 2 == 0 for each in reader.processed)
        assert real.committed(topic)[:2] == [-1001, 2000]
        release.set()
        await reader.until(4000)
    assert stuck < 300 + 2 * PENDING
    assert real.committed(topic)[:2] == [2000, 2000]


async def test_a_broker_that_is_killed_and_started_again(real: Cluster, kafka: Broker) -> None:
    """No crash; nothing is lost, and next to nothing comes twice, as the reader stays a member of its group."""
    topic = real.topic()
    real.fill(topic, range(20_000), partitions=4)
    reader = Reader(real, topic)
    async with reader.run() as running:
        await reader.until(2000)
        await asyncio.to_thread(kafka.kill)
        await asyncio.sleep(2)
        await asyncio.to_thread(kafka.start)
        await reader.until(20_000, 120)
        reconnects = connection(running).reconnects
    twice = reader.processed.total() - 20_000
    print(f"broker killed: 20000 of 20000, {twice} twice, {reconnects} reconnects")
    assert set(reader.processed) == set(numbers(20_000))
    assert twice <= PENDING + 4000
    assert sum(real.committed(topic)) == 20_000


async def test_connections_that_are_reset_or_swallow_everything(proxied: ProxiedKafka) -> None:
    """The client makes new ones; nothing is lost, and it stays a member of its group."""
    cluster = Cluster(proxied.servers)
    topic = cluster.topic()
    numbered = iter(range(20_000))
    cluster.fill(topic, islice(numbered, 10_000), partitions=4)
    reader = Reader(cluster, topic)
    async with reader.run() as running:
        await reader.until(1000)
        await asyncio.to_thread(proxied.proxy.reset)
        await reader.until(10_000)
        await asyncio.to_thread(proxied.proxy.swallow)
        direct = Cluster(f"{HOST}:{proxied.port}")
        direct.fill(topic, islice(numbered, 10_000), partitions=4)
        await asyncio.sleep(5)
        assert len(reader.processed) < 20_000
        await asyncio.to_thread(proxied.proxy.pass_on)
        await reader.until(20_000)
        reconnects = connection(running).reconnects
    print(f"reset and black hole: 20000 of 20000, {reader.processed.total() - 20_000} twice")
    assert reader.processed == Counter(numbers(20_000))
    assert reconnects == 0


async def test_offsets_with_gaps(real: Cluster) -> None:
    """Markers of transactions, and what was aborted, take positions that nobody delivers; the lag ends at 0."""
    topic = real.topic()
    producer = Producer({"bootstrap.servers": real.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for number in range(10):
        producer.begin_transaction()
        producer.produce(topic, str(number).encode(), partition=0)
        producer.flush(60)
        producer.abort_transaction(30) if number % 3 == 0 else producer.commit_transaction(30)
    reader = Reader(real, topic)
    async with reader.run() as running:
        await reader.until(6)
        await until(lambda: set(connection(running).lag.values()) == {0})
    assert sorted(reader.processed) == [b"1", b"2", b"4", b"5", b"7", b"8"]
    assert real.committed(topic)[0] == 17  # 17 is a marker, 18 was aborted, 19 is its marker


def there(cluster: Cluster, topic: str) -> int:
    """Return the number of messages in the first partition."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.servers, "group.id": "none", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    count = 0
    while (message := consumer.poll(10)) is not None and message.error() is None:
        count += 1
    consumer.close()
    return count


async def test_a_compacted_topic_has_gaps(proxied: ProxiedKafka) -> None:
    """What was compacted away is not waited for."""
    cluster = Cluster(proxied.servers)
    quick = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    topic = cluster.topic(**{"cleanup.policy": "compact", **quick})
    producer = Producer({"bootstrap.servers": cluster.servers})
    for number in range(300):
        producer.produce(topic, str(number).encode(), key=str(number % 3), partition=0)
        producer.flush(60)
        await asyncio.sleep(0.01)
    async with asyncio.timeout(120):
        while (count := await asyncio.to_thread(there, cluster, topic)) > 100:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.2)
    reader = Reader(cluster, topic)
    async with reader.run():
        await until(lambda: cluster.committed(topic)[0] == 300)
    assert set(reader.processed) >= {b"297", b"298", b"299"}
    assert len(reader.processed) <= count  # it is compacted further while it is read


async def test_what_is_deleted_before_it_is_read_is_said(
    real: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A group whose position is gone goes on at the first message that is left, and the log says so."""
    topic = real.topic()
    real.fill(topic, range(100))
    first, second = Reader(real, topic), Reader(real, topic)
    async with first.run():
        await first.until(100)
    real.fill(topic, range(100, 200))
    admin = AdminClient({"bootstrap.servers": real.servers})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 150)]).values():
        await asyncio.to_thread(deleted.result, 30)
    async with second.run():
        await second.until(50)
    assert set(second.processed) == set(numbers(200)[150:])
    assert "offset reset" in caplog.text.lower()
