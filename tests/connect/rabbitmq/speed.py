"""What a source and a sink cost beside their bare client, at one RabbitMQ, in turns.

::

    python -m tests.connect.rabbitmq.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from time import perf_counter

import aiormq
from aiormq.abc import DeliveredMessage

from stormlet.connect import rabbitmq
from tests.brokers.servers import RabbitMQ
from tests.connect.rabbitmq.kit import Rabbit
from tests.connect.speed import AT_ONCE, Compared, by_the_client, compare, read_options


async def bare_consumer(rabbit: Rabbit, every: int, count: int) -> float:
    """Messages per second of the client alone, with an acknowledgement for so many."""
    connection = await aiormq.connect(rabbit.url)
    channel = await connection.channel(publisher_confirms=False)
    await channel.basic_qos(prefetch_count=AT_ONCE)
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


async def measure(url: str, count: int, rounds: int) -> None:
    """Print the medians."""
    async with Rabbit(url, "speed") as rabbit:
        await rabbit.declare()

        async def publish(*bodies: str) -> None:
            await rabbit.publish_many(bodies)

        @asynccontextmanager
        async def ready(messages: int) -> AsyncIterator[None]:
            await rabbit.purge()
            await by_the_client(publish, messages)
            yield

        compared = Compared(ready, count)
        clients = {
            "ack for 100": partial(bare_consumer, rabbit, 100),
            "ack for each": partial(bare_consumer, rabbit, 1),
        }
        await compare(
            rounds,
            compared.sinks("confirms", publish, rabbitmq.Publish[str](url, routing_key=rabbit.queue)),
            compared.sources(clients, lambda: rabbit.source(as_=bytes), AT_ONCE),
        )


def main() -> None:
    """Start a RabbitMQ, and measure."""
    options = read_options()
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(RabbitMQ(Path(folder))) as broker:
        broker.start()
        asyncio.run(measure(broker.url, options.messages, options.rounds))


if __name__ == "__main__":
    main()
