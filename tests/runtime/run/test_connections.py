"""Connections of components to their brokers, in health and statistics."""

from __future__ import annotations

import pytest

from stormlet import Spout, SpoutCollector, TaskContext, Topology
from stormlet.report.connections import Connection, ConnectionState
from tests.cast import ignore


class Connected(Spout[int]):
    """Says what the test has it say."""

    state = ConnectionState.READY

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        context.show_connection(lambda: Connection(address="b", state=self.state, lag={"q": 3, "r": 4}))

    def next_tuple(self, out: SpoutCollector[int]) -> None: ...


@pytest.mark.simulated_time
async def test_a_run_is_ready_only_with_its_brokers() -> None:
    """A source that reconnects is no reason to crash, but one to send nothing here."""
    topology = Topology("connected")
    topology.bolt("bolt", ignore, topology.spout("orders", Connected).shuffle())
    async with topology.run() as running:
        states = []
        for Connected.state in ConnectionState:
            states += [Connected.state.value] * running.health().ready
        assert states == ["ready", "paused"]
        assert running.health().connections["orders[0]"].address == "b"
        connections = running.statistics().components["orders"].connections
        assert connections is not None
        assert [each.total_lag for each in connections.values()] == [7]
        assert running.statistics().components["bolt"].connections is None


def test_a_broker_that_says_nothing_of_its_lag_has_none() -> None:
    """None, and not 0, which would be a claim."""
    assert Connection(address="b").total_lag is None
