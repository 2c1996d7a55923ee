"""What a source and a sink cost beside their bare client, at one Postgres, in turns.

::

    python -m tests.connect.postgres.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from time import perf_counter

from stormlet.connect import postgres
from stormlet.connect.postgres.table import Statements
from tests.connect.postgres.kit import Place, Postgres
from tests.connect.sessions import numbered
from tests.connect.speed import (
    AT_ONCE,
    Work,
    by_the_client,
    compare,
    from_a_spout,
    read_options,
    through_a_bolt,
)
from tests.examples.postgres_server import binaries


async def bare_consumer(place: Place, count: int) -> float:
    """Rows per second of the client alone, claimed and deleted by the same statements."""
    statements, seen, start = Statements("orders"), 0, perf_counter()
    while seen < count:
        rows = await place.client.fetch(statements.claim, AT_ONCE, timedelta(seconds=60), 1)
        await place.client.fetch(statements.done, [row["id"] for row in rows], [1] * len(rows))
        seen += len(rows)
    return count / (perf_counter() - start)


async def measure(url: str, count: int, rounds: int) -> None:
    """Print the medians; each has a table without old rows."""
    async with Place(url) as place:
        await place.fill()

        def fresh(work: Callable[[], Awaitable[float]], rows: int = 0) -> Work:
            async def measured() -> float:
                await place.client.execute("TRUNCATE orders")
                await place.add(*numbered(rows))
                return await work()

            return measured

        put = postgres.Put[str](url, "orders")
        await compare(
            rounds,
            {
                "bare client, insert": fresh(lambda: by_the_client(place.add, count)),
                "sink": fresh(lambda: from_a_spout(put, count)),
            },
            {
                "bare client, claim and delete": fresh(lambda: bare_consumer(place, count), count),
                "source, one acked bolt": fresh(
                    lambda: through_a_bolt(place.source(as_=bytes), count), count
                ),
            },
        )


def main() -> None:
    """Start a Postgres, and measure."""
    options, programs = read_options(), binaries()
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(programs, Path(folder))
        try:
            asyncio.run(measure(server.database("speed"), options.messages, options.rounds))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
