"""Simulations of topologies at twins: faults of the engine, and of the broker."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from stormlet import Topology
from stormlet.testing import simulate
from stormlet.testing.brokers import Broker, Troubles, TwinSource
from tests.connect.runs import KINDS

BODIES = [b"%d" % number for number in range(30)]


@pytest.mark.parametrize("profile", KINDS)
def test_nothing_slips_when_broker_and_engine_have_faults(profile: str) -> None:
    """Every message is done, or was given up after all its attempts; the witness judges the rest."""
    seeds, runs = count(), list[tuple[Broker, list[bytes]]]()

    def topology() -> Topology:
        broker, done = Broker(profile, troubles=Troubles(next(seeds), every=2.0, most=5)), list[bytes]()
        runs.append((broker, done))
        place = broker.place("orders")
        for body in BODIES:
            place.publish(body)
        place.finished = True

        async def work(body: bytes) -> None:
            await asyncio.sleep(0.3)
            done.append(body)

        made = Topology("twins", max_spout_pending=10, max_restarts=100, max_attempts=100)
        source = TwinSource[bytes](broker, "orders", finite=True, revoke_timeout=2.0)
        made.bolt("work", work, made.spout("orders", source).shuffle(), concurrency=3)
        return made

    simulate(topology, seeds=range(9), allow=True)
    for broker, done in runs:
        assert broker.violations == []
        assert (broker.place("orders").left, set(done)) == ([], set(BODIES))
