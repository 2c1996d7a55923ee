"""What a source and a sink cost beside their bare client, at one Postgres, in turns.

::

    python -m tests.connect.postgres.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeAlias

from stormlet import Topology
from stormlet.connect import postgres
from stormlet.connect.postgres.table import Statements
from tests.connect.postgres.kit import Place, Postgres, numbered
from tests.examples.postgres_server import binaries

AT_ONCE = 500
Work: TypeAlias = Callable[[Place, int], Awaitable[float]]


async def bare_consumer(place: Place, count: int) -> float:
    """Rows per second of the client alone, claimed and deleted by the same statements."""
    statements, seen, start = Statements("orders"), 0, perf_counter()
    while seen < count:
        rows = await place.client.fetch(statements.claim, AT_ONCE, timedelta(seconds=60), 1)
        await place.client.fetch(statements.done, [row["id"] for row in rows], [1] * len(rows))
        seen += len(rows)
    return count / (perf_counter() - start)


async def source(place: Place, count: int) -> float:
    """Rows per second through one acked bolt."""
    seen, over = 0, asyncio.Event()

    def see(_: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            over.set()

    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    topology.bolt(
        "see", see, topology.spout("orders", postgres.Queue(place.url, "orders", as_=bytes)).shuffle()
    )
    async with topology.run():
        start = perf_counter()
        await over.wait()
        return count / (perf_counter() - start)


async def bare_writer(place: Place, count: int) -> float:
    """Rows per second of the client alone, 500 at a time."""
    start = perf_counter()
    for first in range(0, count, AT_ONCE):
        await place.add(*numbered(min(AT_ONCE, count - first)))
    return count / (perf_counter() - start)


async def sink(place: Place, count: int) -> float:
    """Rows per second of a sink, from a spout that acks."""
    topology = Topology("speed", max_spout_pending=2 * AT_ONCE)
    put = postgres.Put[str](place.url, "orders")
    topology.bolt("put", put, topology.spout("texts", numbered(count)).shuffle())
    start = perf_counter()
    async with topology.run() as running:
        await running.finished()
    return count / (perf_counter() - start)


async def measure(url: str, count: int, rounds: int) -> None:
    """Print the medians, and their ratios to the bare client's."""
    writers: dict[str, Work] = {"bare client, insert": bare_writer, "sink": sink}
    readers: dict[str, Work] = {
        "bare client, claim and delete": bare_consumer,
        "source, one acked bolt": source,
    }
    rates: dict[str, list[float]] = {name: [] for name in (*writers, *readers)}
    async with Place(url) as place:
        await place.write(postgres.Put[str](url, "orders", create=True))
        for _ in range(rounds):
            for name, work in (writers | readers).items():
                await place.client.execute("TRUNCATE orders")
                if name in readers:
                    await place.add(*numbered(count))
                rates[name].append(await work(place, count))
    for group in (writers, readers):
        first = median(rates[next(iter(group))])
        for name in group:
            print(f"{name:30} {median(rates[name]):8,.0f} /s   {median(rates[name]) / first:.2f}")


def main() -> None:
    """Start a Postgres, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    programs = binaries()
    assert programs is not None, "Postgres is not installed"
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(programs, Path(folder))
        try:
            asyncio.run(measure(server.database("speed"), options.messages, options.rounds))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
