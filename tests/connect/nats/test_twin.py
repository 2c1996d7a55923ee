"""A source and a sink of NATS at a twin: a topology is tested without its broker."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Topology
from stormlet.connect import nats
from stormlet.testing.brokers import twin

pytestmark = [pytest.mark.asyncio, pytest.mark.simulated_time]


async def test_a_twin_stands_for_the_broker() -> None:
    """Over a restart, and with leases that end meanwhile."""
    topology = Topology("twin", max_spout_pending=20)
    orders = topology.spout("orders", nats.Stream("nats://n1,n2", "ORDERS", consumer="billing", as_=str))
    topology.bolt("tell", nats.Publish[str]("nats://n1,n2", "charges.new"), orders.shuffle())
    bodies = [b"%03d" % number for number in range(100)]
    with twin("nats://n1,n2") as broker:
        for body in bodies:
            broker.queue("ORDERS").publish(body)
        async with topology.run():
            await asyncio.sleep(0.01)
            broker.restart(60)
            await asyncio.sleep(300)
        assert (broker.queue("ORDERS").left, broker.violations) == ([], [])
        assert set(broker.queue("charges.new").left) == set(bodies)
