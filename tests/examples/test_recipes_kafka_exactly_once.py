"""The recipe of balances that are in a topic of Kafka exactly once, on a real Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from signal import SIGTERM
from time import monotonic, sleep

import msgspec
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from examples.recipes.kafka_exactly_once import Balance, sales
from tests.brokers.conftest import started
from tests.brokers.processes import Broker
from tests.brokers.servers import Kafka

ROOT = Path(__file__).parents[2]
COUNT = 10_000


@pytest.fixture
def kafka() -> Iterator[Broker]:
    """Kafka."""
    yield from started(Kafka)


def rows(broker: Broker, topic: str) -> list[bytes]:
    """All that was committed, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{broker.port}",
            "group.id": "looks",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    there = consumer.list_topics(timeout=60).topics
    found, ended = list[bytes](), 0 if topic in there else 4
    if topic in there:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(4)])
    while ended < 4:
        for message in consumer.consume(1000, 0.1):
            found += [] if message.error() else [message.value() or b""]
            ended += message.error() is not None
    consumer.close()
    return found


def running(broker: Broker, state: Path) -> subprocess.Popen[bytes]:
    """The recipe as a process."""
    program = [sys.executable, "-m", "stormlet", "run", str(ROOT / "examples/recipes/kafka_exactly_once.py")]
    options = ["--arg", f"url=kafka://127.0.0.1:{broker.port}", "--state", str(state), "--quiet"]
    return subprocess.Popen([*program, *options], cwd=ROOT, env=dict(os.environ), stderr=subprocess.PIPE)


@pytest.mark.untraced
@pytest.mark.timeout(600)
def test_runs_that_are_killed_leave_each_balance_once(kafka: Broker, tmp_path: Path) -> None:
    """Three of them, at random moments; the last goes on to the end."""
    random, state = Random(17), tmp_path / "balances.state"
    for _ in range(3):
        run = running(kafka, state)
        sleep(random.uniform(1.0, 2.0))
        run.kill()
        run.communicate()
    run = running(kafka, state)
    deadline = monotonic() + 240
    while len(rows(kafka, "balances")) < COUNT:
        assert run.poll() is None
        assert monotonic() < deadline
        sleep(0.2)
    run.terminate()
    output = run.communicate()[1].decode()
    begun_too_late = (
        -SIGTERM
    )  # The killed ones had done all, and this one had not yet come to its first line.
    assert run.returncode in (0, 143, begun_too_late), output
    check(rows(kafka, "balances"))
    assert len(rows(kafka, "sales")) == COUNT


def check(bodies: list[bytes]) -> None:
    """Each order once, and each balance is that of all orders of its shop before it."""
    found = [msgspec.json.decode(body, type=Balance) for body in bodies]
    assert Counter(row.order for row in found) == dict.fromkeys(range(COUNT), 1)
    sums, expected = defaultdict[str, int](int), {}
    for order in sales(COUNT):
        sums[order.shop] += order.cents
        expected[order.number] = sums[order.shop]
    assert {row.order: row.cents for row in found} == expected
