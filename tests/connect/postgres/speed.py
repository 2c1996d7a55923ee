"""What a source and a sink cost beside their bare client, at one Postgres, in turns.

::

    python -m tests.connect.postgres.speed --messages 20000 --rounds 3
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import perf_counter

from stormlet.connect import postgres
from stormlet.connect.postgres.table import Statements
from tests.connect.postgres.kit import Place, Postgres
from tests.connect.sessions import numbered
from tests.connect.speed import AT_ONCE, Compared, compare, read_options
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

        @asynccontextmanager
        async def ready(rows: int) -> AsyncIterator[None]:
            await place.client.execute("TRUNCATE orders")
            await place.add(*numbered(rows))
            yield

        compared = Compared(ready, count)
        await compare(
            rounds,
            compared.sinks("insert", place.add, postgres.Put[str](url, "orders")),
            compared.sources(
                {"claim and delete": partial(bare_consumer, place)}, lambda: place.source(as_=bytes)
            ),
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
