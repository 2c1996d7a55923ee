"""Entries of the ledger: damage, shards and memory (law L5, L6)."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet import Running, Topology, TupleTimedOut
from stormlet.core.acks import Acks
from stormlet.core.ledger import Ledger
from stormlet.report.statistics import SUMMED, TaskStatistics
from stormlet.runtime.wire.outbox import Control
from tests.law.ledgers import ALL_BITS, delay_inits, send, two_replicas, verdicts
from tests.law.puppets import (
    Post,
    Puppets,
    Tap,
    ackers,
    intercept,
    leave_alone,
    now,
    open_trees,
    orphans,
    script,
    settle,
    until,
)

# L5.


@pytest.mark.parametrize("verb", ["ack", "fail"])
@pytest.mark.simulated_time
async def test_L5_a_message_for_a_settled_tree_changes_nothing(verb: str) -> None:
    """What a replica says after the tree has failed is heard by nobody and forgotten."""
    topology, puppets = Topology("late", message_timeout=10), Puppets()
    spout, stream = script(topology, "x")
    topology.bolt("puppets", puppets, stream.all(), parallelism=2)
    async with topology.run() as running:
        await settle()
        puppets[0].out.fail(puppets[0].got[0])
        await settle()
        before = running.statistics().components
        getattr(puppets[1].out, verb)(puppets[1].got[0])
        await until(100)
        after = running.statistics().components
    assert [told[1] for told in spout.told] == ["fail"]
    assert _counts(after["script"]) == _counts(before["script"])
    assert (after["__acker"].acked, after["__acker"].failed, after["__acker"].pending) == (0, 1, 0)


def _counts(statistics: TaskStatistics) -> dict[str, int]:
    return {name: value for name in SUMMED if isinstance(value := getattr(statistics, name), int)}


def damage_acks(running: Running, times: int) -> None:
    """Have every ack arrive so many times."""

    def handle(post: Post, control: Control) -> None:
        for _ in range(times):
            post(Control([], control.acks, [], []))
        post(Control(control.inits, Acks(), control.fails, control.resets))

    intercept(running, handle)


@pytest.mark.parametrize("times", [0, 2], ids=["lost", "duplicated"])
@pytest.mark.simulated_time
async def test_L5_a_damaged_ack_delays_the_tree_to_its_timeout(times: int) -> None:
    """If one ack is lost or duplicated, and all others arrive, the tree times out and is never acked."""
    topology, leaves = Topology("damaged", message_timeout=10), Puppets()
    feed = topology.spout("feed")
    numbers = topology.bolt("numbers", lambda value: iter(range(3)), feed.shuffle())
    topology.bolt("leaves", leaves, numbers.shuffle())
    async with topology.run() as running:
        damage_acks(running, times)
        tree = await running.emit(feed, "x")
        await settle()
        leave_alone(running)
        leaves.ack_all()
        with pytest.raises(TupleTimedOut):
            await tree
        assert 10 <= now() <= 15


@given(st.integers(0), st.integers(1, 8), st.data())
def test_L5_damage_never_acks_falsely(seed: int, tuples: int, data: st.DataObject) -> None:
    """Of a random tree's acks some are lost and some are duplicated: if one never came, it is not acked."""
    random = Random(seed)
    edges = [random.getrandbits(64) for _ in range(tuples)]
    values = list(edges)
    for child in range(1, tuples):
        values[random.randrange(child)] ^= edges[child]
    times = data.draw(st.lists(st.integers(0, 3), min_size=tuples, max_size=tuples))
    acks = [("ack", value) for value, count in zip(values, times, strict=True) for _ in range(count)]
    ledger = Ledger()
    send(ledger, [("init", edges[0]), *data.draw(st.permutations(acks))])
    assert verdicts(ledger) == [] or all(count >= 1 for count in times)


@pytest.mark.parametrize("seconds", [30, None])
@pytest.mark.simulated_time
async def test_L5_what_has_no_init_rotates_away(seconds: float | None) -> None:
    """An entry without init is forgotten after 30 to 45 s, by the timeout's clock or, without one, by its
    own."""
    topology, feed, puppets = two_replicas(message_timeout=seconds)
    async with topology.run() as running:
        await running.emit(feed, "x")
        await until(1)
        puppets[0].out.fail(puppets[0].got[0])
        await settle()
        puppets[1].ack_all()
        await until(30.9)
        assert orphans(running) == 1
        await until(46)
        assert orphans(running) == 0


@pytest.mark.simulated_time
async def test_L5_a_late_init_has_its_full_time() -> None:
    """An init that arrives when its orphan is about to be forgotten enters the newest bucket: the tree times
    out a full timeout later."""
    topology, feed, puppets = two_replicas(message_timeout=10)
    async with topology.run() as running:
        delay_inits(running, 14)
        tree = await running.emit(feed, "x")
        await settle()
        puppets[0].ack_all()
        with pytest.raises(TupleTimedOut):
            await tree
        assert 24 <= now() <= 29


# L6.


@pytest.mark.simulated_time
async def test_L6_the_shard_of_a_tree_is_its_root_modulo_the_ackers() -> None:
    """Every message of every tree, init, ack, fail or reset, goes to the acker that its root says."""
    topology, feed, puppets = two_replicas(ackers=3)
    async with topology.run(drain_timeout=0) as running:
        tap = Tap(running)
        for number in range(60):
            await running.emit(feed, number)
        await settle()
        for tup in puppets.got:
            out = puppets[0].out if tup in puppets[0].got else puppets[1].out
            out.reset_timeout(tup)
            (out.fail if tup.value % 5 == 0 else out.ack)(tup)
        await settle()
        shards = ackers(running)
        assert open_trees(running) == 0
    roots = [(shards.index(acker), root) for acker, control in tap.sent for root in roots_of(control)]
    assert all(shard == root % 3 for shard, root in roots)
    assert {shard for shard, _ in roots} == {0, 1, 2}


def roots_of(control: Control) -> list[int]:
    """All roots that a control message speaks of."""
    return [
        *(tree.root for tree in control.inits),
        *(root for root, _ in (*control.acks, *control.fails)),
        *control.resets,
    ]


@pytest.mark.simulated_time
async def test_L6_a_tree_is_one_entry_whatever_its_size() -> None:
    """A tree of two thousand open tuples is one entry at one acker, and stays one while it shrinks."""
    topology, leaves = Topology("big", ackers=2), Puppets()
    feed = topology.spout("feed")
    many = topology.bolt("many", lambda value: iter(range(2000)), feed.shuffle())
    topology.bolt("leaves", leaves, many.shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        assert len(leaves.got) == 2000
        assert (open_trees(running), orphans(running)) == (1, 0)
        for _ in range(20):
            leaves[0].out.ack(leaves[0].got.pop())
            await settle()
        assert (open_trees(running), orphans(running)) == (1, 0)
        leaves.ack_all()
        await tree


@pytest.mark.parametrize("known", [True, False], ids=["open", "without init"])
def test_L6_memory_per_tree_does_not_grow(known: bool) -> None:
    """After thousands of acks an entry is as large as before."""
    ledger, random = Ledger(), Random(1)
    send(ledger, [("init", ALL_BITS)] if known else [("ack", ALL_BITS)])
    acks = [("ack", random.getrandbits(64)) for _ in range(5000)]
    tracemalloc.start()
    try:
        send(ledger, acks)
        assert tracemalloc.get_traced_memory()[0] < 5_000
    finally:
        tracemalloc.stop()
