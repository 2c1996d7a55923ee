"""What a source costs beside its bare client, at one Valkey, in turns.

::

    python -m tests.connect.redis.speed --messages 50000 --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeAlias

from stormlet import Topology
from stormlet.connect import redis
from tests.brokers.servers import Valkey
from tests.connect.redis.streams import Place

AT_ONCE = 500
GROUP = "g"
Work: TypeAlias = Callable[[Place, int], Awaitable[float]]


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
        ids = list[bytes]()
        for id, fields in found[0][1]:
            size += len(fields[b"body"])
            ids.append(id)
        await place.client.xack(place.stream, GROUP, *ids)
        seen += len(ids)
    return count / (perf_counter() - start)


async def source(place: Place, count: int) -> float:
    """Entries per second through one acked bolt."""
    seen, over = 0, asyncio.Event()

    def see(_: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            over.set()

    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    made = redis.Stream[bytes](place.url, place.stream, group=GROUP, as_=bytes)
    topology.bolt("see", see, topology.spout("orders", made).shuffle())
    async with topology.run():
        start = perf_counter()
        await over.wait()
        return count / (perf_counter() - start)


WORKS: dict[str, Work] = {"bare client, read and ack 500": bare_reader, "source, one acked bolt": source}


async def measure(port: int, count: int, rounds: int) -> None:
    """Print the medians, and their ratio."""
    place = Place(port)
    rates: dict[str, list[float]] = {name: [] for name in WORKS}
    for _ in range(rounds):
        for name, work in WORKS.items():
            await fill(place, count)
            rates[name].append(await work(place, count))
    await place.client.aclose()
    first = median(rates[next(iter(WORKS))])
    for name, found in rates.items():
        print(f"{name:30} {median(found):8,.0f} /s   {median(found) / first:.2f}")


def main() -> None:
    """Start a Valkey, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="broker-") as folder, closing(Valkey(Path(folder))) as broker:
        broker.start()
        asyncio.run(measure(broker.port, options.messages, options.rounds))


if __name__ == "__main__":
    main()
