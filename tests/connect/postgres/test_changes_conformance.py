"""The cases that every connector must pass, at changes of a real Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import msgspec
import pytest

from stormlet.connect import postgres
from stormlet.connect.address import Address
from stormlet.connect.postgres.pgoutput import Begin, Commit, Decoder
from stormlet.connect.postgres.slot import PEEK
from stormlet.connect.session import Delivery, Session, SourceContext
from stormlet.connect.source import Source
from tests.connect.conformance import CASES, QUEUE, Bench, Case, name_of
from tests.connect.postgres.kit import PUBLICATION, Postgres, through
from tests.connect.postgres.test_conformance import RealPostgres


class Bodies(postgres.Changes[Any]):
    """Changes of a table with messages: the bodies of those that were added."""

    async def begin(self, address: Address, context: SourceContext) -> Session:
        session: Any = await super().begin(address, context)
        receive = session.receive

        async def received(most: int, within: float) -> Sequence[Delivery]:
            return [inside(each) for each in await receive(most, within)]

        session.receive = received
        return session  # type: ignore[no-any-return]


def inside(delivery: Delivery) -> Delivery:
    """The message that was added."""
    delivery.body = body_of(delivery.body)
    return delivery


def body_of(change: bytes) -> bytes:
    """Its body."""
    body: str = msgspec.json.decode(change)["row"]["body"]
    return body.encode()


class RealChanges(RealPostgres):
    """The connector with a Postgres, behind a proxy that cuts."""

    faults = frozenset({"cut", "gone", "silent", "restart", "missing", "secret", "gaps"})
    again = 60
    """An advance of the slot takes longer than the interval of settling, and as many are done meanwhile."""
    forgets = 1000

    def __init__(self) -> None:
        super().__init__("changes of postgres", rejects=False)
        self.rules = postgres.Changes(None, slot=QUEUE, publication=PUBLICATION).capabilities

    async def _fresh(self) -> None:
        await super()._fresh()
        await self._do(f'DROP PUBLICATION IF EXISTS "{PUBLICATION}"')
        await self._do("CREATE TABLE IF NOT EXISTS other (id int)")
        await self._do(f'CREATE PUBLICATION "{PUBLICATION}" FOR TABLE {QUEUE}')
        await self._do(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", QUEUE
        )
        await self._do("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", QUEUE)

    def source(self, **options: Any) -> Source[Any]:
        given = {"lag_every": 1.0, "settle_every": 0.1, "poll": 0.05, **options}
        return Bodies(through(self._url, self.proxy.port), slot=QUEUE, publication=PUBLICATION, **given)

    async def publish(self, body: bytes, *, gap: int = 0) -> None:
        if gap:
            await self._do("INSERT INTO other SELECT generate_series(1, $1)", gap)
        await super().publish(body)

    async def publish_all(self, bodies: Sequence[bytes], *, gap: int = 0) -> None:
        for body in bodies:  # each in a transaction of its own, which is done as a whole
            await self.publish(body, gap=gap)

    async def left(self) -> list[bytes]:
        await self.is_there()
        decoder, bodies = Decoder(), list[bytes]()
        for row in await self._peek():
            said = decoder.read(row["data"])
            bodies += [] if isinstance(said, Begin | Commit) else map(body_of, said)
        return sorted(bodies)

    async def _peek(self) -> list[Any]:
        while True:
            try:
                return await self._do(PEEK, QUEUE, None, f'"{PUBLICATION}"')
            except asyncpg.ObjectInUseError:
                await asyncio.sleep(0.01)

    async def dead(self) -> list[bytes]:
        return []

    async def bring(self, fault: str) -> None:
        if fault == "missing":
            await self._do("SELECT pg_drop_replication_slot($1)", QUEUE)
        else:
            await super().bring(fault)


DIFFERENT = ("06", "24", "25")
"""The cases that it does not hold: an advance takes longer than the interval of settling for which the first one bounds
what comes twice, the lag is in bytes, and a second run is refused."""


@pytest.fixture(scope="module")
def url(logical: Postgres) -> str:
    """A database."""
    return logical.database("conformance")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "case", [case for case in CASES if not name_of(case).startswith(DIFFERENT)], ids=name_of
)
def test_conformance(case: Case, logical: Postgres, url: str) -> None:
    """The same cases as the twins."""
    bench: Bench = RealChanges().at(logical, url)
    bench.hold(case)
