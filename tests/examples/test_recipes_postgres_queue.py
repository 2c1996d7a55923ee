"""The recipe of an outbox, on a real Postgres."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.recipes.postgres_queue import sell
from tests.brokers.processes import missing
from tests.connect.postgres.kit import Place, Postgres
from tests.examples.postgres_server import binaries
from tests.examples.runs import RunExample


@pytest.fixture
def url() -> Iterator[str]:
    """A database."""
    programs = binaries()
    if programs is None:
        missing("Postgres", "apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        server = Postgres(programs, Path(folder))
        yield server.database("shop")
        server.stop()


def test_each_sale_has_an_invoice(run_example: RunExample, url: str) -> None:
    """And the outbox is empty."""
    asyncio.run(sell(url))
    outcome = run_example("recipes/postgres_queue.py", "--arg", f"url={url}", "--duration", "8")

    async def look() -> None:
        async with Place(url) as place:
            assert await place.rows("sale, what, cents, tax", "invoices") == [
                (1, "table", 12000, 1915),
                (2, "lamp", 3500, 558),
                (3, "carpet", 25000, 3991),
            ]
            assert await place.rows(table="outbox") == []

    asyncio.run(look())
    assert outcome.code == 0
