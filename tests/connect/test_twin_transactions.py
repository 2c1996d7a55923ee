"""Transactions at a twin of Kafka, whose rows are there once as at the real one (law X9)."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import Topology
from stormlet.connect.kafka import Commit
from stormlet.testing import Simulation
from stormlet.testing.brokers import twin

pytestmark = pytest.mark.simulated_time(allow_leaks=["errors"])


async def test_an_answer_that_is_lost_writes_nothing_twice(sim: Simulation) -> None:
    """The next instance of the committer reads the note of its epoch, and passes it over."""
    topology = Topology("writing", epoch_seconds=0.1, restart_delay=0.0)
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("write", Commit("kafka://k1", "sums", int), numbers.global_())
    with twin("kafka://k1", latency=2.0) as broker:
        async with topology.run() as running:
            for number in range(3):
                await running.emit(numbers, number)
            while not broker.topic("sums").left:  # noqa: ASYNC110 - it is the broker that is watched
                await asyncio.sleep(0.1)
            broker.cut()
            await sim.advance(seconds=20)
            assert running.statistics().components["write"].restarts == 1
        assert broker.topic("sums").left == [b"0", b"1", b"2"]


async def test_a_broker_that_is_not_there_is_waited_for(sim: Simulation) -> None:
    """The committer dies and is made again, as at a real cluster, and has the epoch then."""
    topology = Topology("writing", epoch_seconds=0.1, restart_delay=5.0, restart_delay_max=5.0)
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("write", Commit("kafka://k1", "sums", int), numbers.global_())
    with twin("kafka://k1") as broker:
        async with topology.run() as running:
            broker.restart(8.0)
            await running.emit(numbers, 1)
            await sim.advance(seconds=30)
            assert broker.topic("sums").left == [b"1"]
