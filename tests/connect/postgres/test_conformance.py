"""The cases that every connector must pass, at a real Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from stormlet.connect import postgres
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from tests.connect.conformance import CASES, QUEUE, Case, name_of
from tests.connect.postgres.kit import Postgres, through
from tests.connect.proxied import LEASE, ProxiedBench
from tests.connect.sessions import write

DEAD = "leased_until = 'infinity'"


class RealPostgres(ProxiedBench):
    """The connector with a Postgres, behind a proxy that cuts."""

    faults = frozenset({"cut", "gone", "silent", "restart", "leases", "missing", "secret"})
    notices = 0.1

    def __init__(self, name: str, *, rejects: bool) -> None:
        self.name = name
        self.rules = postgres.Queue(None, QUEUE, lease=LEASE, rejects=rejects).capabilities
        self._rejects = rejects
        self.server: Postgres
        self._url = ""

    def at(self, server: Postgres, url: str) -> RealPostgres:
        """The same at this database."""
        self.server, self._url = server, url
        return self

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[None]:
        await self._fresh()
        yield

    async def _fresh(self) -> None:
        await self._do(f"DROP TABLE IF EXISTS {QUEUE}")
        sink = postgres.Put[str](self._url, QUEUE, create=True)
        await write(sink)

    async def _do(self, statement: str, *arguments: object) -> list[Any]:
        connection = await asyncpg.connect(self._url)
        try:
            return list(await connection.fetch(statement, *arguments))
        finally:
            await connection.close()

    def source(self, **options: Any) -> Source[Any]:
        given = {"lease": LEASE, "lag_every": 1.0, "rejects": self._rejects, **options}
        return postgres.Queue(through(self._url, self.proxy.port), QUEUE, **given)

    def sink(self) -> Sink[bytes]:
        return postgres.Put[bytes](through(self._url, self.proxy.port), QUEUE, size=20)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        await self._insert([body])

    async def publish_all(self, bodies: Sequence[bytes], *, gap: int = 0) -> None:
        await self._insert(bodies)

    async def _insert(self, bodies: Sequence[bytes]) -> None:
        texts = [each.decode() for each in bodies]
        await self._do(f"INSERT INTO {QUEUE} (body) SELECT unnest($1::text[])", texts)

    async def left(self) -> list[bytes]:
        await self.is_there()
        rows = await self._do(f"SELECT body FROM {QUEUE} WHERE NOT {DEAD} ORDER BY body")
        return [row["body"].encode() for row in rows]

    async def dead(self) -> list[bytes]:
        return [row["body"].encode() for row in await self._do(f"SELECT body FROM {QUEUE} WHERE {DEAD}")]

    async def bring(self, fault: str) -> None:
        if fault == "missing":
            await self._do(f"DROP TABLE {QUEUE}")
        else:
            await super().bring(fault)


DELETES = RealPostgres("postgres", rejects=False)
KEEPS = RealPostgres("postgres with dead letters", rejects=True)
DIFFERENT = ("01", "03_", "11", "12", "13", "14", "24")
"""The cases in which a queue that keeps its dead letters might do something else."""
RUNS = [
    *((DELETES, case) for case in CASES),
    *((KEEPS, case) for case in CASES if name_of(case).startswith(DIFFERENT)),
]


@pytest.fixture(scope="module")
def url(server: Postgres) -> str:
    """A database."""
    return server.database("conformance")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("bench", "case"), RUNS, ids=lambda each: str(each) if isinstance(each, RealPostgres) else name_of(each)
)
def test_conformance(bench: RealPostgres, case: Case, server: Postgres, url: str) -> None:
    """The same cases as the twins."""
    bench.at(server, url).hold(case)
