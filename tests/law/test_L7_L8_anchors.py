"""Trees that an output belongs to (law L7, L8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Cell,
    Collector,
    EpochBolt,
    KeyedBolt,
    Running,
    Stream,
    To,
    Topology,
    Tree,
    Tuple,
    TupleFailed,
    Value,
)
from stormlet.testing import run_simulated
from tests.cast import Forward, ForwardUnanchored, ignore, refuse
from tests.cast import Join as JoinEvery
from tests.engines import Engine
from tests.law.puppets import AnyTuple, Puppets, open_trees, script, settle, xor


class Join:
    """A bolt that gets one tuple of each of some messages and emits to a second one; the test does both's
    work."""

    def __init__(self, *, copies: int = 1) -> None:
        self.topology = Topology("join")
        self.feed: Stream[Any] = self.topology.spout("feed")
        self.joiner, self.copies = Puppets(), Puppets()
        joined = self.topology.bolt("joiner", self.joiner, self.feed.shuffle())
        self.topology.bolt("copies", self.copies, joined.all(), parallelism=copies)

    async def begin(self, running: Running, *values: object) -> list[Tree[Any]]:
        """Have the joiner hold a tuple of each message."""
        trees = [await running.emit(self.feed, value) for value in values]
        await settle()
        return trees

    async def emit(self, anchors: AnyTuple | Sequence[AnyTuple], value: object = "joined") -> None:
        """Have the joiner emit, anchored like this."""
        self.joiner[0].out.emit(value, anchors=anchors)
        await settle()


class Passing(BasicBolt[Any, Any]):
    """Emits what it gets."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value)


class PassingLater(BasicBolt[Any, Any]):
    """The same after an await."""

    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        await asyncio.sleep(1)
        out.emit(tup.value)


def passed(value: str) -> str:
    return value


def passed_to(value: str) -> To[str]:
    return To(value)


def passed_on(value: str) -> Iterator[str]:
    yield value


async def passed_later(value: str) -> str:
    await asyncio.sleep(1)
    return value


async def passed_at_once(value: str) -> str:
    return value


async def passed_on_later(value: str) -> AsyncIterator[str]:
    await asyncio.sleep(1)
    yield value


class PassingKeys(KeyedBolt[Any, Any, Any]):
    """The same with a state for each value."""

    seen = Value(int, 0)

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self.seen += 1
        out.emit(tup.value)


class PassingEpochs(EpochBolt[Any, Any]):
    """The same, in epochs."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value)


def passed_by_cell(value: Any, seen: Cell[int]) -> Any:
    seen.value += 1
    return value


class PassingBatches(BatchBolt[Any, Any]):
    """The same, for several at once."""

    def execute_batch(self, tuples: Sequence[Tuple[Any]], out: Collector[Any]) -> None:
        for tup in tuples:
            out.emit(tup.value, anchors=tup)


KINDS: list[Any] = [
    *(passed, passed_to, passed_on, passed_later, passed_at_once, passed_on_later),
    *(Forward, Passing, PassingLater, PassingBatches),
]
"""Bolts of every kind that emit what they get."""

# L7.


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    ("kind", "concurrency"),
    [
        *((kind, calls) for kind in KINDS for calls in (1, 3)),
        *((kind, 1) for kind in (PassingKeys, PassingEpochs, passed_by_cell)),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
async def test_L7_every_kind_of_bolt_keeps_the_trees_of_a_joined_input(kind: Any, concurrency: int) -> None:
    """All trees are complete when what it has emitted for them is acked, and not before."""
    topology, joiner, last = Topology("join"), Puppets(), Puppets()
    feed: Stream[Any] = topology.spout("feed")
    joined = topology.bolt("joiner", joiner, feed.shuffle())
    state: Any = {"state": Value(int, 0)} if kind is passed_by_cell else {}
    passing = topology.bolt("passing", kind, joined.fields(), concurrency=concurrency, **state)
    topology.bolt("last", last, passing.shuffle())
    async with topology.run(message_timeout=None) as running:
        trees = [await running.emit(feed, value) for value in (1, 2, 3)]
        await settle()
        for value in ("once", "again"):
            joiner[0].out.emit(value, anchors=joiner.got)
        joiner.ack_all()
        await asyncio.sleep(5)
        assert [tup.value for tup in last.got] == ["once", "again"]
        assert [tree.done for tree in trees] == [False] * 3
        last.ack_all()
        await settle()
        assert [(tree.done, tree.failure) for tree in trees] == [(True, None)] * 3


@pytest.mark.simulated_time
async def test_L7_a_joined_output_keeps_all_its_trees_open() -> None:
    """Trees whose inputs are acked are complete when the output that joined them is acked, not before."""
    join = Join()
    async with join.topology.run() as running:
        trees = await join.begin(running, 1, 2, 3)
        await join.emit(join.joiner.got)
        join.joiner.ack_all()
        await settle()
        assert [tree.done for tree in trees] == [False] * 3
        join.copies.ack_all()
        await settle()
        assert [tree.done for tree in trees] == [True] * 3
    assert [tree.failure for tree in trees] == [None] * 3


@pytest.mark.simulated_time
async def test_L7_a_joined_output_fails_all_its_trees() -> None:
    """If it fails, all messages it came from fail, and no other."""
    join = Join()
    async with join.topology.run(drain_timeout=0) as running:
        *joined, other = await join.begin(running, 1, 2, 3)
        await join.emit(join.joiner.got[:2])
        join.copies[0].out.fail(join.copies.got[0])
        for tree in joined:
            with pytest.raises(TupleFailed, match="copies"):
                await tree
        assert not other.done


@pytest.mark.simulated_time
async def test_L7_there_is_a_fresh_edge_for_each_anchor_and_target() -> None:
    """Two replicas of an output with two anchors are four edges, each of them in its anchor and its copy."""
    join = Join(copies=2)
    async with join.topology.run(drain_timeout=0) as running:
        await join.begin(running, 1, 2)
        anchors = join.joiner.got
        before = [anchor.edge for anchor in anchors]
        await join.emit(anchors)
        edges = [tup.edges() for tup in join.copies.got]
    assert len({edge for each in edges for edge in each.values()}) == 4
    for anchor, own in zip(anchors, before, strict=True):
        assert anchor.edge == own ^ xor(each[anchor.root] for each in edges)


@pytest.mark.simulated_time
async def test_L7_a_shared_root_gets_the_xor_of_its_edges() -> None:
    """Where two anchors are of one tree, the output's edge is the XOR of the two that its anchors got."""
    topology, joiner, copies = Topology("diamond"), Puppets(), Puppets()
    feed = topology.spout("feed")
    halves = topology.bolt("halves", lambda value: iter(value), feed.shuffle())
    joined = topology.bolt("joiner", joiner, halves.shuffle())
    topology.bolt("copies", copies, joined.shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "ab")
        await settle()
        first, second = joiner.got
        before = first.edge, second.edge
        joiner[0].out.emit("joined", anchors=[first, second])
        added = first.edge ^ before[0], second.edge ^ before[1]
        await settle()
        assert copies.got[0].edges() == {first.root: added[0] ^ added[1]}
        assert 0 not in added
        joiner.ack_all()
        await settle()
        assert not tree.done
        copies.ack_all()
        await tree


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.simulated_time
async def test_L7_the_same_tuple_may_be_an_anchor_twice(times: int) -> None:
    """Its tree is complete when the output and the input are acked, as with one anchor."""
    join = Join()
    async with join.topology.run() as running:
        (tree,) = await join.begin(running, 1)
        await join.emit(join.joiner.got * times)
        join.joiner.ack_all()
        await settle()
        assert not tree.done
        join.copies.ack_all()
        await tree


@pytest.mark.simulated_time
async def test_L7_a_joined_output_has_the_origin_of_whichever_input_has_one() -> None:
    """The first that there is, also if the first input has none."""
    join = Join()
    async with join.topology.run() as running:
        await join.begin(running, 1)
        await running.emit(join.feed, 2, origin="row 2")
        await settle()
        await join.emit(join.joiner.got)
        (joined,) = join.copies.got
        assert joined.origin == "row 2"
        join.joiner.ack_all()
        join.copies.ack_all()


@pytest.mark.simulated_time
async def test_L7_the_output_is_delivered_once_per_target() -> None:
    """Five anchors of three trees are one delivery to each of two tasks."""
    join = Join(copies=2)
    async with join.topology.run(drain_timeout=0) as running:
        await join.begin(running, 1, 2, 3)
        await join.emit([*join.joiner.got, *join.joiner.got[:2]])
        assert [len(puppet.got) for puppet in join.copies.made] == [1, 1]
        assert running.statistics().components["joiner"].transferred == 2


@pytest.mark.simulated_time
async def test_L7_untracked_anchors_add_nothing() -> None:
    """An output anchored to tracked and untracked inputs belongs to the trees of the tracked ones."""
    topology, joiner, copies = Topology("mixed"), Puppets(), Puppets()
    spout, stream = script(topology, None, "tracked", None)
    joined = topology.bolt("joiner", joiner, stream.shuffle())
    topology.bolt("copies", copies, joined.shuffle())
    async with topology.run() as running:
        await settle()
        joiner[0].out.emit("joined", anchors=joiner.got)
        joiner.ack_all()
        await settle()
        assert not spout.told
        copies.ack_all()
        await running.finished()
    assert spout.acked == ["tracked"]


@pytest.mark.simulated_time
async def test_L7_what_happens_to_a_joined_output_happens_to_all_its_messages(engine: Engine) -> None:
    """Of three pairs one is refused: both of its messages fail, and no other."""
    topology = Topology("pairs")
    pairs = topology.bolt("pairs", JoinEvery, topology.spout("numbers", range(6)).shuffle())
    passed = topology.bolt("pass", Forward, pairs.shuffle())
    topology.bolt("refuse", lambda pair: refuse(pair) if 3 in pair else None, passed.shuffle())
    ended = await engine.run_to_end(topology)
    assert [each.value for each in ended.dead_letters] == [2, 3]
    assert ended.statistics().components["numbers"].acked == 4


@pytest.mark.simulated_time
async def test_L7_branches_that_meet_again_are_one_message(engine: Engine) -> None:
    """Two ways of another length lead to a bolt that joins what comes by both; all is acked."""
    topology = Topology("diamond")
    numbers = topology.spout("numbers", range(4))
    longer = topology.bolt("second", Forward, topology.bolt("first", Forward, numbers.shuffle()).shuffle())
    joined = topology.bolt("join", JoinEvery, numbers.global_(), longer.global_())
    topology.bolt("end", ignore, joined.shuffle())
    counts = (await engine.run_to_end(topology)).statistics().components
    assert (counts["numbers"].acked, counts["end"].executed) == (4, 4)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.simulated_time
async def test_L7_an_anchor_counts_once_however_often_it_is_named(engine: Engine, times: int) -> None:
    """Its output is delivered once, and its message acked."""

    class Repeats(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(tup.value, anchors=[tup] * times)
            out.ack(tup)

    topology = Topology("repeats")
    repeated = topology.bolt("repeats", Repeats, topology.spout("numbers", range(3)).shuffle())
    topology.bolt("end", ignore, repeated.shuffle())
    counts = (await engine.run_to_end(topology)).statistics().components
    assert (counts["numbers"].acked, counts["end"].executed) == (3, 3)


class Forest:
    """Messages, their tuples, and which of them are settled: a ledger by other means."""

    def __init__(self, node: Puppets, trees: Sequence[Tree[Any]]) -> None:
        self._node = node
        self._trees = trees
        self._messages_of: dict[object, set[int]] = {each: {each} for each in range(len(trees))}
        self._failed: set[int] = set()
        self._next = 1000

    def act(self, random: Random) -> None:
        """One task emits, acks or fails, anchored to or choosing some of what it holds."""
        puppet = random.choice([each for each in self._node.made if each.got])
        verb = random.choice(["emit", "emit", "ack"] if self._next < 1030 else ["ack"])
        if verb == "emit":
            anchors = random.choices(puppet.got, k=random.randint(0, 3))
            puppet.out.emit(self._next, anchors=anchors[0] if len(anchors) == 1 else anchors)
            self._messages_of[self._next] = {m for each in anchors for m in self._messages_of[each.value]}
            self._next += 1
            return
        tup = puppet.got.pop(random.randrange(len(puppet.got)))
        if random.random() < 0.1:
            puppet.out.fail(tup)
            self._failed |= {m for m in self._messages_of[tup.value] if not self._trees[m].done}
        else:
            puppet.out.ack(tup)

    def check(self) -> None:
        """Compare the trees with what they must be."""
        held = {m for tup in self._node.got for m in self._messages_of[tup.value]}
        for number, tree in enumerate(self._trees):
            assert tree.done == (number in self._failed or number not in held)
            assert (tree.failure is not None) == (number in self._failed)


async def grow(random: Random) -> None:
    """Grow trees that share branches, from tasks that each get what any of them emits; compare after each
    step."""
    topology, node = Topology("forest", message_timeout=None, ackers=random.randint(1, 2)), Puppets()
    feed = topology.spout("feed")
    nodes = topology.bolt("node", node, feed.shuffle(), parallelism=2)
    topology.connect(nodes, random.choice([nodes.all, nodes.shuffle])())
    async with topology.run() as running:
        forest = Forest(node, [await running.emit(feed, number) for number in range(3)])
        await settle()
        while node.got:
            forest.act(random)
            await settle()
            forest.check()
        assert open_trees(running) == 0


@settings(max_examples=60)
@given(st.integers(0, 1 << 32))
def test_L7_any_number_of_trees_may_share_any_branches(seed: int) -> None:
    """Whatever is anchored to whatever: a tree is acked exactly when its last tuple is, and failed exactly
    when one of its tuples is."""
    run_simulated(grow(Random(seed)))


# L8.


@pytest.mark.parametrize("logic", [ForwardUnanchored, Forward], ids=["unanchored", "of untracked inputs"])
@pytest.mark.simulated_time
async def test_L8_the_failure_of_an_output_that_nobody_tracks_fails_nobody(
    engine: Engine, logic: type[Bolt[Any, Any]]
) -> None:
    """It is counted where it happened, and never tried again; all messages are acked."""
    topology = Topology("loose")
    loose = topology.bolt("loose", ForwardUnanchored, topology.spout("numbers", range(3)).shuffle())
    topology.bolt("refuse", refuse, topology.bolt("then", logic, loose.shuffle()).shuffle())
    ended = await engine.run_to_end(topology)
    counts = ended.statistics().components
    assert (list(ended.dead_letters), counts["numbers"].acked, counts["refuse"].failed) == ([], 3, 3)


@pytest.mark.simulated_time
async def test_L8_an_unanchored_output_is_tracked_by_nobody() -> None:
    """It has no roots, and the tree of the input does not wait for it."""
    join = Join()
    async with join.topology.run(drain_timeout=0) as running:
        (tree,) = await join.begin(running, 1)
        await join.emit(())
        join.joiner.ack_all()
        assert await tree == []
        assert join.copies.got[0].roots == ()


@pytest.mark.simulated_time
async def test_L8_an_unanchored_output_fails_nobody() -> None:
    """Its failure is counted where it happened, and no message fails."""
    join = Join()
    async with join.topology.run() as running:
        (tree,) = await join.begin(running, 1)
        await join.emit(())
        join.copies[0].out.fail(join.copies.got[0])
        await settle()
        assert not tree.done
        join.joiner.ack_all()
        assert await tree == []
        assert running.statistics().components["copies"].failed == 1


@pytest.mark.parametrize("number_of_anchors", [1, 2])
@pytest.mark.simulated_time
async def test_L8_an_output_of_untracked_inputs_is_untracked(number_of_anchors: int) -> None:
    """Anchored to untracked tuples only, it is tracked by nobody and may fail."""
    topology, joiner, copies = Topology("untracked"), Puppets(), Puppets()
    spout, stream = script(topology, *[None] * number_of_anchors)
    joined = topology.bolt("joiner", joiner, stream.shuffle())
    topology.bolt("copies", copies, joined.shuffle())
    async with topology.run() as running:
        await settle()
        joiner[0].out.emit("joined", anchors=joiner.got)
        await settle()
        assert copies.got[0].roots == ()
        copies[0].out.fail(copies.got.pop())
        joiner.ack_all()
        await running.finished()
        assert open_trees(running) == 0
    assert spout.told == []
