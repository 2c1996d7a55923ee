"""Sources beside FastStream's subscribers, at the same brokers, in turns.

::

    pip install 'faststream[rabbit,redis,nats,confluent]'
    python -m tests.connect.faststream_speed rabbitmq redis nats kafka --rounds 3

Both have one function for each message, and acknowledge the message when that has returned: FastStream by
``AckPolicy.MANUAL`` and ``await message.ack()``, the source by the ack of its tree. RabbitMQ pushes up to 500 to both,
FastStream reads 500 at once from Redis and NATS, and else both are as they come: a function at a time.

Kafka is told positions, by FastStream in a commit for each message, by the source every half a second. That is not the
same: what comes twice after a crash is one message there, and here what was done in that time.

The clock begins when both are connected, at Kafka with the first message.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from nats.js.errors import NotFoundError

import stormlet
from tests.brokers.servers import Kafka, Nats, RabbitMQ, Valkey
from tests.connect.kafka import speed as kafka_speed
from tests.connect.kafka.cluster import Cluster
from tests.connect.nats.kit import CONSUMER, Server
from tests.connect.rabbitmq.kit import Rabbit
from tests.connect.redis import speed as redis_speed
from tests.connect.redis.streams import Place
from tests.connect.sessions import numbered
from tests.connect.speed import AT_ONCE, through_a_bolt


class Pair(NamedTuple):
    """Two who read the same, and what fills it for each of them."""

    fill: Callable[[int], Awaitable[object]]
    ours: Callable[[int], Awaitable[float]]
    theirs: Callable[[int], Awaitable[float]]


async def _rate(broker: Any, subscribe: Any, messages: int, *, from_first: bool = False) -> float:
    """Messages per second of a subscriber that acknowledges each one."""
    seen, start, over = 0, 0.0, asyncio.Event()

    async def see(body: Any, message: Any) -> None:
        nonlocal seen, start
        if from_first and not seen:
            start = perf_counter()
        await message.ack()
        seen += 1
        if seen == messages:
            over.set()

    subscribe(see)
    await broker.start()
    if not from_first:
        start = perf_counter()
    await over.wait()
    rate = messages / (perf_counter() - start)
    await broker.stop()
    return rate


@asynccontextmanager
async def rabbitmq(folder: Path) -> AsyncIterator[Pair]:
    """A classic queue."""
    from faststream import AckPolicy
    from faststream.rabbit import Channel, RabbitBroker, RabbitMessage, RabbitQueue

    async def theirs(messages: int) -> float:
        channel = Channel(prefetch_count=AT_ONCE)
        broker = RabbitBroker(server.url, default_channel=channel, logger=None)
        queue = RabbitQueue("speed", durable=True)

        def subscribe(see: Any) -> None:
            see.__annotations__["message"] = RabbitMessage
            broker.subscriber(queue, ack_policy=AckPolicy.MANUAL)(see)

        return await _rate(broker, subscribe, messages)

    with closing(RabbitMQ(folder)) as server:
        server.start()
        async with Rabbit(server.url, "speed") as rabbit:
            await rabbit.declare()
            yield Pair(
                lambda messages: rabbit.publish_many(numbered(messages)),
                lambda messages: through_a_bolt(rabbit.source(as_=bytes), messages, AT_ONCE),
                theirs,
            )


@asynccontextmanager
async def redis(folder: Path) -> AsyncIterator[Pair]:
    """A stream and a group."""
    from faststream import AckPolicy
    from faststream.redis import RedisBroker, RedisStreamMessage, StreamSub

    async def theirs(messages: int) -> float:
        broker = RedisBroker(place.url, logger=None)
        stream = StreamSub(place.stream, group=redis_speed.GROUP, consumer="me", max_records=AT_ONCE)

        def subscribe(see: Any) -> None:
            see.__annotations__["message"] = RedisStreamMessage
            broker.subscriber(stream=stream, ack_policy=AckPolicy.MANUAL)(see)

        return await _rate(broker, subscribe, messages)

    with closing(Valkey(folder)) as server:
        server.start()
        place = Place(server.port)
        yield Pair(
            lambda messages: redis_speed.fill(place, messages),
            lambda messages: through_a_bolt(redis_speed.source(place), messages),
            theirs,
        )
        await place.client.aclose()


@asynccontextmanager
async def nats(folder: Path) -> AsyncIterator[Pair]:
    """A stream and a pull consumer."""
    from faststream import AckPolicy
    from faststream.nats import JStream, NatsBroker, NatsMessage, PullSub

    async def theirs(messages: int) -> float:
        broker = NatsBroker(running.url, logger=None)
        pull = PullSub(batch_size=AT_ONCE)

        def subscribe(see: Any) -> None:
            see.__annotations__["message"] = NatsMessage
            stream = JStream(server.stream, declare=False)
            broker.subscriber(
                server.subject, stream=stream, durable=CONSUMER, pull_sub=pull, ack_policy=AckPolicy.MANUAL
            )(see)

        return await _rate(broker, subscribe, messages)

    async def fill(messages: int) -> None:
        with suppress(NotFoundError):
            await server.js.delete_stream(server.stream)
        await server.make()
        await server.publish(*numbered(messages))

    with closing(Nats(folder)) as running:
        running.start()
        async with Server(running.url, "speed") as server:
            yield Pair(fill, lambda messages: through_a_bolt(server.source(as_=bytes), messages), theirs)


@asynccontextmanager
async def kafka(folder: Path) -> AsyncIterator[Pair]:
    """A topic of four partitions."""
    from faststream import AckPolicy
    from faststream.confluent import KafkaBroker, KafkaMessage

    topics: list[str] = []

    async def fill(messages: int) -> None:
        topics.append(cluster.topic())
        cluster.fill(topics[-1], (f"{number:0100}" for number in range(messages)), partitions=4)

    async def theirs(messages: int) -> float:
        broker = KafkaBroker(cluster.servers, logger=None)

        def subscribe(see: Any) -> None:
            see.__annotations__["message"] = KafkaMessage
            broker.subscriber(
                topics[-1],
                group_id=f"theirs {topics[-1]}",
                auto_offset_reset="earliest",
                ack_policy=AckPolicy.MANUAL,
            )(see)

        return await _rate(broker, subscribe, messages, from_first=True)

    with closing(Kafka(folder)) as server:
        server.start()
        cluster = Cluster(f"127.0.0.1:{server.port}")
        yield Pair(fill, lambda messages: kafka_speed.through_bolt(cluster, topics[-1], messages), theirs)


BROKERS: Mapping[str, Callable[[Path], AbstractAsyncContextManager[Pair]]] = {
    each.__name__: each for each in (rabbitmq, redis, nats, kafka)
}


async def measure(name: str, messages: int, rounds: int) -> None:
    """Print the medians, and the median of the ratios."""
    ours, theirs = list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="broker-") as folder:
        async with BROKERS[name](Path(folder)) as pair:
            for _ in range(rounds):
                for work, rates in ((pair.ours, ours), (pair.theirs, theirs)):
                    await pair.fill(messages)
                    rates.append(await work(messages))
    ratio = median([one / other for one, other in zip(ours, theirs, strict=True)])
    print(f"{name:10} source {median(ours):9,.0f} /s   FastStream {median(theirs):9,.0f} /s   {ratio:.1f} x")


def main() -> None:
    """Start brokers, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("brokers", nargs="*", choices=[*BROKERS, []], help="all of them, if none is named")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    packages = ("faststream", "aio-pika", "aiormq", "redis", "nats-py", "confluent-kafka")
    print(*(f"{package} {version(package)}" for package in packages), sep=", ")
    print(f"stormlet is {'compiled' if stormlet.is_compiled() else 'interpreted'}")
    for name in options.brokers or BROKERS:
        asyncio.run(measure(name, options.messages, options.rounds))


if __name__ == "__main__":
    main()
