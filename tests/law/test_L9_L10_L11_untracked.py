"""Emits that nobody tracks, and those that reach nobody (law L9 to L11)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stormlet import InvalidTopology, NotTracked, To, Topology
from tests.cast import Counting, Forget, ignore, raise_value_error
from tests.engines import Engine
from tests.helpers import run_to_end
from tests.law.puppets import Puppets, open_trees, orphans, script, settle, until

# L9.


@pytest.mark.parametrize("logic", [ignore, raise_value_error, Puppets()], ids=["acks", "fails", "holds"])
@pytest.mark.simulated_time
async def test_L9_without_ackers_tracked_emits_count_as_acked(logic: Callable[..., Any]) -> None:
    """Whatever bolts do, every message is acked at once."""
    topology = Topology("unacked", ackers=0)
    spout, stream = script(topology, "a", "b")
    topology.bolt("bolt", logic, stream.shuffle())
    running = await run_to_end(topology)
    assert spout.told == [(0, "ack", "a"), (0, "ack", "b")]
    counts = running.statistics().components["script"]
    assert (counts.acked, counts.failed, counts.pending) == (2, 0, 0)


@pytest.mark.parametrize("verb", ["ack", "fail", "reset_timeout"])
@pytest.mark.simulated_time
async def test_L9_without_ackers_what_bolts_say_is_no_op(verb: str) -> None:
    """Acks, fails and resets are accepted, of joined outputs too, and change nothing."""
    topology, first, second = Topology("unacked", ackers=0), Puppets(), Puppets()
    spout, stream = script(topology, "a", "b")
    outputs = topology.bolt("first", first, stream.shuffle())
    topology.bolt("second", second, outputs.shuffle())
    async with topology.run() as running:
        await settle()
        first[0].out.emit("joined", anchors=first.got)
        await settle()
        for puppet in (first[0], second[0]):
            getattr(puppet.out, verb)(puppet.got[0])
        await running.finished()
    assert spout.acked == ["a", "b"]
    assert second.got[0].roots == ()


@pytest.mark.simulated_time
async def test_L9_without_ackers_a_warning_is_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """It names the topology and the setting."""
    topology = Topology("unacked", ackers=0)
    topology.bolt("bolt", ignore, topology.spout("feed").shuffle())
    async with topology.run():
        (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "'unacked'" in record.getMessage()
    assert "ackers=0" in record.getMessage()


@pytest.mark.simulated_time
async def test_L9_without_ackers_no_tree_can_be_awaited() -> None:
    """Awaiting raises NotTracked, before and after the message was processed."""
    topology = Topology("unacked", ackers=0)
    feed = topology.spout("feed")
    topology.bolt("bolt", ignore, feed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        for _ in range(2):
            with pytest.raises(NotTracked, match="ackers"):
                await tree
            await settle()


class Checkpointing(Counting):
    """A source that remembers what was acked."""

    needs_acks = True


class Writing(Forget):
    """A sink that acks what it has written."""

    needs_acks = True


@pytest.mark.parametrize(("spout", "bolt"), [(Checkpointing, Forget), (Counting, Writing)])
@pytest.mark.simulated_time
async def test_L9_without_ackers_what_lives_by_acks_refuses_to_start(
    spout: type[Counting], bolt: type[Forget]
) -> None:
    """Every message would count as acked before it is done; with ackers both start."""
    topology = Topology("acks", drain_timeout=0)
    topology.bolt("bolt", bolt, topology.spout("spout", spout).shuffle())
    with pytest.raises(InvalidTopology, match="lives by acks and cannot run with ackers=0; set ackers to 1"):
        async with topology.run(ackers=0):
            pytest.fail("it started")
    async with topology.run(ackers=1) as running:
        assert running.health().ready


# L10.


@pytest.mark.parametrize("verb", ["ack", "fail", "nothing"])
@pytest.mark.simulated_time
async def test_L10_an_emit_without_message_id_is_untracked(verb: str) -> None:
    """The spout hears nothing of it, whatever the bolt does, and its tuple has no root."""
    topology, puppets = Topology("untracked", message_timeout=10), Puppets()
    spout, stream = script(topology, None)
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await settle()
        assert puppets.got[0].roots == ()
        getattr(puppets[0].out, verb, ignore)(puppets.got[0])
        await until(100)
        assert (open_trees(running), orphans(running)) == (0, 0)
    assert spout.told == []


@pytest.mark.simulated_time
async def test_L10_an_emit_without_message_id_is_never_pending() -> None:
    """A spout may have any number of them under way, and statistics count none as pending."""
    topology, puppets = Topology("untracked"), Puppets()
    spout, stream = script(topology, *[None] * 10, "tracked", max_spout_pending=1)
    topology.bolt("puppets", puppets, stream.shuffle())
    async with topology.run(drain_timeout=0) as running:
        await settle()
        assert len(puppets.got) == 11
        assert spout.out.pending == running.statistics().components["script"].pending == 1


@pytest.mark.parametrize("message_id", [0, "", False, ()])
@pytest.mark.simulated_time
async def test_L10_only_none_is_no_message_id(message_id: object) -> None:
    """Ids that count as false are ids."""
    topology = Topology("tracked")
    spout, stream = script(topology, message_id)
    topology.bolt("bolt", ignore, stream.shuffle())
    await run_to_end(topology)
    assert spout.acked == [message_id]


# L11.


class Nobody:
    """A custom grouping that sends everything to no task."""

    def prepare(self, targets: Sequence[int]) -> None:
        pass

    def choose(self, value: object) -> Sequence[int]:
        return ()


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.simulated_time
async def test_L11_a_tracked_emit_that_reaches_no_task_is_acked(subscribed: bool) -> None:
    """It is acked at once, whether nobody subscribes or the grouping chooses nobody, and no tree is open."""
    topology = Topology("nobody")
    spout, stream = script(topology, "x")
    if subscribed:
        topology.bolt("bolt", ignore, stream.custom(Nobody()))
    running = await run_to_end(topology)
    assert spout.told == [(0, "ack", "x")]
    assert spout.reached == [()]
    assert running.statistics().components["__acker"].executed == 0


@pytest.mark.parametrize("subscribed", [False, True])
@pytest.mark.simulated_time
async def test_L11_what_reaches_no_task_from_a_source_is_acked(engine: Engine, subscribed: bool) -> None:
    """Though another bolt gets what is emitted on another stream."""
    topology = Topology("nobody")
    stream = topology.spout(
        "values", [To("x"), To("y", stream="other")], outputs={"default": None, "other": None}
    )
    topology.bolt("bolt", ignore, stream.named("other").shuffle())
    if subscribed:
        topology.bolt("nobody", ignore, stream.custom(Nobody()))
    ended = await engine.run_to_end(topology)
    assert (ended.statistics().components["values"].acked, list(ended.dead_letters)) == (2, [])


@pytest.mark.simulated_time
async def test_L11_a_hosts_message_that_reaches_no_task_is_acked() -> None:
    """Awaiting its tree returns."""
    topology = Topology("nobody")
    feed = topology.spout("feed")
    async with topology.run() as running:
        assert await (await running.emit(feed, "x")) == []
