"""The twin of RabbitMQ 4.0."""

from __future__ import annotations

import asyncio

import pytest

from stormlet.testing import Simulation
from stormlet.testing.brokers import Broker
from tests.connect.runs import Consumer


async def stuck(body: bytes) -> None:
    """Work that does not end."""
    await asyncio.Event().wait()


@pytest.mark.simulated_time
async def test_a_quorum_queue_gives_up_what_was_redelivered_twenty_times(sim: Simulation) -> None:
    """As the real one with its default limit, which counts each connection that ends with the message."""
    options = {"message_timeout": None, "drain_timeout": 1.0, "max_spout_pending": 30}
    consumer = Consumer(Broker("rabbitmq-4.0"), stuck, **options)
    bodies = consumer.publish(1)
    async with consumer.run():
        for times in range(21):
            await sim.advance(minutes=1)
            assert (times, consumer.place.left) == (times, bodies)
            consumer.broker.cut()
        await sim.advance(minutes=1)
        assert (consumer.place.left, consumer.buried) == ([], bodies)
