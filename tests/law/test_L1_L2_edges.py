"""Edges, and what the ackers learn of them (law L1, L2)."""

from __future__ import annotations

import asyncio
from functools import reduce
from itertools import islice
from operator import and_, or_
from random import Random

import pytest

from stormlet import BasicBolt, Collector, Reject, TaskContext, Topology, Tuple
from stormlet.core.ids import BLOCK, IdSource
from tests.engines import Engine
from tests.law.ledgers import ALL_BITS, two_replicas
from tests.law.puppets import Puppets, Tap, script, settle, xor


def are_random_64_bits(ids: list[int]) -> bool:
    """Whether each of some hundred ids is another one, none is zero, and no bit is the same in all."""
    distinct = len(set(ids)) == len(ids) and 0 not in ids
    return distinct and reduce(or_, ids) == ALL_BITS and reduce(and_, ids) == 0


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


@pytest.mark.parametrize("refusing", range(3))
@pytest.mark.simulated_time
async def test_L1_one_replica_that_fails_fails_the_message(engine: Engine, refusing: int) -> None:
    """Whichever of three it is; a message that all of them have acked is acked."""

    class Refuses(BasicBolt[str, str]):
        def prepare(self, context: TaskContext) -> None:
            self.refuses = context.task_index == refusing

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            if self.refuses and tup.value == "bad":
                raise Reject("refused")

    topology = Topology("replicas")
    topology.bolt("replicas", Refuses, topology.spout("words", ["good", "bad"]).all(), parallelism=3)
    ended = await engine.run_to_end(topology)
    counts = ended.statistics().components
    assert [each.value for each in ended.dead_letters] == ["bad"]
    assert (counts["words"].acked, counts["replicas"].acked, counts["replicas"].failed) == (1, 5, 1)


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
    (tree,) = control.inits
    assert {tup.root for tup in puppets.got} == {tree.root}
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
    assert [control.acks.xored() for _, control in tap.sent] == [{root: xor(edges)} for root, _ in tap.acks]
    assert len(edges) == 50
