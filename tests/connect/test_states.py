"""The states of a connection, in the order of a life, as health has them."""

from __future__ import annotations

import asyncio
import logging

import pytest

from stormlet import Running, Topology
from stormlet.report.connections import Connection, ConnectionState, lag_of
from stormlet.testing import Simulation
from stormlet.testing.brokers import Broker, TwinSink
from tests.connect.runs import KINDS, Consumer, connection, quick


def states_of(running: Running, task: str) -> list[str]:
    return [running.health().connections[task].state.value]


async def slowly(body: bytes) -> None:
    """Take longer than a broker is away."""
    await asyncio.sleep(20)


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", KINDS)
async def test_a_source_goes_through_its_states(profile: str, sim: Simulation) -> None:
    """The last one stays in the statistics."""
    consumer = Consumer(Broker(profile), quick)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        seen = states_of(running, "orders[0]")
        for happens in (running.deactivate, running.activate, lambda: consumer.broker.restart(10), bool):
            happens()
            await sim.advance(seconds=6)
            seen += states_of(running, "orders[0]")
        await sim.advance(seconds=20)
        seen += states_of(running, "orders[0]")
    seen += states_of(running, "orders[0]")
    assert seen == ["ready", "paused", "ready", "reconnecting", "reconnecting", "ready", "closed"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", KINDS)
async def test_a_run_that_begins_inactive_reads_nothing(profile: str, sim: Simulation) -> None:
    """Nor does one that is deactivated at once: others of its group may have the messages."""
    consumer = Consumer(Broker(profile), quick)
    consumer.publish(5)
    for active in (False, True):
        async with consumer.topology.run(active=active) as running:
            running.deactivate()
            await sim.advance(seconds=30)
            assert (connection(running).state.value, connection(running).received) == ("paused", 0)


@pytest.mark.simulated_time
async def test_a_task_that_begins_anew_is_connecting(sim: Simulation) -> None:
    """A probe sees that it is not ready."""
    consumer = Consumer(Broker("redis-7", latency=3.0), quick)
    async with consumer.run() as running:
        running.kill("orders")
        seen = list[tuple[str, bool]]()
        for _ in range(20):
            await sim.advance(seconds=0.5)
            seen.append((*states_of(running, "orders[0]"), running.health().ready))
    assert list(dict.fromkeys(seen))[-2:] == [("connecting", False), ("ready", True)]


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", ["redis-7", "jetstream"])
async def test_a_connection_that_is_lost_while_it_drains_is_said_to_be(profile: str, sim: Simulation) -> None:
    """It explains why the end takes long; when it is back, it is draining again, and never ready."""
    consumer = Consumer(Broker(profile), slowly, message_timeout=None)
    consumer.publish(3)
    async with consumer.run() as running:
        await sim.advance(seconds=1)
        seen = list[str]()
        for happens in (running.stop, lambda: consumer.broker.restart(8), bool, bool, bool, bool, bool):
            happens()
            await sim.advance(seconds=2)
            seen += states_of(running, "orders[0]")
    assert list(dict.fromkeys(seen)) == ["draining", "reconnecting"]
    assert seen[-1] == "draining"
    assert consumer.place.left == []


@pytest.mark.simulated_time
async def test_a_sink_is_ready_reconnecting_and_closed(sim: Simulation) -> None:
    """It has no other states: it does what its inputs ask for."""
    broker, topology = Broker("redis-7"), Topology("sending")
    topology.bolt("send", TwinSink[int](broker, "done"), topology.spout("numbers", range(3)).shuffle())
    async with topology.run() as running:
        seen = states_of(running, "send[0]")
        broker.restart(10)
        await sim.advance(seconds=5)
        seen += states_of(running, "send[0]")
        await running.finished()
        seen += states_of(running, "send[0]")
    seen += states_of(running, "send[0]")
    assert seen == ["ready", "reconnecting", "ready", "closed"]


@pytest.mark.simulated_time
async def test_a_change_is_logged_once(sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """And an attempt not at all."""
    caplog.set_level(logging.INFO, "stormlet.connect")
    consumer = Consumer(Broker("redis-7"), quick)
    async with consumer.run() as running:
        consumer.broker.restart(100)
        await sim.advance(seconds=90)
        there = connection(running)
        assert (there.attempt > 3, there.since) == (True, pytest.approx(90, abs=6))
        await sim.advance(seconds=90)
    assert [each.getMessage().partition(" twin")[0] for each in caplog.records] == [
        "orders has lost",
        "orders has",
    ]


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", KINDS)
async def test_the_lag_of_a_component_counts_each_message_once(profile: str, sim: Simulation) -> None:
    """Two tasks share a queue, and have partitions of their own."""
    consumer = Consumer(Broker(profile), slowly, parallelism=2, message_timeout=None)
    consumer.publish(40)
    async with consumer.run() as running:
        await sim.advance(seconds=12)
        connections: list[Connection] = list(running.health().connections.values())
        assert len(connections) == 2
        assert running.statistics().components["orders"].lag == 40
        await consumer.until_empty()
        await sim.advance(seconds=6)
        assert running.statistics().components["orders"].lag == 0


@pytest.mark.simulated_time
@pytest.mark.parametrize("profile", KINDS)
async def test_the_lag_is_unknown_while_the_broker_is_away(profile: str, sim: Simulation) -> None:
    """Nobody must take what piles up there for nothing."""
    consumer = Consumer(Broker(profile), quick)
    seen: list[int | None] = []
    async with consumer.run() as running:
        for happens in (bool, lambda: consumer.broker.restart(10), lambda: consumer.publish(3), bool):
            happens()
            await sim.advance(seconds=8)
            seen.append(running.statistics().components["orders"].lag)
    assert seen[:2] == [0, None]
    assert seen[-1] == 0


def lost(**lag: int) -> Connection:
    return Connection(address="there", state=ConnectionState.RECONNECTING, lag=lag)


def ready(**lag: int) -> Connection:
    return Connection(address="there", state=ConnectionState.READY, lag=lag)


@pytest.mark.parametrize(
    ("connections", "lag"),
    [
        ([ready(a=5), ready(b=7)], 12),
        ([ready(a=5), lost(b=7)], None),
        ([ready(a=5), lost(a=3)], 5),
        ([ready(a=5, b=8), lost(b=7)], 13),
        ([ready(a=5), lost()], 5),
        ([lost(a=5)], None),
        ([ready()], None),
    ],
)
def test_a_lag_is_known_where_all_places_are_told_of(connections: list[Connection], lag: int | None) -> None:
    """What a lost connection has said last is old; others may tell of the same place."""
    assert lag_of(connections) == lag
