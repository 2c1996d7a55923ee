"""The recipe of Kafka's topics, on a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.brokers.conftest import started
from tests.brokers.processes import Broker
from tests.brokers.servers import Kafka
from tests.examples.runs import RunExample


@pytest.fixture
def kafka() -> Iterator[Broker]:
    """Kafka."""
    yield from started(Kafka)


def test_it_charges_for_every_order(run_example: RunExample, kafka: Broker) -> None:
    """Each charge has the name of its order, and all orders are committed."""
    servers = f"127.0.0.1:{kafka.port}"
    outcome = run_example("recipes/kafka_topics.py", "--arg", f"url=kafka://{servers}", "--duration", "12")
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing"})
    committed = consumer.committed([TopicPartition("orders", number) for number in range(4)], 30)
    consumer.assign([TopicPartition("charges", number, OFFSET_BEGINNING) for number in range(4)])
    charges = consumer.consume(3, 30)
    consumer.close()
    assert sorted(each.value() or b"" for each in charges) == [
        b'{"what":"carpet","cents":25000}',
        b'{"what":"lamp","cents":3500}',
        b'{"what":"table","cents":12000}',
    ]
    assert all(dict(each.headers() or ())["stormlet-origin"].startswith(b"orders[") for each in charges)
    assert (sum(max(0, each.offset) for each in committed), outcome.code) == (3, 0)
