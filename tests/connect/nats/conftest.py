"""A NATS for each module, and another client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.brokers.conftest import started
from tests.brokers.processes import Broker
from tests.brokers.proxy import Proxy
from tests.brokers.servers import Nats
from tests.connect.nats.kit import Server


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """NATS with JetStream."""
    yield from started(Nats)


@pytest_asyncio.fixture
async def server(broker: Nats, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """Another client, with a stream of the test's own."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    async with Server(broker.url, name) as server:
        await server.make()
        yield server
        await server.js.delete_stream(name)


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    """A proxy before the broker."""
    with Proxy(broker.port) as proxy:
        yield proxy
