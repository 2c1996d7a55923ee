"""The first outcome wins, of an input and of a tree (law L15)."""

from __future__ import annotations

import pytest

from stormlet import (
    AlreadySettled,
    BasicBolt,
    Bolt,
    Collector,
    FailureKind,
    Topology,
    Tuple,
    TupleFailed,
    TupleTimedOut,
)
from tests.engines import Engine
from tests.law.puppets import AnyTuple, Puppet, Puppets, open_trees, orphans, script, settle, until

SETTLED = {"ack": "acked", "fail": "failed"}
SAYS = {"ack": "acks", "fail": "fails", "anchor": "anchors to", "anchor to two": "anchors to"}


def say(puppet: Puppet, verb: str, tup: AnyTuple) -> None:
    """Ack it, fail it, or emit something anchored to it."""
    if verb == "anchor":
        puppet.out.emit("output", anchors=tup)
    elif verb == "anchor to two":
        puppet.out.emit("output", anchors=[puppet.got[-1], tup])
    else:
        getattr(puppet.out, verb)(tup)


@pytest.mark.parametrize("second", SAYS)
@pytest.mark.parametrize("first", SETTLED)
@pytest.mark.simulated_time
async def test_L15_a_settled_input_is_settled(first: str, second: str) -> None:
    """Settling it again, or anchoring to it, raises there, names the tuple and both verbs, and leaves every
    tree as it was."""
    topology, puppets, downstream = Topology("settled"), Puppets(), Puppets()
    feed = topology.spout("feed")
    outputs = topology.bolt("puppets", puppets, feed.shuffle())
    topology.bolt("downstream", downstream, outputs.shuffle())
    async with topology.run() as running:
        tree, other = [await running.emit(feed, value) for value in ("x", "other")]
        await settle()
        say(puppets[0], first, puppets.of("x"))
        with pytest.raises(AlreadySettled) as caught:
            say(puppets[0], second, puppets.of("x"))
        await settle()
        assert "'x'" in str(caught.value)
        assert SAYS[second] in str(caught.value)
        assert SETTLED[first] in str(caught.value)
        assert (tree.done, tree.failure is None, other.done) == (True, first == "ack", False)
        puppets[0].out.ack(puppets.of("other"))
        assert await other == []
        assert (downstream.got, open_trees(running), orphans(running)) == ([], 0, 0)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_L15_a_basic_bolt_may_settle_its_input_itself() -> None:
    """What it acked or failed is not settled again on return, and doing it twice is its error."""

    class Own(BasicBolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            for verb in tup.value.split():
                getattr(out, verb)(tup)

    topology = Topology("own")
    feed = topology.spout("feed")
    topology.bolt("own", Own, feed.shuffle())
    async with topology.run() as running:
        assert await (await running.emit(feed, "ack")) == []
        assert await (await running.emit(feed, "ack fail")) == []
        for wish in ("fail", "fail ack"):
            with pytest.raises(TupleFailed):
                await (await running.emit(feed, wish))
        counts = running.statistics().components["own"]
        assert (counts.acked, counts.failed, counts.errors) == (2, 2, 2)


@pytest.mark.parametrize("second", ["ack", "fail", "anchor"])
@pytest.mark.parametrize("first", SETTLED)
@pytest.mark.simulated_time
async def test_L15_whatever_a_bolt_does_after_it_has_settled_an_input_raises_there(
    engine: Engine, first: str, second: str
) -> None:
    """The error names the tuple and both verbs, and the first outcome holds."""
    said: list[str] = []

    class Again(Bolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            getattr(out, first)(tup)
            try:
                out.emit("output", anchors=tup) if second == "anchor" else getattr(out, second)(tup)
            except AlreadySettled as error:
                said.append(str(error))

    topology = Topology("again", max_attempts=1)
    topology.bolt("again", Again, topology.spout("one", ["x"]).shuffle())
    ended = await engine.run_to_end(topology)
    (error,) = said
    assert all(part in error for part in ("'x'", SAYS[second], SETTLED[first]))
    assert ended.statistics().components["one"].acked == (first == "ack")
    assert len(ended.dead_letters) == (first == "fail")


@pytest.mark.simulated_time
async def test_L15_copies_are_settled_by_themselves() -> None:
    """Two tasks that each got a copy, and two copies that one task got, do not concern each other."""
    topology, puppets = Topology("copies"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.all(), feed.all(), parallelism=2)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        assert [len(puppet.got) for puppet in puppets.made] == [2, 2]
        puppets.ack_all()
        await tree


@pytest.mark.simulated_time
async def test_L15_the_first_outcome_of_a_tree_wins() -> None:
    """What replicas say after the first fail does not change the message's outcome."""
    topology, puppets = Topology("first"), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.all(), parallelism=3)
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        for puppet, reason in zip(puppets.made, ("first", "second", "third"), strict=True):
            puppet.out.fail(puppet.got[0], reason)
            await settle()
        with pytest.raises(TupleFailed, match="first"):
            await tree


@pytest.mark.parametrize("verb", ["ack", "fail", "anchor"])
@pytest.mark.simulated_time
async def test_L15_settling_an_input_whose_tree_has_timed_out_is_legal(verb: str) -> None:
    """The bolt cannot know it: nothing is raised, and the outcome stays TIMEOUT."""
    topology, puppets = Topology("timed out", message_timeout=10), Puppets()
    spout, stream = script(topology, "x")
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run() as running:
        await until(20)
        assert spout.failed["x"].kind is FailureKind.TIMEOUT
        say(puppets[0], verb, puppets.got[0])
        await until(30)
        assert open_trees(running) == 0
        assert running.statistics().components["puppets"].acked == (verb == "ack")
        if verb == "anchor":
            puppets.ack_all()
    assert [verb for _, verb, _ in spout.told] == ["fail"]


@pytest.mark.simulated_time
async def test_L15_one_input_may_be_settled_after_some_of_its_trees_timed_out() -> None:
    """The other trees of a joined tuple are acked by it all the same."""
    topology, joiner, copies = Topology("partly", message_timeout=10), Puppets(), Puppets()
    feed = topology.spout("feed")
    joined = topology.bolt("joiner", joiner, feed.shuffle())
    topology.bolt("copies", copies, joined.shuffle())
    async with topology.run() as running:
        early = await running.emit(feed, "early")
        await until(9)
        late = await running.emit(feed, "late")
        await settle()
        joiner[0].out.emit("joined", anchors=joiner.got)
        joiner.ack_all()
        with pytest.raises(TupleTimedOut):
            await early
        copies.ack_all()
        assert await late == []
