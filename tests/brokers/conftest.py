"""Brokers for the tests of a module: each is started once, on loopback, with data that are gone afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers.processes import Broker
from tests.brokers.servers import Kafka, Nats, RabbitMQ, Valkey


def started(kind: Callable[[Path], Broker]) -> Iterator[Broker]:
    """A broker of this kind that is running."""
    with tempfile.TemporaryDirectory(prefix="broker-") as folder:
        broker = kind(Path(folder))
        try:
            broker.start()
            yield broker
        finally:
            broker.close()


@pytest.fixture(scope="module")
def rabbitmq() -> Iterator[Broker]:
    """RabbitMQ."""
    yield from started(RabbitMQ)


@pytest.fixture(scope="module")
def valkey() -> Iterator[Broker]:
    """Valkey, which speaks Redis's protocol."""
    yield from started(Valkey)


@pytest.fixture(scope="module")
def nats() -> Iterator[Broker]:
    """NATS with JetStream."""
    yield from started(Nats)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    """Kafka."""
    yield from started(Kafka)
