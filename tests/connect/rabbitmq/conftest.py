"""A RabbitMQ for each module, and another client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.brokers.conftest import started
from tests.brokers.processes import Broker
from tests.brokers.proxy import Proxy
from tests.brokers.servers import RabbitMQ
from tests.connect.rabbitmq.kit import Rabbit


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """RabbitMQ."""
    yield from started(RabbitMQ)


@pytest_asyncio.fixture
async def rabbit(broker: RabbitMQ, request: pytest.FixtureRequest) -> AsyncIterator[Rabbit]:
    """Another client, with a queue of the test's own."""
    name = request.node.name.translate({ord("["): "-", ord("]"): None})  # AMQP does not allow them
    async with Rabbit(broker.url, name) as rabbit:
        yield rabbit


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    """A proxy before the broker."""
    with Proxy(broker.port) as proxy:
        yield proxy
