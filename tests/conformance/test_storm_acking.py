"""Storm's cases of acking, timeouts and lifecycle, A1 to A15, from its TopologyIntegrationTest, TestingTest,
SpoutExecutorTest and NimbusClojurePortTest.

The cases of A13 that need a ledger alone are in ``tests/core/test_ledger.py``, A14 in
``tests/core/test_rotating.py``.

Where Storm says "advance the cluster's time by 9 s" and looks, these tests know the moment: with a timeout of
10 s and three buckets the ackers rotate at 5, 10, 15 s …, and a tree expires at the third rotation after its
emit (law L12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormlet import (
    AlreadySettled,
    Bolt,
    Collector,
    FailureKind,
    InvalidTopology,
    Topology,
    TopologyStopping,
    Tuple,
)
from tests.cast import Ack, Feeder, Forward, Hold, Join, given
from tests.conformance.kit import AckEveryOther, Branch, Count, GlobalCount, collect, mocked, settle, until
from tests.engines import Engine

# A1: a whole topology.


@pytest.mark.simulated_time
async def test_A1_basic_topology(engine: Engine) -> None:
    """Four mocked words reach a counter by fields, a global counter, and a global counter of the counts."""
    topology = Topology("A1")
    words = topology.spout("1", mocked("nathan", "bob", "joey", "nathan"), parallelism=3)
    counts = topology.bolt("2", Count, words.fields(), parallelism=4)
    totals = topology.bolt("3", GlobalCount, words.global_())
    aggregates = topology.bolt("4", GlobalCount, counts.global_())
    seen = [collect(topology, stream) for stream in (words, counts, totals, aggregates)]
    await engine.run_to_end(topology)
    assert Counter(seen[0]) == {"nathan": 2, "bob": 1, "joey": 1}
    assert sorted(seen[1]) == [("bob", 1), ("joey", 1), ("nathan", 1), ("nathan", 2)]
    assert seen[2] == seen[3] == [1, 2, 3, 4]


# A3, A4, A9: timeouts.


def fed(bolt: Callable[[], Bolt[Any, Any]], **configuration: Any) -> tuple[Topology, Feeder]:
    """A feeder and one bolt; what is open at the end is given up at once."""
    topology = Topology("fed", drain_timeout=0, **configuration)
    feeder = Feeder()
    topology.bolt("2", bolt, topology.spout("1", given(feeder)).shuffle())
    return topology, feeder


def feed_abc(feeder: Feeder) -> None:
    for message_id, value in enumerate("abc", 1):
        feeder.feed(value, message_id)


@pytest.mark.simulated_time
async def test_A3_timeout() -> None:
    """Fed at 11 s, a and c are acked then; b has not failed 9 s later, and fails at the rotation of 25 s."""
    topology, feeder = fed(AckEveryOther, message_timeout=10)
    async with topology.run():
        await until(11)
        feed_abc(feeder)
        await until(20)
        assert (feeder.acked, feeder.failed) == ([1, 3], [])
        await until(32)
        assert feeder.settled_at == {1: 11, 3: 11, 2: 25}
        assert feeder.causes() == {2: FailureKind.TIMEOUT}


class ResetsFirst(Bolt[str, str]):
    """Keeps its first two inputs; resets the first one's timeout with the next three, and acks it with the
    fifth."""

    def __init__(self) -> None:
        self._number = 0

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self._number += 1
        if self._number == 1:
            self._first = tup
            return
        if self._number < 5:
            out.reset_timeout(self._first)
        else:
            out.ack(self._first)
        if self._number > 2:
            out.ack(tup)


@pytest.mark.simulated_time
async def test_A4_reset_timeout() -> None:
    """Reset at 9 and 18 s, the first message is acked at 20 s; the second, fed beside it, fails at 15 s."""
    topology, feeder = fed(ResetsFirst, message_timeout=10)
    async with topology.run():
        feeder.feed("a", 1)
        feeder.feed("b", 2)
        for moment, message_id, value in ((9, 3, "c"), (18, 4, "d"), (20, 5, "e")):
            await until(moment)
            feeder.feed(value, message_id)
        await settle()
        assert feeder.settled_at == {3: 9, 2: 15, 4: 18, 5: 20, 1: 20}
        assert feeder.causes() == {2: FailureKind.TIMEOUT}


@pytest.mark.simulated_time
async def test_A9_advance_cluster_time() -> None:
    """Fed as the topology starts, b has not failed after 9 s, and fails at the rotation of 15 s."""
    topology, feeder = fed(AckEveryOther, message_timeout=10)
    async with topology.run():
        feed_abc(feeder)
        await until(9)
        assert (feeder.acked, feeder.failed) == ([1, 3], [])
        await until(21)
        assert feeder.settled_at == {1: 0, 3: 0, 2: 15}


# A5, A6: trees of every shape.


@pytest.mark.simulated_time
async def test_A5_acking() -> None:
    """Aggregations of three across three spouts: a tree is acked when its last tuple's group is full."""
    topology = Topology("A5", drain_timeout=0)
    f1, f2, f3 = feeders = Feeder(), Feeder(), Feeder()
    branches = []
    for number, (feeder, n) in enumerate(zip(feeders, (2, 4, 1), strict=True), 1):
        numbers = topology.spout(str(number), given(feeder))
        branches.append(topology.bolt(str(number + 3), given(Branch(n)), numbers.shuffle()))
    groups = topology.bolt("7", given(Join(3)), *(branch.shuffle() for branch in branches))
    pairs = topology.bolt("8", given(Branch(2)), groups.shuffle())
    topology.bolt("9", Ack, pairs.shuffle())

    async def acks_after(*fed: Feeder) -> tuple[int, ...]:
        for feeder in fed:
            feeder.feed(1, 1)
            await settle()
        return tuple(feeder.take_acked() for feeder in feeders)

    async with topology.run():
        await until(11)
        assert await acks_after(f1) == (0, 0, 0)
        assert await acks_after(f2) == (1, 1, 0)
        assert await acks_after(f1) == (0, 0, 0)
        assert await acks_after(f1) == (1, 0, 0)
        assert await acks_after(f3) == (0, 0, 0)
        # From here on Storm feeds without looking.
        assert await acks_after(f2) == (1, 1, 1)
        assert await acks_after(f1, f2, f3) == (1, 1, 0)


@pytest.mark.simulated_time
async def test_A6_ack_branching() -> None:
    """Two branches of one tuple meet in groups of four: the first feed waits for the second, then both are
    acked."""
    topology = Topology("A6", drain_timeout=0)
    feeder = Feeder()
    numbers = topology.spout("1", given(feeder))
    branches = [topology.bolt(id, Forward, numbers.shuffle()) for id in "23"]
    topology.bolt("4", given(Join(4)), *(branch.shuffle() for branch in branches))
    async with topology.run():
        feeder.feed(1, 1)
        await settle()
        assert feeder.take_acked() == 0
        feeder.feed(2, 2)
        await settle()
        assert feeder.take_acked() == 2


# A15: lifecycle.


@pytest.mark.simulated_time
@pytest.mark.parametrize("wait", [20, 10])
async def test_A15_kill(wait: int) -> None:
    """Stopped with something in flight, a topology asks its spouts for nothing more, drains for the whole
    wait, and is gone at its end."""
    topology = Topology("A15", message_timeout=100, drain_timeout=wait)
    feeder = Feeder()
    topology.bolt("2", Hold, topology.spout("1", given(feeder)).shuffle())
    async with topology.run() as running:
        feeder.feed("a", 1)
        await until(5)
        running.stop()
        asked = len(feeder.asked)
        await until(5 + wait - 1)
        assert (feeder.outcomes, len(feeder.asked)) == ([], asked)
        await running.finished()
        assert feeder.settled_at == {1: 5 + wait}
        assert feeder.causes() == {1: FailureKind.SHUTDOWN}


@pytest.mark.simulated_time
async def test_A15_the_name_is_reusable() -> None:
    """Two runs of one topology may be up at once, and another follows when they have ended: names are not
    registered."""
    topology = Topology("A15")
    lines = topology.spout("1")
    seen = collect(topology, lines)
    async with topology.run() as first, topology.run() as second:
        for running in (first, second):
            await (await running.emit(lines, "a"))
    async with topology.run() as third:
        await (await third.emit(lines, "b"))
    assert seen == ["a", "a", "b"]


@pytest.mark.simulated_time
async def test_A15_a_killed_topology_takes_nothing() -> None:
    """After the end of a topology an emit is refused, as killing an unknown one is in Storm."""
    topology = Topology("A15")
    lines = topology.spout("1")
    topology.bolt("2", Ack, lines.shuffle())
    async with topology.run() as running:
        running.stop()
        with pytest.raises(TopologyStopping):
            await running.emit(lines, "a")
        running.stop()
    with pytest.raises(TopologyStopping):
        await running.emit(lines, "a")


# A11, A12: what the system does beside.


@pytest.mark.simulated_time
async def test_A11_one_rotation_a_tick_whatever_the_number_of_spout_tasks() -> None:
    """Five spout tasks share one acker, which rotates once at a time: their trees all fail at 15 s, not
    before."""
    topology = Topology("A11", message_timeout=10, drain_timeout=0)
    feeders: list[Feeder] = []

    def another() -> Feeder:
        feeders.append(Feeder())
        return feeders[-1]

    topology.bolt("2", Hold, topology.spout("1", another, parallelism=5).shuffle())
    async with topology.run():
        await until(1)
        for number, feeder in enumerate(feeders):
            feeder.feed("a", number)
        await until(40)
        assert [feeder.settled_at for feeder in feeders] == [{number: 15} for number in range(5)]


def test_A12_there_are_no_system_streams() -> None:
    """A system stream cannot be subscribed to: the error names the streams that there are."""
    words = Topology("A12").spout("1", ["a"])
    with pytest.raises(InvalidTopology, match="'1' declares no stream '__system', only 'default'"):
        words.named("__system")


# A13: the acker's state machine.


@pytest.mark.simulated_time
async def test_A13_a_bolt_cannot_ack_twice() -> None:
    """The second ack raises where it is made, and the tree is acked all the same (Storm: it times out)."""
    caught: list[AlreadySettled] = []

    class Twice(Bolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            out.ack(tup)
            with pytest.raises(AlreadySettled) as error:
                out.ack(tup)
            caught.append(error.value)

    topology, feeder = fed(Twice)
    async with topology.run():
        feeder.feed("a", 1)
        await settle()
        assert feeder.outcomes == [("ack", 1)]
    assert str(caught[0]).startswith("2[0] acks <Tuple 'a' from '1' (task 2)")
    assert str(caught[0]).endswith("which it acked before")
