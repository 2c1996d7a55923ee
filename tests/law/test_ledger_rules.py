"""The ledger: edges, roots, and when a tree has its verdict (law L1 to L6)."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterable
from functools import reduce
from itertools import islice
from operator import and_, or_
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet import FailureKind, Running, Topology, TupleFailed, TupleTimedOut
from stormlet.core.ids import BLOCK, IdSource
from stormlet.core.ledger import Ledger, OpenTree
from stormlet.core.outcomes import Failure
from stormlet.runtime.wire.outbox import Control
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
    xor,
)

FAILED = Failure(FailureKind.FAILED, "bolt", 1)
ALL_BITS = (1 << 64) - 1


def are_random_64_bits(ids: list[int]) -> bool:
    """Whether each of some hundred ids is another one, none is zero, and no bit is the same in all."""
    distinct = len(set(ids)) == len(ids) and 0 not in ids
    return distinct and reduce(or_, ids) == ALL_BITS and reduce(and_, ids) == 0


def two_replicas(**options: Any) -> tuple[Topology, Any, Puppets]:
    """A spout that the host feeds and two tasks that each get a copy of everything."""
    topology = Topology("replicas", **options)
    feed = topology.spout("feed")
    puppets = Puppets()
    topology.bolt("puppets", puppets, feed.all(), parallelism=2)
    return topology, feed, puppets


# L1.


@pytest.mark.simulated_time
async def test_L1_every_copy_has_an_edge_id_of_its_own() -> None:
    """Replicas and the copies of several subscriptions differ in their edges, and none is zero."""
    topology, feed, replicas = two_replicas()
    single = Puppets()
    topology.bolt("single", single, feed.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await running.emit(feed, "x")
        await settle()
    edges = [tup.edge for tup in (*replicas.got, *single.got)]
    assert len(set(edges)) == len(edges) == 3
    assert 0 not in edges


@pytest.mark.simulated_time
async def test_L1_a_copy_has_an_edge_for_each_of_its_roots() -> None:
    """Two replicas of an output that joins two trees carry four edges."""
    topology, joiner, copies = Topology("joined"), Puppets(), Puppets()
    feed = topology.spout("feed")
    joined = topology.bolt("joiner", joiner, feed.shuffle())
    topology.bolt("copies", copies, joined.all(), parallelism=2)
    async with topology.run(drain_timeout=0) as running:
        await running.emit(feed, 1)
        await running.emit(feed, 2)
        await settle()
        joiner[0].out.emit("joined", anchors=joiner.got)
        await settle()
    first, second = (tup.edges() for tup in copies.got)
    assert set(first) == set(second) == {root for tup in joiner.got for root in tup.roots}
    assert len({*first.values(), *second.values()} - {0}) == 4


@pytest.mark.simulated_time
async def test_L1_edges_are_random_64_bit_numbers() -> None:
    """Every bit of an edge id is used."""
    topology, feed, puppets = two_replicas()
    async with topology.run(drain_timeout=0) as running:
        for number in range(150):
            await running.emit(feed, number)
        await settle()
    assert are_random_64_bits([tup.edge for tup in puppets.got])


def test_L1_zero_is_never_an_id() -> None:
    """A zero that the generator draws is skipped, for a ledger would not see it."""

    class OftenZero(Random):
        def randbytes(self, n: int) -> bytes:
            return (bytes(8) + b"\x01" * 8) * (n // 16)

    assert 0 not in islice(IdSource(OftenZero()), 2 * BLOCK)


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.simulated_time
async def test_L1_a_tree_waits_for_every_replica(replicas: int) -> None:
    """It is open until the last of any number of replicas is acked, and complete then."""
    topology, puppets = Topology("all"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.all(), parallelism=replicas)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        for puppet in puppets.made:
            await settle()
            assert not tree.done
            puppet.ack_all()
        assert await tree == []


# L2.


@pytest.mark.simulated_time
async def test_L2_init_has_the_root_and_the_xor_of_the_edges() -> None:
    """The one message of a tracked emit says which edges it created, XORed, under the root of all copies."""
    topology, feed, puppets = two_replicas()
    async with topology.run(drain_timeout=0) as running:
        tap = Tap(running)
        await running.emit(feed, "x")
        await settle()
    ((_, control),) = tap.sent
    ((root, tree),) = control.inits.items()
    assert {tup.root for tup in puppets.got} == {root}
    assert not control.acks
    assert tree.checksum == xor(tup.edge for tup in puppets.got)


@pytest.mark.simulated_time
async def test_L2_init_names_the_spout_task() -> None:
    """Of two spouts that use the same message id, each is told the outcome of its own message."""
    topology, puppets = Topology("two"), Puppets()
    first, firsts = script(topology, "x", id="first")
    second, seconds = script(topology, "x", id="second")
    topology.bolt("puppets", puppets, firsts.shuffle(), seconds.shuffle())
    async with topology.run() as running:
        await settle()
        for tup in puppets.got:
            (puppets[0].out.ack if tup.component == "second" else puppets[0].out.fail)(tup)
        await running.finished()
    assert (first.acked, list(first.failed)) == ([], ["x"])
    assert (second.acked, list(second.failed)) == (["x"], [])


@pytest.mark.simulated_time
async def test_L2_every_tracked_emit_has_a_random_root() -> None:
    """Roots are random 64-bit numbers, another one for each message."""
    topology, feed, puppets = two_replicas()
    async with topology.run(drain_timeout=0) as running:
        for number in range(200):
            await running.emit(feed, number)
        await settle()
    assert are_random_64_bits([tup.root for tup in puppets[0].got])


@pytest.mark.simulated_time
async def test_L2_a_replay_has_a_root_of_its_own() -> None:
    """Late messages of the first attempt cannot touch the second."""
    topology, feed, puppets = two_replicas()
    async with topology.run(drain_timeout=0) as running:
        await running.emit(feed, "x", attempts=2)
        await settle()
        puppets[0].out.fail(puppets[0].got[0])
        await asyncio.sleep(1)
    first, second = puppets[0].got
    assert first.root != second.root


@pytest.mark.simulated_time
async def test_L2_an_ack_has_the_edge_and_those_anchored_to_it() -> None:
    """The value of an ack is the input's own edge XOR the edges of all that was anchored to it."""
    topology, middle, leaves = Topology("chain"), Puppets(), Puppets()
    feed = topology.spout("feed")
    outputs = topology.bolt("middle", middle, feed.shuffle())
    topology.bolt("leaves", leaves, outputs.all(), parallelism=2)
    async with topology.run(drain_timeout=0) as running:
        tap = Tap(running)
        await running.emit(feed, "x")
        await settle()
        (tup,) = middle.got
        own = tup.edge
        for number in range(3):
            middle[0].out.emit(number, anchors=tup)
        middle[0].out.ack(tup)
        await settle()
    assert tap.acks == [(tup.root, own ^ xor(leaf.edge for leaf in leaves.got))]


@pytest.mark.simulated_time
async def test_L2_messages_of_one_root_leave_as_one() -> None:
    """Fifty acks of one tree, given at one go, are one message with one value."""
    topology, leaves = Topology("merged"), Puppets()
    feed = topology.spout("feed")
    many = topology.bolt("many", lambda value: iter(range(50)), feed.shuffle())
    topology.bolt("leaves", leaves, many.shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        tap = Tap(running)
        edges = [tup.edge for tup in leaves.got]
        leaves.ack_all()
        await tree
    assert [control.acks for _, control in tap.sent] == [{root: xor(edges)} for root, _ in tap.acks]
    assert len(edges) == 50


# L3.


def delay_inits(running: Running, seconds: float) -> None:
    """Have every init arrive so much later than everything else."""

    def handle(post: Post, control: Control) -> None:
        if control.inits:
            asyncio.get_running_loop().call_later(seconds, post, Control(control.inits, {}, [], []))
        post(Control({}, control.acks, control.fails, control.resets))

    intercept(running, handle)


@pytest.mark.simulated_time
async def test_L3_acks_may_arrive_before_init() -> None:
    """A tree whose bolts are done has its verdict when its init arrives, no sooner and no later."""
    topology, feed, puppets = two_replicas()
    async with topology.run() as running:
        delay_inits(running, 5)
        tree = await running.emit(feed, "x")
        await settle()
        puppets.ack_all()
        await until(4.9)
        assert (tree.done, orphans(running)) == (False, 1)
        await tree
        assert (now(), orphans(running)) == (5, 0)


@pytest.mark.simulated_time
async def test_L3_a_fail_may_arrive_before_init() -> None:
    """There is no verdict before init is known, even if it is clear what it will be."""
    topology, feed, puppets = two_replicas()
    async with topology.run() as running:
        delay_inits(running, 5)
        tree = await running.emit(feed, "x")
        await settle()
        puppets[0].out.fail(puppets[0].got[0])
        await until(4.9)
        assert not tree.done
        with pytest.raises(TupleFailed):
            await tree
        assert now() == 5


Message = tuple[str, int]


def send(ledger: Ledger, messages: Iterable[Message], root: int = 7) -> None:
    """Give a ledger inits, acks and fails of one root."""
    for verb, value in messages:
        if verb == "init":
            ledger.init({root: OpenTree(checksum=value, spout=0, message_id="message")})
        elif verb == "ack":
            ledger.ack({root: value})
        else:
            ledger.fail(root, FAILED)


def verdicts(ledger: Ledger) -> list[str]:
    """Those that were given since the last call."""
    acked, failed = ledger.take_verdicts()
    return ["ACK"] * len(acked) + ["FAIL"] * len(failed)


WHOLE_TREE: list[Message] = [("init", 1 ^ 2), ("ack", 1 ^ 4 ^ 8), ("ack", 2), ("ack", 4), ("ack", 8)]


@given(st.permutations(WHOLE_TREE))
def test_L3_any_order_of_a_trees_messages_gives_ack(messages: list[Message]) -> None:
    """The last of its messages brings the verdict, whichever it is; each may be the first."""
    ledger = Ledger()
    send(ledger, messages[:-1])
    assert verdicts(ledger) == []
    assert len(ledger) + ledger.orphans == 1
    send(ledger, messages[-1:])
    assert verdicts(ledger) == ["ACK"]


@given(st.permutations([*WHOLE_TREE[:-1], ("fail", 0)]))
def test_L3_any_order_with_a_fail_gives_fail(messages: list[Message]) -> None:
    """The verdict is there as soon as both init and the fail are."""
    ledger = Ledger()
    known: set[str] = set()
    for message in messages:
        before = {"init", "fail"} <= known
        known.add(message[0])
        send(ledger, [message])
        assert verdicts(ledger) == ["FAIL"] * (not before and {"init", "fail"} <= known)


# L4.


@pytest.mark.simulated_time
async def test_L4_a_fail_is_told_at_once() -> None:
    """A failed tree does not wait for its other tuples, nor for the clock."""
    topology, feed, puppets = two_replicas()
    async with topology.run(drain_timeout=0) as running:
        tree = await running.emit(feed, "x")
        await until(3)
        puppets[1].out.fail(puppets[1].got[0])
        with pytest.raises(TupleFailed):
            await tree
        assert now() == 3


def test_L4_a_recorded_fail_beats_zero() -> None:
    """A tree of which init completes the checksum fails, if a fail came before."""
    ledger = Ledger()
    send(ledger, [("fail", 0), ("ack", 5), ("init", 5)])
    assert verdicts(ledger) == ["FAIL"]


def test_L4_zero_is_acked_by_init_itself() -> None:
    """If all acks came before, init brings the verdict."""
    ledger = Ledger()
    send(ledger, [("ack", 5), ("init", 5)])
    assert verdicts(ledger) == ["ACK"]


@pytest.mark.parametrize("verbs", ["ack ack", "ack fail", "fail ack", "fail fail"])
@pytest.mark.simulated_time
async def test_L4_there_is_exactly_one_verdict(verbs: str) -> None:
    """Whatever two replicas say, in whatever order, the spout is told once."""
    topology, puppets = Topology("once"), Puppets()
    spout, stream = script(topology, "x")
    topology.bolt("puppets", puppets, stream.all(), parallelism=2)
    async with topology.run() as running:
        for puppet, verb in zip(puppets.made, verbs.split(), strict=True):
            await settle()
            getattr(puppet.out, verb)(puppet.got[0])
        await running.finished()
        await until(100)
    assert [verb for _, verb, _ in spout.told] == ["fail" if "fail" in verbs else "ack"]


@given(st.lists(st.sampled_from([*WHOLE_TREE, ("fail", 0)]), max_size=12))
def test_L4_there_is_never_a_second_verdict(messages: list[Message]) -> None:
    """No sequence of messages with one init, however wrong, gives more than one."""
    ledger = Ledger()
    send(ledger, [("init", 3), *(each for each in messages if each[0] != "init")])
    for _ in range(3):
        ledger.rotate()
        ledger.expire(10, {})
    assert len(verdicts(ledger)) == 1


@pytest.mark.parametrize("verb", ["ack", "fail"])
@pytest.mark.simulated_time
async def test_L4_the_entry_goes_with_the_verdict(verb: str) -> None:
    """Of a settled tree nothing is left in the ledger."""
    topology, puppets = Topology("gone"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.shuffle())
    async with topology.run() as running:
        await running.emit(feed, "x")
        await settle()
        assert open_trees(running) == 1
        getattr(puppets[0].out, verb)(puppets.got[0])
        await settle()
        assert (open_trees(running), orphans(running)) == (0, 0)


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
    assert after["script"] == before["script"]
    assert (after["__acker"].acked, after["__acker"].failed, after["__acker"].pending) == (0, 1, 0)


def damage_acks(running: Running, times: int) -> None:
    """Have every ack arrive so many times."""

    def handle(post: Post, control: Control) -> None:
        for _ in range(times):
            post(Control({}, dict(control.acks), [], []))
        post(Control(control.inits, {}, control.fails, control.resets))

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
    return [*control.inits, *control.acks, *(root for root, _ in control.fails), *control.resets]


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
    before = len(pickle.dumps(ledger))
    send(ledger, [("ack", random.getrandbits(64)) for _ in range(5000)])
    assert abs(len(pickle.dumps(ledger)) - before) < 16
