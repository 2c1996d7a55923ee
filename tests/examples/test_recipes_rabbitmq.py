"""The recipe from a queue of RabbitMQ to an exchange of it, at a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from examples.recipes.rabbitmq import declare_and_order
from tests.brokers.conftest import started
from tests.brokers.servers import RabbitMQ
from tests.connect.rabbitmq.kit import Rabbit
from tests.examples.runs import RunExample


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A RabbitMQ."""
    for broker in started(RabbitMQ):
        assert isinstance(broker, RabbitMQ)
        yield broker.url


async def found(url: str) -> dict[str, list[bytes]]:
    """All that is in the queues afterwards."""
    async with Rabbit(url, "prices") as rabbit:
        names = ("orders", "prices", "orders dead")
        return {name: [message.body for message in await rabbit.take(name)] for name in names}


def test_orders_are_priced_or_dead_letters(run_example: RunExample, url: str) -> None:
    """Three prices, one order that nobody can price, and nothing left."""
    asyncio.run(declare_and_order(url))
    outcome = run_example("recipes/rabbitmq.py", "--arg", f"url={url}", "--duration", "8")
    there = asyncio.run(found(url))
    assert there["orders"] == []
    numbers = [msgspec.json.decode(body)["number"] for body in there["prices"]]
    assert sorted(numbers) == [1, 2, 4]
    assert [msgspec.json.decode(body)["article"] for body in there["orders dead"]] == ["gift"]
    assert outcome.acked("orders") == ("4", "3", "1"), outcome.summary
