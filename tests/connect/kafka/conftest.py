"""Clusters for the tests of a module."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep

import pytest
from confluent_kafka import Producer

from tests.brokers.conftest import kafka as kafka
from tests.brokers.conftest import started
from tests.brokers.servers import Kafka
from tests.connect.kafka.cluster import Cluster
from tests.connect.kafka.servers import ProxiedKafka, SecureKafka


@pytest.fixture(scope="module", autouse=True)
def _no_client_is_left() -> Iterator[None]:
    """A client that outlives its broker looks for it for ever, and says so in the output of other tests."""
    yield
    gc.collect()
    ends = monotonic() + 60  # those of a client end one after another
    while (left := client_threads()) and monotonic() < ends:
        sleep(0.1)
    assert left == []


def client_threads() -> list[str]:
    """The names of the threads of librdkafka in this process."""
    found = list[str]()
    for each in Path("/proc/self/task").glob("*"):
        with suppress(OSError):  # it has just ended
            found.append((each / "comm").read_text().strip())
    return [name for name in found if name.startswith("rdk:")]


@pytest.fixture(scope="module")
def mock() -> Iterator[Cluster]:
    """librdkafka's cluster for tests, in this process."""
    broker = Producer({"bootstrap.servers": "mock", "log_level": 0, "test.mock.num.brokers": 1})
    (node,) = broker.list_topics(timeout=30).brokers.values()
    with closing(Cluster(f"{node.host}:{node.port}", is_mock=True)) as cluster:
        yield cluster
    del broker


@pytest.fixture(scope="module")
def real(kafka: Kafka) -> Iterator[Cluster]:
    """Kafka itself."""
    with closing(Cluster(f"127.0.0.1:{kafka.port}")) as cluster:
        yield cluster


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
