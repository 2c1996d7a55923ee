"""Changes in a second through one acked bolt, beside those that the bare client reads and lets go.

``python -m tests.connect.postgres.changes_speed``
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import asyncpg

from stormlet import Topology
from stormlet.connect import postgres
from stormlet.connect.postgres.slot import ADVANCE, PEEK
from tests.connect.postgres.kit import LOGICAL, Place, Postgres
from tests.examples.postgres_server import binaries

COUNT = 100_000
AT_ONCE = 10_000


async def fill(place: Place) -> None:
    """A slot with so many changes, ten in a transaction."""
    await place.client.execute("CREATE TABLE orders (id int PRIMARY KEY, body text)")
    await place.client.execute("CREATE PUBLICATION ours FOR TABLE orders")
    await place.client.execute("SELECT pg_create_logical_replication_slot('ours', 'pgoutput')")
    await place.client.execute(
        f"""DO $$ BEGIN FOR n IN 0..{COUNT // 10 - 1} LOOP
INSERT INTO orders SELECT n * 10 + i, 'a lamp of an order' FROM generate_series(0, 9) i; COMMIT;
END LOOP; END $$"""
    )


async def bare(url: str) -> float:
    """Peek and advance, with no decoding at all."""
    client = await asyncpg.connect(url)
    begun, count = time.perf_counter(), 0
    while rows := await client.fetch(PEEK, "ours", AT_ONCE, "ours"):
        count += sum(row["data"][:1] == b"I" for row in rows)
        end = int.from_bytes(rows[-1]["data"][10:18], "big")
        await client.fetch(ADVANCE, "ours", end)
    await client.close()
    assert count == COUNT
    return COUNT / (time.perf_counter() - begun)


async def ours(url: str) -> float:
    """A source and a bolt that counts."""
    over, seen = asyncio.Event(), 0

    def count(change: postgres.Change) -> None:
        nonlocal seen
        seen += 1
        if seen == COUNT:
            over.set()

    topology = Topology("speed", max_spout_pending=2000)
    changes = topology.spout("changes", postgres.Changes(url, slot="ours", publication="ours"))
    topology.bolt("count", count, changes.shuffle())
    begun = time.perf_counter()
    async with topology.run():
        await over.wait()
        return COUNT / (time.perf_counter() - begun)


async def main() -> None:
    programs = binaries()
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(programs, Path(folder), LOGICAL)
        try:
            for name, work in (("bare", bare), ("ours", ours)):
                async with Place(server.database(name)) as place:
                    await fill(place)
                    print(f"{name}: {await work(place.url):,.0f} changes/s")
                    await place.drop_slots()
        finally:
            server.stop()


if __name__ == "__main__":
    asyncio.run(main())
