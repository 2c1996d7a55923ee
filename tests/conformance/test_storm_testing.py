"""Storm's own testing API, by its test cases (A1, G10, X1, X2): ``Testing``, ``FeederSpout``, simulated time."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from stormlet import BasicBolt, Collector, Topology, Tuple
from stormlet.testing import Feeder, Input, Simulation, complete, run_bolt
from tests.conformance.kit import AckEveryOther, Count, GlobalCount

NAMES = [("nathan",), ("bob",), ("joey",), ("nathan",)]


class Aggregates(BasicBolt[Any, int]):
    """Storm's TestAggregatesCounter: how many inputs this task has seen, once for each."""

    def __init__(self) -> None:
        self._count = 0

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        self._count += 1
        out.emit(self._count)


def test_A1_a_basic_topology_is_completed() -> None:
    """testBasicTopology and TestingTest.testCompleteTopology: what each component has emitted, on mocked sources."""
    topology = Topology("1")
    words = topology.spout("1", outputs=["word"], parallelism=3)
    counts = topology.bolt("2", Count, words.fields("word"), parallelism=4)
    topology.bolt("3", GlobalCount, words.global_())
    topology.bolt("4", Aggregates, counts.global_())
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
    await sim.advance(seconds=1.08)
    assert sim.now == 1.08


def test_X2_there_is_nothing_to_advance_outside_a_simulation() -> None:
    """TimeTest: advancing without simulated time is an error."""

    async def advance() -> None:
        await Simulation().advance(seconds=1)

    with pytest.raises(RuntimeError, match="no simulated time"):
        asyncio.run(advance())
