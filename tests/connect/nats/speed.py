"""What a source and a sink cost beside their bare client, at one NATS, in turns.

::

    python -m tests.connect.nats.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from time import perf_counter

from stormlet.connect import nats
from tests.brokers.servers import Nats
from tests.connect.nats.kit import CONSUMER, Server
from tests.connect.sessions import numbered
from tests.connect.speed import AT_ONCE, Compared, compare, read_options


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


async def measure(url: str, count: int, rounds: int) -> None:
    """Print the medians; each has a stream of its own."""
    async with Server(url, "speed") as server:

        @asynccontextmanager
        async def ready(messages: int) -> AsyncIterator[None]:
            await server.make()
            await server.publish(*numbered(messages))
            try:
                yield
            finally:
                await server.js.delete_stream(server.stream)

        compared = Compared(ready, count)
        await compare(
            rounds,
            compared.sinks("publish", server.publish, nats.Publish[str](url, server.subject)),
            compared.sources(
                {"fetch and ack": partial(bare_consumer, server)}, lambda: server.source(as_=bytes)
            ),
        )


def main() -> None:
    """Start a NATS, and measure."""
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(Nats(Path(folder))) as broker:
        broker.start()
        asyncio.run(measure(broker.url, options.messages, options.rounds))


if __name__ == "__main__":
    main()
