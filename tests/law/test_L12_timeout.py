"""The message timeout (law L12)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormlet import Running, Stream, Topology, Tree, TupleTimedOut
from stormlet.core.acks import Acks
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.runtime.wire.outbox import Control
from stormlet.testing import run_simulated
from tests.law.puppets import Puppets, ackers, now, open_trees, script, settle, until

HOURS = 3600.0


def held(**options: Any) -> tuple[Topology, Stream[Any], Puppets]:
    """A topology whose bolt holds everything."""
    topology = Topology("held", **options)
    feed = topology.spout("feed")
    puppets = Puppets()
    topology.bolt("puppets", puppets, feed.shuffle())
    return topology, feed, puppets


async def lifetime(running: Running, feed: Stream[Any]) -> float:
    """How long a message that is emitted now lives."""
    began = now()
    tree = await running.emit(feed, "x")
    with pytest.raises(TupleTimedOut):
        await tree
    return now() - began


# How soon and how late.


@settings(max_examples=60)
@given(
    timeout=st.floats(0.01, 1000),
    buckets=st.integers(2, 9),
    at=st.floats(0, 3, exclude_min=True),
)
def test_L12_a_tree_lives_for_the_timeout_and_a_little_longer(
    timeout: float, buckets: int, at: float
) -> None:
    """Emitted at any moment, it fails after T at the earliest and T·n/(n-1) at the latest."""

    async def live() -> float:
        topology, feed, _ = held(message_timeout=timeout, timeout_buckets=buckets)
        async with topology.run(drain_timeout=0) as running:
            await asyncio.sleep(at * timeout)
            return await lifetime(running, feed)

    tiny = 1e-9 * timeout * (1 + at)
    assert timeout - tiny <= run_simulated(live()) <= timeout * buckets / (buckets - 1) + tiny


@pytest.mark.parametrize("buckets", [2, 3, 5])
@pytest.mark.parametrize("late", [False, True], ids=["just before", "just after"])
@pytest.mark.simulated_time
async def test_L12_the_bounds_are_exact(buckets: int, late: bool) -> None:
    """Emitted just before a rotation a tree lives for T, emitted just after one for T·n/(n-1)."""
    topology, feed, _ = held(message_timeout=12, timeout_buckets=buckets)
    async with topology.run(drain_timeout=0) as running:
        moment = 12 / (buckets - 1)
        await until(moment + (1e-6 if late else -1e-6))
        lived = await lifetime(running, feed)
    assert lived == pytest.approx(12 * buckets / (buckets - 1) if late else 12)


@pytest.mark.simulated_time
async def test_L12_the_defaults_are_30_seconds_and_3_buckets() -> None:
    """Without any setting a tree lives for 30 to 45 s."""
    topology, feed, _ = held()
    async with topology.run(drain_timeout=0) as running:
        await until(14.999)
        first = await lifetime(running, feed)
        await until(60.001)
        second = await lifetime(running, feed)
    assert (first, second) == (pytest.approx(30, abs=0.01), pytest.approx(45, abs=0.01))


@pytest.mark.simulated_time
async def test_L12_none_is_off() -> None:
    """Without a timeout a tree may take days."""
    topology, feed, puppets = held(message_timeout=None)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await until(100 * HOURS)
        assert not tree.done
        puppets.ack_all()
        assert await tree == []


@pytest.mark.simulated_time
async def test_L12_the_time_is_measured_from_emit() -> None:
    """Time in a queue counts: what has waited for eight seconds is executed for two to seven, and then times
    out."""

    async def slow(value: object) -> None:
        await asyncio.sleep(8 if value == "first" else 1000)

    topology = Topology("slow", message_timeout=10, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("slow", slow, feed.shuffle())
    async with topology.run() as running:
        await running.emit(feed, "first")
        await settle()
        assert 10 <= await lifetime(running, feed) <= 15


@pytest.mark.simulated_time
async def test_L12_a_replay_has_a_time_of_its_own() -> None:
    """Each attempt times out by itself, measured from its own emit."""
    topology, puppets = Topology("replay", message_timeout=10, replay_delay=1.0), Puppets()
    topology.bolt("puppets", puppets, topology.spout("once", ["x"]).shuffle())
    async with topology.run(drain_timeout=0):
        await until(60)
    first, second, third, *_ = puppets[0].times
    assert 11 <= second - first <= 16.25
    assert 12 <= third - second <= 17.5


@pytest.mark.simulated_time
async def test_L12_every_acker_rotates() -> None:
    """Messages time out on whatever shard they are."""
    topology, feed, _ = held(message_timeout=10, ackers=4)
    async with topology.run(drain_timeout=0) as running:
        trees = [await running.emit(feed, number) for number in range(40)]
        await settle()
        assert all(len(acker.ledger) for acker in ackers(running))
        await until(9.9)
        assert open_trees(running) == 40
        await until(15.1)
        assert all(tree.done for tree in trees)


# Rotations and messages.


@pytest.mark.simulated_time
async def test_L12_a_rotation_comes_after_the_messages_before_it() -> None:
    """An ack that is in the acker's queue when the tree is due still acks it."""
    topology, feed, puppets = held()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        puppets.ack_all()
        await asyncio.sleep(0)
        for _ in range(3):
            ackers(running)[0].rotate_soon()
        assert await tree == []


@pytest.mark.simulated_time
async def test_L12_a_rotation_waits_in_the_queue_of_an_acker_that_is_awake() -> None:
    """One that sleeps applies a message at once; one that was woken has it in its queue, and rotates after it."""
    topology, feed, _ = held()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        acker = ackers(running)[0]
        ((root, pending),) = acker.ledger.oldest()
        acker.rotate_soon()
        acker.post(Control([], Acks([(root, pending.checksum)]), [], []))
        for _ in range(3):
            acker.rotate_soon()
        assert await tree == []


@pytest.mark.simulated_time
async def test_L12_the_end_comes_after_the_messages_before_it() -> None:
    """An ack that is in the acker's queue when the run ends still acks its tree."""
    topology, feed, _ = held()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        acker = ackers(running)[0]
        ((root, pending),) = acker.ledger.oldest()
        acker.rotate_soon()
        acker.post(Control([], Acks([(root, pending.checksum)]), [], []))
        acker.fail_all(Failure(FailureKind.SHUTDOWN))
        assert await tree == []


@pytest.mark.simulated_time
async def test_L12_without_timeouts_a_rotation_fails_no_tree() -> None:
    """It is for orphans alone (L5)."""
    topology, feed, puppets = held(message_timeout=None)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        for _ in range(5):
            ackers(running)[0].rotate_soon()
        await settle()
        puppets.ack_all()
        assert await tree == []


@pytest.mark.simulated_time
async def test_L12_an_ack_after_the_rotation_is_too_late() -> None:
    """One that arrives behind the rotation does not."""
    topology, feed, puppets = held()
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        for _ in range(3):
            ackers(running)[0].rotate_soon()
        puppets.ack_all()
        with pytest.raises(TupleTimedOut):
            await tree


@pytest.mark.simulated_time
async def test_L12_a_large_expiry_is_spread_and_counted() -> None:
    """Two thousand trees that time out at once do not hold the loop: others run in between, and what came
    later than its rotation is counted. No simulated time passes."""
    topology, feed, _ = held(message_timeout=10, max_spout_pending=2000)
    async with topology.run(drain_timeout=0) as running:
        for number in range(2000):
            await running.emit(feed, number)
        await until(15)
        failed = [0]
        while failed[-1] < 2000 and len(failed) < 1000:
            failed.append(running.statistics().components["__acker"].failed)
            await asyncio.sleep(0)
        late = running.statistics().components["__acker"].expired_late
        assert now() == 15
    assert failed[-1] == 2000
    assert max(after - before for before, after in pairwise(failed)) < 1000
    assert 1000 < late <= 2000


@pytest.mark.simulated_time
async def test_L12_a_large_expiry_is_not_put_off_by_messages() -> None:
    """While an acker gets more messages at every turn than it can apply, a large expiry goes on."""
    topology, feed, _ = held(message_timeout=10, max_spout_pending=2000)
    async with topology.run(drain_timeout=0) as running:
        for number in range(2000):
            await running.emit(feed, number)
        await until(14.999)
        (acker,) = ackers(running)
        for _ in range(3):
            acker.rotate_soon()
        for turn in range(100):
            acker.post(Control([], Acks((100 * turn + number, 1) for number in range(100)), [], []))
            await asyncio.sleep(0)
        assert acker.statistics().failed == 2000


@pytest.mark.simulated_time
async def test_L12_a_small_expiry_is_not_late() -> None:
    """Trees that all fail in the slice of their rotation are not counted."""
    topology, feed, _ = held(message_timeout=10)
    async with topology.run(drain_timeout=0) as running:
        for number in range(100):
            await running.emit(feed, number)
        await until(16)
        statistics = running.statistics().components["__acker"]
    assert (statistics.failed, statistics.expired_late) == (100, 0)


@pytest.mark.simulated_time
async def test_L12_trees_that_expire_together_fail_oldest_first() -> None:
    """Their dead letters are in the order of the emits, however many they are."""
    letters: list[int] = []
    topology = Topology("order", message_timeout=10, max_spout_pending=3000, max_attempts=1)
    topology.bolt("puppets", Puppets(), topology.spout("numbers", range(3000)).shuffle())
    async with topology.run(drain_timeout=0, dead_letters=lambda letter: letters.append(letter.value)):
        await until(16)
        assert letters == list(range(3000))


# reset_timeout and activity.


@pytest.mark.parametrize("at", [0.1, 4.9, 5.1, 9.9])
@pytest.mark.simulated_time
async def test_L12_reset_timeout_gives_the_full_time_again(at: float) -> None:
    """Whenever it is called, the tree lives for T to T·n/(n-1) from then on."""
    topology, feed, puppets = held(message_timeout=10)
    async with topology.run(drain_timeout=0) as running:
        tree = await running.emit(feed, "x")
        await until(at)
        puppets[0].out.reset_timeout(puppets.got[0])
        with pytest.raises(TupleTimedOut):
            await tree
        assert at + 10 <= now() <= at + 15


@pytest.mark.simulated_time
async def test_L12_reset_timeout_may_be_called_for_ever() -> None:
    """A tree that is reset often enough never times out, and can still be acked."""
    topology, feed, puppets = held(message_timeout=10)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        for _ in range(50):
            await asyncio.sleep(9)
            puppets[0].out.reset_timeout(puppets.got[0])
        assert not tree.done
        puppets.ack_all()
        assert await tree == []


@pytest.mark.simulated_time
async def test_L12_reset_timeout_is_for_all_trees_of_the_tuple() -> None:
    """A joined output resets every tree that it belongs to, and no other."""
    topology, feed, joiner = held(message_timeout=10)
    copies = Puppets()
    topology.bolt("copies", copies, topology.bolt("joiner", joiner, feed.shuffle()).shuffle())
    async with topology.run(drain_timeout=0) as running:
        trees = [await running.emit(feed, number) for number in range(3)]
        await settle()
        joiner[1].out.emit("joined", anchors=[tup for tup in joiner[1].got if tup.value < 2])
        await until(9.9)
        copies[0].out.reset_timeout(copies.got[0])
        await until(16)
        assert [tree.done for tree in trees] == [False, False, True]


@pytest.mark.simulated_time
async def test_L12_reset_timeout_of_a_settled_tree_does_nothing() -> None:
    """A tree that has timed out or is acked stays so, and leaves nothing at the acker."""
    topology, puppets = Topology("late", message_timeout=10), Puppets()
    spout, stream = script(topology, "x")
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await until(20)
        puppets[0].out.reset_timeout(puppets.got[0])
        await until(100)
        assert open_trees(running) == 0
    assert [verb for _, verb, _ in spout.told] == ["fail"]


async def ack_one_of_two(at: float, **options: Any) -> float:
    """When a tree times out of which one of two tuples is acked at this moment."""
    topology, feed, puppets = held(message_timeout=10, **options)
    topology.bolt("other", Puppets(), feed.shuffle())
    async with topology.run(drain_timeout=0) as running:
        tree: Tree[Any] = await running.emit(feed, "x")
        await until(at)
        puppets.ack_all()
        with pytest.raises(TupleTimedOut):
            await tree
        return now()


@pytest.mark.parametrize("at", [0.1, 4.9, 5.1, 9.9])
@pytest.mark.simulated_time
async def test_L12_with_activity_every_update_gives_the_full_time_again(at: float) -> None:
    """With ``timeout_restarts_on="activity"`` an ack is as good as a reset."""
    assert at + 10 <= await ack_one_of_two(at, timeout_restarts_on="activity") <= at + 15


@pytest.mark.simulated_time
async def test_L12_by_default_updates_do_not_restart_the_timeout() -> None:
    """An ack leaves the tree's end where it was."""
    assert 10 <= await ack_one_of_two(9.9) <= 15
