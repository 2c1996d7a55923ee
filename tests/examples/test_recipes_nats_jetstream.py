"""The recipe of NATS JetStream, on a real NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.brokers.conftest import started
from tests.brokers.processes import Broker
from tests.brokers.servers import Nats
from tests.connect.nats.kit import Server
from tests.examples.runs import RunExample


@pytest.fixture
def nats() -> Iterator[Broker]:
    """NATS with JetStream."""
    yield from started(Nats)


def test_it_charges_for_every_order_once(run_example: RunExample, nats: Nats) -> None:
    """In two runs, whose orders have the same numbers: nothing is left, and each charge has the name of its order."""
    for _ in range(2):
        outcome = run_example("recipes/nats_jetstream.py", "--arg", f"url={nats.url}", "--duration", "8")
        assert outcome.code == 0

    async def look() -> None:
        async with Server(nats.url, "CHARGES") as server:
            charges = await server.messages()
            billing = await server.js.consumer_info("ORDERS", "billing")
        assert [each.data for each in charges] == [
            b'{"order":1,"cents":12000}',
            b'{"order":2,"cents":3500}',
            b'{"order":3,"cents":25000}',
        ]
        assert [each.headers["stormlet-origin"] for each in charges] == ["ORDERS@1", "ORDERS@2", "ORDERS@3"]
        assert (billing.num_pending, billing.num_ack_pending, billing.delivered.stream_seq) == (0, 0, 6)

    asyncio.run(look())
