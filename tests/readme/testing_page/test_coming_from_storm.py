"""The page "Testing your topology": what Storm's testing API is here."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.testing import Feeder, Hold, Input, ScriptedBolt, Simulation, complete, run_bolt
from tests.conformance.kit import Count


def counts() -> Topology:
    topology = Topology("counts")
    topology.bolt("count", Count, topology.spout("lines").fields())
    return topology


def test_completed_topologies() -> None:
    """`Testing.completeTopology`, `MockedSources`: `complete(topology, {"lines": [...]})`"""
    assert complete(counts(), {"lines": ["a", "b"]}).acked == ["a", "b"]


def test_tuples_that_were_emitted() -> None:
    """`Testing.readTuples(results, "count")`: `result["count"]`"""
    result = complete(counts(), {"lines": ["a", "a"]})
    assert result["count"] == [("a", 1), ("a", 2)]


def fed(feeder: Feeder[str]) -> Topology:
    topology = Topology("fed", message_timeout=5.0)
    topology.bolt("hold", ScriptedBolt({"hold": Hold()}), topology.spout("lines", feeder).shuffle())
    return topology


@pytest.mark.simulated_time
async def test_outcomes(sim: Simulation) -> None:
    """`FeederSpout`, `AckTracker`, `AckFailMapTracker`: `Feeder`: `acked`, `failed`, `pending`, `outcomes`"""
    feeder = Feeder[str]()
    async with fed(feeder).run():
        feeder.feed("a")
        feeder.feed("hold")
        await sim.settled()
        assert (feeder.acked, feeder.pending, len(feeder.outcomes)) == (["a"], ["hold"], 1)
        await sim.advance(seconds=10)
        assert feeder.failed == ["hold"]


def test_test_tuples() -> None:
    """`Testing.testTuple(values, param)`: `run_bolt(bolt, [Input(value, component=..., stream=...)], schema=[...])`"""

    class Looks(BasicBolt[Any, Any]):
        def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
            out.emit((tup.component, tup.stream, tup["name"]))

    result = run_bolt(Looks, [Input(("james",), component="c", stream="s")], schema=["name"])
    assert result.emitted() == [("c", "s", "james")]


@pytest.mark.simulated_time
async def test_simulated_time(sim: Simulation) -> None:
    """`withSimulatedTimeLocalCluster`, `advanceClusterTime(10)`: `@pytest.mark.simulated_time`, `await
    sim.advance(seconds=10)`
    """
    await sim.advance(seconds=10)
    assert sim.now == 10.0


@pytest.mark.simulated_time
async def test_tracked_topologies(sim: Simulation) -> None:
    """`TrackedTopology`, `trackedWait`: `await sim.settled()`"""
    feeder = Feeder[str]()
    async with fed(feeder).run():
        feeder.feed("a")
        assert feeder.acked == []
        await sim.settled()
        assert feeder.acked == ["a"]
