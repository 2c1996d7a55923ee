"""The cases that every connector must pass, at a real Kafka."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stormlet.connect.address import Address
from stormlet.connect.kafka import Commit, Produce, Topics
from stormlet.connect.kafka.partitions import Place
from stormlet.connect.session import Delivery, Session, SourceContext
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.model.state.committers import CommitterFactory
from tests.brokers.processes import HOST
from tests.connect.conformance import CASES, QUEUE, WRITERS, Bench, Case, name_of
from tests.connect.kafka.cluster import PARTITIONS
from tests.connect.kafka.servers import ProxiedKafka

GROUP = "conformance"
SILENT = 4.0
"""Seconds for which nothing comes through."""


class Guest:
    """Another member of the group, which has some of its partitions for a while and commits nothing."""

    def __init__(self, servers: str) -> None:
        settings = {"session.timeout.ms": 6000, "partition.assignment.strategy": "cooperative-sticky"}
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": GROUP, "enable.auto.commit": False, **settings}
        )
        self._consumer.subscribe([QUEUE])
        self._leaving = False
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._leaving:
            self._consumer.poll(0.05)
        self._consumer.close()

    def leave(self) -> None:
        """Give the partitions back."""
        self._leaving = True
        self._thread.join()


class Watched(Topics[Any]):
    """A source that gives nothing until all sources of the case have partitions: to join a group takes a moment."""

    def __init__(self, bench: RealKafka, **options: Any) -> None:
        super().__init__(f"kafka://{bench.servers}", [QUEUE], group=GROUP, **options)
        self.has_partitions = asyncio.Event()
        self.has_messages = asyncio.Event()
        self._bench = bench

    async def begin(self, address: Address, context: SourceContext) -> Session:
        session: Any = await super().begin(address, context)
        assign, receive = session.assign, session.receive

        def assigned(names: Sequence[str]) -> Sequence[Place]:
            if names:
                asyncio.run_coroutine_threadsafe(self._note(), asyncio_loop)
            places: Sequence[Place] = assign(names)
            return places

        async def received(most: int, within: float) -> Sequence[Delivery]:
            await self._bench.joined()
            deliveries: Sequence[Delivery] = await receive(most, within)
            if deliveries:
                self.has_messages.set()
            return deliveries

        asyncio_loop = asyncio.get_running_loop()
        session.assign, session.receive = assigned, received
        return session  # type: ignore[no-any-return]

    async def _note(self) -> None:
        self.has_partitions.set()


class RealKafka(Bench):
    """The connector at a broker that is killed, behind a proxy that resets."""

    faults = frozenset({"cut", "silent", "restart", "rebalance", "missing", "gaps", "fence"})
    notices = 0.75
    heals = True

    def __init__(self, protocol: str) -> None:
        self.name = f"kafka, {protocol} groups"
        self.rules = Topics[Any](None, [QUEUE], group=GROUP).capabilities
        self._protocol = protocol
        self._broker: ProxiedKafka

    def at(self, broker: ProxiedKafka) -> RealKafka:
        """The same at this broker."""
        self._broker = broker
        self.servers = broker.servers
        self._servers = f"{HOST}:{broker.port}"
        return self

    async def joined(self) -> None:
        """Wait until the sources have partitions; not for ever, as there may be fewer of these."""
        with suppress(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.gather(*(each.has_partitions.wait() for each in self._sources))

    def begin(self) -> None:
        self._later: asyncio.Future[None] | None = None
        self._guest: Guest | None = None
        self._number = 0
        self._sources = list[Watched]()
        self._admin = AdminClient({"bootstrap.servers": self._servers})
        self._forget()
        self._admin.create_topics([NewTopic(QUEUE, PARTITIONS, 1)])[QUEUE].result(30)
        self._wait_until(is_there=True)  # else it would count as deleted before it is known
        self._producer = Producer({"bootstrap.servers": self._servers})
        self._aborts = Producer({"bootstrap.servers": self._servers, "transactional.id": "aborts"})
        self._can_abort = False

    def _forget(self) -> None:
        self._admin.delete_consumer_groups([GROUP])[GROUP].exception(30)  # there may be none
        self._delete()

    def _delete(self) -> None:
        self._admin.delete_topics([QUEUE])[QUEUE].exception(30)
        self._wait_until(is_there=False)

    def _wait_until(self, *, is_there: bool) -> None:
        while (QUEUE in self._admin.list_topics(timeout=10).topics) is not is_there:
            sleep(0.05)

    def end(self) -> None:
        if self._guest is not None:
            self._guest.leave()
        del self._admin, self._producer, self._aborts  # else their threads look for a broker that is gone

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def running() -> None:
            try:
                await work()
            finally:
                if self._later is not None:
                    await self._later

        asyncio.run(running())

    async def sleep(self, seconds: float) -> None:
        if seconds >= 0.05 and self._sources:  # what follows is about messages that have come
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await self._sources[-1].has_messages.wait()
        await asyncio.sleep(seconds)

    def source(self, **options: Any) -> Source[Any]:
        client = {"session.timeout.ms": 6000} if self._protocol == "classic" else {}
        source = Watched(self, protocol=self._protocol, client=client, lost_after=1.0, **options)
        self._sources.append(source)
        return source

    def sink(self) -> Sink[bytes]:
        return Produce[bytes](f"kafka://{self._broker.servers}", QUEUE, size=20)

    def committer(self) -> CommitterFactory:
        return Commit(f"kafka://{self._broker.servers}", QUEUE, bytes, transactional_id=WRITERS)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        partition, self._number = self._number % PARTITIONS, self._number + 1
        if gap:
            self._abort(partition, gap)
        self._producer.produce(QUEUE, body, partition=partition)
        assert self._producer.flush(30) == 0

    async def publish_all(self, bodies: Sequence[bytes], *, gap: int = 0) -> None:
        if gap:
            await super().publish_all(bodies, gap=gap)
            return
        for body in bodies:
            self._producer.produce(QUEUE, body, partition=self._number % PARTITIONS)
            self._number += 1
        assert self._producer.flush(30) == 0

    def _abort(self, partition: int, count: int) -> None:
        """So many positions that nobody delivers, with the marker behind them."""
        if not self._can_abort:
            self._aborts.init_transactions(30)
            self._can_abort = True
        self._aborts.begin_transaction()
        for _ in range(count - 1):
            self._aborts.produce(QUEUE, b"aborted", partition=partition)
        self._aborts.flush(30)
        self._aborts.abort_transaction(30)

    async def left(self) -> list[bytes]:
        return await asyncio.to_thread(self._left)

    def _left(self) -> list[bytes]:
        # Without auto-commit: it only looks.
        looks = {"enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": GROUP, **looks})
        consumer.assign(_committed(consumer))
        bodies, ended = list[bytes](), 0
        while ended < PARTITIONS:
            for message in consumer.consume(1000, 0.05):
                bodies += [] if message.error() else [message.value() or b""]
                ended += message.error() is not None
        consumer.close()
        return sorted(bodies)

    async def dead(self) -> list[bytes]:
        return []

    async def bring(self, fault: str) -> None:
        match fault:
            case "cut":
                self._broker.proxy.reset()
            case "rebalance":
                if self._guest is None:
                    self._guest = Guest(self._servers)
                else:
                    guest, self._guest = self._guest, None
                    await asyncio.to_thread(guest.leave)
            case "silent":
                self._broker.proxy.swallow()
                self._later = asyncio.ensure_future(self._heard_again())
            case "missing":
                self._delete()
            case _:
                await asyncio.to_thread(self._broker.kill)
                self._later = asyncio.ensure_future(self._again())

    async def _heard_again(self) -> None:
        await asyncio.sleep(SILENT)
        self._broker.proxy.refuse()
        self._broker.proxy.pass_on()

    async def _again(self) -> None:
        await asyncio.sleep(8)
        await asyncio.to_thread(self._broker.start)


@pytest.fixture(scope="module")
def server() -> Iterator[ProxiedKafka]:
    """One Kafka for all cases."""
    with (
        tempfile.TemporaryDirectory(prefix="broker-") as folder,
        closing(ProxiedKafka(Path(folder))) as broker,
    ):
        broker.start()
        yield broker


def _committed(consumer: Consumer) -> list[TopicPartition]:
    """Where the group goes on."""
    partitions = [TopicPartition(QUEUE, number) for number in range(PARTITIONS)]
    deadline = monotonic() + 30
    while True:
        try:
            found = consumer.committed(partitions, 30)
        except KafkaException:  # a broker that has just started does not know at once
            if monotonic() > deadline:
                raise
            sleep(0.1)
        else:
            return [TopicPartition(each.topic, each.partition, max(0, each.offset)) for each in found]


CLASSIC, CONSUMER = RealKafka("classic"), RealKafka("consumer")
DIFFERENT = ("01", "03", "04", "05", "07", "09", "18_", "23", "25")
"""The cases in which another protocol of groups might do something else."""
RUNS = [
    *((CLASSIC, case) for case in CASES),
    *((CONSUMER, case) for case in CASES if name_of(case).startswith(DIFFERENT)),
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("bench", "case"), RUNS, ids=lambda each: str(each) if isinstance(each, Bench) else name_of(each)
)
def test_conformance(bench: RealKafka, case: Case, server: ProxiedKafka) -> None:
    """The same cases as the twins."""
    bench.at(server).hold(case)
