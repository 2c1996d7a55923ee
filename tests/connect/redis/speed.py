"""What a source costs beside its bare client, at one Valkey, in turns.

::

    python -m tests.connect.redis.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from time import perf_counter

from stormlet.connect import redis
from tests.brokers.servers import Valkey
from tests.connect.redis.streams import Place
from tests.connect.speed import AT_ONCE, Compared, compare, read_options

GROUP = "g"


async def fill(place: Place, count: int) -> None:
    """Have so many entries of 100 bytes in a stream that is new, and a group at its begin."""
    await place.client.delete(place.stream)
    for first in range(0, count, AT_ONCE):
        async with place.client.pipeline(transaction=False) as pipeline:
            for number in range(first, min(first + AT_ONCE, count)):
                pipeline.xadd(place.stream, {"body": f"{number:0100}"})
            await pipeline.execute()
    await place.client.xgroup_create(place.stream, GROUP, id="0")


async def bare_reader(place: Place, count: int) -> float:
    """Entries per second of the client alone, each looked at, which acks those of a read together."""
    seen, size, start = 0, 0, perf_counter()
    while seen < count:
        found = await place.client.xreadgroup(GROUP, "me", {place.stream: ">"}, count=AT_ONCE, block=1000)
        entries = found[0][1]
        size += sum(len(fields[b"body"]) for _, fields in entries)
        await place.client.xack(place.stream, GROUP, *(id for id, _ in entries))
        seen += len(entries)
    return count / (perf_counter() - start)


def source(place: Place) -> redis.Stream[bytes]:
    """A source of that stream."""
    return redis.Stream[bytes](place.url, place.stream, group=GROUP, as_=bytes)


async def measure(port: int, count: int, rounds: int) -> None:
    """Print the medians."""
    place = Place(port)

    @asynccontextmanager
    async def ready(entries: int) -> AsyncIterator[None]:
        await fill(place, entries)
        yield

    clients = {"read and ack 500": partial(bare_reader, place)}
    await compare(rounds, Compared(ready, count).sources(clients, lambda: source(place)))
    await place.client.aclose()


def main() -> None:
    """Start a Valkey, and measure."""
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(Valkey(Path(folder))) as broker:
        broker.start()
        asyncio.run(measure(broker.port, options.messages, options.rounds))


if __name__ == "__main__":
    main()
