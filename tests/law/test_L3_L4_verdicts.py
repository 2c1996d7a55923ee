"""Messages in any order, and the one verdict of a tree (law L3, L4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet import Topology, TupleFailed
from stormlet.core.ledger import Ledger
from tests.law.ledgers import Message, delay_inits, send, two_replicas, verdicts
from tests.law.puppets import Puppets, now, open_trees, orphans, script, settle, until

# L3.


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
