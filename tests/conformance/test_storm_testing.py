"""Storm's own testing API, by its test cases (A1, A3, A6, A9, A10, G10, X1, X2): ``Testing``, ``FeederSpout``, tracked
topologies, simulated time."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.testing import Feeder, Input, Simulation, complete, run_bolt
from tests.cast import Forward, Join
from tests.conformance.kit import AckEveryOther, Count, GlobalCount

NAMES = [("nathan",), ("bob",), ("joey",), ("nathan",)]


def test_A1_a_basic_topology_is_completed() -> None:
    """testBasicTopology and TestingTest.testCompleteTopology: what each component has emitted, on mocked sources."""
    topology = Topology("1")
    words = topology.spout("1", outputs=["word"], parallelism=3)
    counts = topology.bolt("2", Count, words.fields("word"), parallelism=4)
    topology.bolt("3", GlobalCount, words.global_())
    topology.bolt("4", GlobalCount, counts.global_())
    result = complete(topology, {"1": NAMES})
    assert Counter(result["1"]) == Counter(NAMES)
    nathan, bob, joey = ("nathan",), ("bob",), ("joey",)
    assert Counter(result["2"]) == Counter([(nathan, 1), (nathan, 2), (bob, 1), (joey, 1)])
    assert result["3"] == [1, 2, 3, 4]
    assert result["4"] == [1, 2, 3, 4]


def test_G10_mocked_values_are_all_counted() -> None:
    """MessagingTest.testLocalTransport: 24 values over two spout tasks, six bolt tasks: 24 outputs."""
    topology = Topology("transport")
    topology.bolt("2", GlobalCount, topology.spout("1", parallelism=2).shuffle(), parallelism=6)
    assert len(complete(topology, {"1": ["a", "b"] * 12})["2"]) == 24


@pytest.mark.simulated_time
async def test_A3_a_feeder_hears_of_acks_and_timeouts(sim: Simulation) -> None:
    """testTimeout, by the kit: T=10, a bolt that acks every other input."""
    feeder = Feeder[str]()
    topology = Topology("timeouts", message_timeout=10.0)
    topology.bolt("2", AckEveryOther, topology.spout("1", feeder).global_())
    async with topology.run():
        await sim.advance(seconds=11)
        for value, id in (("a", 1), ("b", 2), ("c", 3)):
            feeder.feed(value, message_id=id)
        await sim.advance(seconds=9)
        assert (feeder.acked, feeder.failed) == (["a", "c"], [])
        await sim.advance(seconds=12)
        assert feeder.failed == ["b"]


@pytest.mark.simulated_time
async def test_A6_a_tracked_topology_is_waited_for(sim: Simulation) -> None:
    """TestingTest.testWithTrackedCluster: after each feed the test waits until everything is done that can be."""
    feeder, topology = Feeder[str](), Topology("tracked", drain_timeout=0)
    lines = topology.spout("1", feeder)
    branches = [topology.bolt(id, Forward, lines.shuffle()) for id in "23"]
    topology.bolt("4", lambda: Join(4), *(branch.shuffle() for branch in branches))
    async with topology.run():
        feeder.feed("a")
        await sim.settled()
        assert (feeder.acked, feeder.pending) == ([], ["a"])
        feeder.feed("b")
        await sim.settled()
        assert (sorted(feeder.acked), feeder.pending) == (["a", "b"], [])
        assert sim.now == 0


@pytest.mark.simulated_time
@pytest.mark.parametrize(("enabled", "failed"), [(True, ["b"]), (False, [])], ids=["A9", "A10"])
async def test_A9_A10_time_is_advanced(sim: Simulation, enabled: bool, failed: list[str]) -> None:
    """TestingTest.testAdvanceClusterTime and testDisableTupleTimeout: 21 s fail what nobody acks, or not."""
    feeder = Feeder[str]()
    options = {"topology.message.timeout.secs": 10, "topology.enable.message.timeouts": enabled}
    topology = Topology("advanced", drain_timeout=0, **options)
    topology.bolt("2", AckEveryOther, topology.spout("1", feeder).shuffle())
    async with topology.run():
        for value in "abc":
            feeder.feed(value)
        await sim.advance(seconds=9)
        assert (feeder.acked, feeder.failed) == (["a", "c"], [])
        await sim.advance(seconds=12)
        assert (feeder.acked, feeder.failed) == (["a", "c"], failed)


def test_X1_a_test_tuple_is_what_the_test_says() -> None:
    """testTestTuple: component, stream and fields; without them there are defaults."""
    seen: list[tuple[object, ...]] = []

    class Look(BasicBolt[tuple[str, str], None]):
        def execute(self, tup: Tuple[tuple[str, str]], out: Collector[None]) -> None:
            seen.append((tup.component, tup.stream, tup["fname"], tup["lname"]))

    bond = ("james", "bond")
    given = [Input(bond), Input(bond, component="test-component", stream="test-stream")]
    run_bolt(Look, given, schema=["fname", "lname"])
    assert seen == [
        ("values", "default", "james", "bond"),
        ("test-component", "test-stream", "james", "bond"),
    ]


@pytest.mark.simulated_time
async def test_X2_time_is_advanced_forward_alone(sim: Simulation) -> None:
    """TimeTest: nothing for 0, an error for less, and seconds to the last digit."""
    await sim.advance(seconds=0)
    assert sim.now == 0.0
    with pytest.raises(ValueError, match="time does not go back"):
        await sim.advance(seconds=-1)
    moments = []
    for seconds in (0.002, 1, 1.08, 10.1):
        await sim.advance(seconds=seconds)
        moments.append(sim.now)
    assert moments == [0.002, 0.002 + 1, 0.002 + 1 + 1.08, 0.002 + 1 + 1.08 + 10.1]


def test_X2_there_is_nothing_to_advance_outside_a_simulation() -> None:
    """TimeTest: advancing without simulated time is an error."""

    async def advance() -> None:
        await Simulation().advance(seconds=1)

    with pytest.raises(RuntimeError, match="no simulated time"):
        asyncio.run(advance())
