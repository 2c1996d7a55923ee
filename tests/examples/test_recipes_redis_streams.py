"""The recipe of Redis Streams, on a real Valkey."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from tests.brokers.conftest import started
from tests.brokers.processes import Broker
from tests.brokers.servers import Valkey
from tests.examples.runs import RunExample


@pytest.fixture
def valkey() -> Iterator[Broker]:
    """Valkey."""
    yield from started(Valkey)


def test_it_charges_for_every_order(run_example: RunExample, valkey: Broker) -> None:
    """Each charge has the name of its order, and nothing is left."""
    outcome = run_example(
        "recipes/redis_streams.py", "--arg", f"url=redis://127.0.0.1:{valkey.port}/0", "--duration", "8"
    )
    with Redis(port=valkey.port, decode_responses=True) as client:
        charges = [fields for _, fields in client.xrange("charges")]
        (group,) = client.xinfo_groups("orders")
    assert [each["body"] for each in charges] == [
        '{"what":"table","cents":12000}',
        '{"what":"lamp","cents":3500}',
        '{"what":"carpet","cents":25000}',
    ]
    assert all(each["origin"].startswith("orders@") for each in charges)
    assert (group["pending"], group["lag"], outcome.code) == (0, 0, 0)
