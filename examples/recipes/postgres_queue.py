"""An outbox: take what a shop has written beside its own rows, and tell it elsewhere.

Whoever sells something writes the sale and a row of ``outbox`` in one transaction, so that both are there or neither.
``outbox`` is a queue: any number of these processes share its rows, and a row is deleted when what comes of it is
written. One that is killed with ``kill -9`` loses nothing; what it had not finished the others get when its lease has
run out. The table ``invoices`` has a row for each sale, by its number: one that is written again stands in the stead of
the first.

For rows that have no key, ``examples/recipes/postgres.py`` writes exactly once.

This needs asyncpg, ``pip install 'stormlet[cli,postgres]'``, and a Postgres with a database, such as ``createdb shop``
makes. The URL may name a user, as ``postgresql://alice:secret@localhost/shop`` does; otherwise it is the one who runs
the commands. The first of them makes the tables, and sells three things; the second works until Ctrl-C.

::

    python examples/recipes/postgres_queue.py postgresql://localhost/shop
    python -m stormlet run examples/recipes/postgres_queue.py --arg url=postgresql://localhost/shop
"""

from __future__ import annotations

import asyncio
import sys

import asyncpg
import msgspec

from stormlet import Topology
from stormlet.connect import postgres

LOCAL = "postgresql://localhost/shop"
TABLES = """
CREATE TABLE IF NOT EXISTS sales (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text, cents bigint);
CREATE TABLE IF NOT EXISTS invoices (sale bigint PRIMARY KEY, what text, cents bigint, tax bigint);
"""
SELL = """WITH sale AS (INSERT INTO sales (what, cents) VALUES ($1, $2) RETURNING *)
INSERT INTO outbox (body) SELECT row_to_json(sale) FROM sale"""


class Sale(msgspec.Struct, frozen=True):
    """Something that was sold."""

    id: int
    what: str
    cents: int


class Invoice(msgspec.Struct, frozen=True):
    """What somebody has to pay."""

    sale: int
    what: str
    cents: int
    tax: int


def invoice(sale: Sale) -> Invoice:
    """Return the invoice for a sale."""
    return Invoice(sale.id, sale.what, sale.cents, sale.cents * 19 // 119)


def invoices(url: str = LOCAL) -> Topology:
    """Write an invoice for each row of the outbox, until it is stopped."""
    topology = Topology("invoices")
    orders = topology.spout("orders", postgres.Queue(url, "outbox", as_=Sale, create=True))
    written = topology.bolt("invoice", invoice, orders.shuffle())
    topology.bolt("write", postgres.Upsert[Invoice](url, "invoices", key=["sale"]), written.shuffle())
    return topology


async def sell(url: str = LOCAL) -> None:
    """Make the tables, and sell three things. Usually somebody else has done so."""
    connection = await asyncpg.connect(url)
    await connection.execute(TABLES + postgres.queue_table("outbox"))
    for what, cents in [("table", 12_000), ("lamp", 3_500), ("carpet", 25_000)]:
        await connection.execute(SELL, what, cents)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(sell(*sys.argv[1:]))
