"""Clusters for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.brokers.conftest import kafka as kafka
from tests.brokers.conftest import started
from tests.brokers.servers import Kafka
from tests.connect.kafka.cluster import Cluster
from tests.connect.kafka.servers import ProxiedKafka, SecureKafka


@pytest.fixture(scope="module")
def mock() -> Iterator[Cluster]:
    """librdkafka's cluster for tests, in this process."""
    broker = Producer({"bootstrap.servers": "mock", "log_level": 0, "test.mock.num.brokers": 1})
    (node,) = broker.list_topics(timeout=5).brokers.values()
    yield Cluster(f"{node.host}:{node.port}", is_mock=True)
    del broker


@pytest.fixture(scope="module")
def real(kafka: Kafka) -> Cluster:
    """Kafka itself."""
    return Cluster(f"127.0.0.1:{kafka.port}")


@pytest.fixture(params=["mock", "real"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Both, one after the other."""
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def proxied() -> Iterator[ProxiedKafka]:
    """Kafka behind a proxy."""
    yield from started(ProxiedKafka)  # type: ignore[misc]


@pytest.fixture(scope="module")
def secure() -> Iterator[SecureKafka]:
    """Kafka that wants passwords and certificates."""
    yield from started(SecureKafka)  # type: ignore[misc]
