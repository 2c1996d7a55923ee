"""What Storm's own code stumbles over, T1 to T20: each trap that there can be here, and what happens instead."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from stormlet import (
    SpoutCollector,
    Topology,
)
from tests.cast import Ack, Feeder, Hold, Note, Silent, given, raise_value_error, take_a_second
from tests.conformance.kit import Numbers, of_tasks, one_bolt, settle, until
from tests.helpers import run_to_end
from tests.law.puppets import orphans


class TenAtOnce(Feeder):
    """Emits ten messages in its first call."""

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        super().next_tuple(out)
        if len(self.asked) == 1:
            for number in range(10):
                out.emit(number, message_id=number)


@pytest.mark.simulated_time
async def test_T3_a_deactivated_spout_keeps_nothing_back() -> None:
    """What it emitted into a full queue before it was deactivated is executed and acked all the same."""
    topology, spout = Topology("T3", queue_capacity=1), TenAtOnce()
    topology.bolt("2", take_a_second, topology.spout("1", given(spout)).shuffle())
    async with topology.run() as running:
        await until(0.5)
        running.deactivate()
        await until(11)
        assert spout.settled_at == {number: number + 1 for number in range(10)}
        assert len(spout.asked) == 1


@pytest.mark.simulated_time
async def test_T4_acks_are_counted_without_ackers_too() -> None:
    """What the spout's ``ack`` was told and what the bolt acked are in their statistics, though nothing is tracked."""
    spout = Numbers(last=9)
    running = await run_to_end(one_bolt(spout, Ack, ackers=0))
    counts = running.statistics().components
    assert (len(spout.acked), counts["s1"].acked) == (10, 10)
    assert (counts["b1"].executed, counts["b1"].acked) == (10, 10)


@pytest.mark.simulated_time
async def test_T7_every_failure_is_counted() -> None:
    """Nothing is sampled: of 25 failed messages the statistics count 25, at the bolt and at the spout."""
    topology, spout = Topology("T7"), Numbers(last=24)
    topology.bolt("2", raise_value_error, topology.spout("1", given(spout)).shuffle())
    counts = (await run_to_end(topology)).statistics().components
    assert (len(spout.failed), counts["1"].failed, counts["2"].failed) == (25, 25, 25)


@pytest.mark.simulated_time
async def test_T15_a_reset_of_a_finished_tree_leaves_nothing() -> None:
    """One bolt fails the tree, another resets the timeout of what it holds of it: the acker has no entry of it, and
    there is one outcome."""
    topology, feeder, bolts = Topology("T15", message_timeout=10), Feeder(), (Hold(), Hold())
    numbers = topology.spout("1", given(feeder))
    for id, bolt in zip("23", bolts, strict=True):
        topology.bolt(id, given(bolt), numbers.shuffle())
    async with topology.run() as running:
        feeder.feed("a", 1)
        await settle()
        bolts[0].fail("a")
        await settle()
        assert bolts[1].out is not None
        bolts[1].out.reset_timeout(bolts[1].held[0])
        await settle()
        assert running.statistics().components["__acker"].pending == orphans(running) == 0
        await until(100)
    assert feeder.outcomes == [("fail", 1)]


@pytest.mark.parametrize("name", ["flush.tuple.freq.millis", "batch.flush.interval.millis"])
def test_T17_a_name_of_storms_documentation_is_known(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The one in its documentation as well as the one in its code: neither has an effect, and a warning says why."""
    with caplog.at_level(logging.WARNING):
        Topology("T17", **{f"topology.{name}": 1})
    assert f"topology.{name} has no effect: tuples are handed over once per slice" in caplog.text


@pytest.mark.simulated_time
async def test_T18_acks_and_transfers_are_counted_apart() -> None:
    """One message to three bolts is one emit, three transfers and one ack."""
    topology, spout = Topology("T18"), Numbers(last=0)
    numbers = topology.spout("1", given(spout))
    for id in "234":
        topology.bolt(id, Ack, numbers.shuffle())
    counts = (await run_to_end(topology)).statistics().components["1"]
    assert (counts.emitted, counts.transferred, counts.acked) == (1, 3, 1)


@pytest.mark.simulated_time
async def test_T19_max_spout_pending_is_for_each_task() -> None:
    """Three tasks of a spout with at most two pending messages have six in flight, two each."""
    topology = Topology("T19", drain_timeout=0, **{"topology.max.spout.pending": 2})
    topology.bolt("2", Hold, topology.spout("1", Numbers, parallelism=3).shuffle())
    async with topology.run() as running:
        await until(1)
        assert [task.pending for task in of_tasks(running, "1")] == [2, 2, 2]


@pytest.mark.simulated_time
async def test_T20_nobody_waits_for_a_stream_that_never_speaks() -> None:
    """A bolt that also subscribes to a stream on which nothing is ever emitted gets what the other one brings."""
    topology, feeder, bolt = Topology("T20"), Feeder(), Note()
    lines, silent = topology.spout("1", given(feeder)), topology.spout("silent", Silent)
    topology.bolt("2", given(bolt), lines.shuffle(), silent.shuffle())
    async with topology.run():
        feeder.feed("a", 1)
        await settle()
        assert (bolt.seen, feeder.settled_at) == (["a"], {1: 0})
