"""A spout in the hands of a test."""

from __future__ import annotations

import pytest

from stormlet import FailureKind, InvalidTopology, Topology
from stormlet.testing import Ack, CollectingBolt, Fail, Feeder, Hold, ScriptedBolt, Simulation


def wired(feeder: Feeder[str], bolt: ScriptedBolt[str], **options: object) -> Topology:
    topology = Topology("fed", **options)
    topology.bolt("bolt", bolt, topology.spout("lines", feeder).shuffle())
    return topology


@pytest.mark.simulated_time
async def test_outcomes_are_noted(sim: Simulation) -> None:
    """Acks and fails in their order, with the message id, the reason and the moment."""
    feeder = Feeder[str]()
    bolt = ScriptedBolt({"held": Hold(), "bad": Fail("no good")})
    async with wired(feeder, bolt).run():
        ids = [feeder.feed(value) for value in ("held", "bad", "fine")]
        await sim.settled()
        assert (feeder.acked, feeder.failed, feeder.pending) == (["fine"], ["bad"], ["held"])
        await sim.advance(seconds=1)
        await sim.advance(seconds=2)
        bolt.ack("held")
        await sim.settled()
    assert (feeder.acked, feeder.pending) == (["fine", "held"], [])
    by_id = {each.message_id: each for each in feeder.outcomes}
    held, bad, fine = (by_id[id] for id in ids)
    assert bad.failure is not None
    assert (bad.failure.reason, bad.at, fine.failure, fine.at, held.at) == ("no good", 0.0, None, 0.0, 3.0)


@pytest.mark.simulated_time
async def test_what_is_fed_is_emitted_at_once(sim: Simulation) -> None:
    """An idle spout is woken: no time passes until the value has arrived."""
    feeder, bolt = Feeder[str](), ScriptedBolt[str]()
    async with wired(feeder, bolt).run():
        await sim.advance(minutes=10)
        feeder.feed("a")
        await sim.settled()
        assert (bolt.executed, sim.now) == (["a"], 600.0)


@pytest.mark.simulated_time
async def test_it_may_be_fed_before_anybody_asks(sim: Simulation) -> None:
    """Storm's FeederSpout: feeding without a reader is legal, of an inactive topology too."""
    feeder, bolt = Feeder[str](), ScriptedBolt[str]()
    feeder.feed("early")
    async with wired(feeder, bolt).run(active=False) as running:
        feeder.feed("still early")
        await sim.advance(seconds=5)
        assert bolt.executed == []
        running.activate()
        await sim.settled()
        assert bolt.executed == ["early", "still early"]


@pytest.mark.simulated_time
async def test_untracked_values_have_no_outcome(sim: Simulation) -> None:
    """Without a message id nobody is told (law L10)."""
    feeder, bolt = Feeder[str](), ScriptedBolt({"b": Fail()})
    async with wired(feeder, bolt).run():
        feeder.feed_untracked("a")
        feeder.feed_untracked("b")
        await sim.settled()
    assert (bolt.executed, feeder.outcomes, feeder.pending) == (["a", "b"], (), [])


@pytest.mark.simulated_time
async def test_own_message_ids(sim: Simulation) -> None:
    """Any object, used once more while it is pending, too."""
    feeder, bolt = Feeder[str](), ScriptedBolt[str]()
    async with wired(feeder, bolt).run():
        assert feeder.feed("a", message_id=["list"]) == ["list"]
        feeder.feed("b", message_id=["list"])
        await sim.settled()
    assert [(each.value, each.message_id) for each in feeder.outcomes] == [("a", ["list"]), ("b", ["list"])]


@pytest.mark.simulated_time
async def test_the_engine_replays_for_it_if_asked() -> None:
    """Then the feeder hears the final outcome alone."""
    feeder = Feeder[str](replays=True)
    bolt = ScriptedBolt({"a": [Fail(), Fail(), Ack()], "b": Fail()})
    feeder.feed("a")
    feeder.feed("b")
    feeder.end()
    async with wired(feeder, bolt, max_attempts=3).run() as running:
        await running.finished()
    assert (feeder.acked, feeder.failed) == (["a"], ["b"])
    assert bolt.executed.count("b") == 3


@pytest.mark.simulated_time
async def test_its_end_ends_the_topology() -> None:
    """All that was fed is emitted first; feeding more is refused."""
    feeder, bolt = Feeder[str](), ScriptedBolt[str]()
    async with wired(feeder, bolt).run() as running:
        feeder.feed("a")
        feeder.end()
        with pytest.raises(ValueError, match="'b' was fed to a feeder that has ended"):
            feeder.feed("b")
        await running.finished()
    assert bolt.executed == ["a"]


@pytest.mark.simulated_time
async def test_streams_and_origins(sim: Simulation) -> None:
    """It emits on every stream that its spout declares, and what its source says of a value travels along."""
    feeder = Feeder[object]()
    default, odd = CollectingBolt[object](), CollectingBolt[object]()
    topology = Topology("streams")
    lines = topology.spout("lines", feeder, outputs={"default": ["word"], "odd": None})
    topology.bolt("default", default, lines.shuffle())
    topology.bolt("odd", odd, lines.named("odd").shuffle())
    async with topology.run():
        feeder.feed(("a",), origin="here")
        feeder.feed(7, stream="odd")
        await sim.settled()
        assert [(tup["word"], tup.origin) for tup in default.tuples] == [("a", "here")]
        assert odd.values == [7]


@pytest.mark.simulated_time
async def test_at_the_end_what_is_pending_fails(sim: Simulation) -> None:
    """With SHUTDOWN, at the deadline of the drain."""
    feeder, bolt = Feeder[str](), ScriptedBolt[str](default=Hold())
    async with wired(feeder, bolt, drain_timeout=1.0).run():
        feeder.feed("a")
        await sim.settled()
    assert [each.failure and each.failure.kind for each in feeder.outcomes] == [FailureKind.SHUTDOWN]


def test_it_serves_one_task() -> None:
    """Several would share what it is fed."""
    with pytest.raises(InvalidTopology, match="parallelism=2"):
        Topology("two").spout("lines", Feeder[str](), parallelism=2)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_what_is_refused_is_not_pending(sim: Simulation) -> None:
    """A value that does not fit its stream was never emitted; the spout is restarted and goes on with the next one."""
    feeder, bolt = Feeder[object](), CollectingBolt[object]()
    topology = Topology("refused")
    topology.bolt("bolt", bolt, topology.spout("lines", feeder, outputs=["word"]).shuffle())
    async with topology.run() as running:
        feeder.feed(("too", "many"))
        feeder.feed(("fine",))
        await sim.advance(seconds=1)
        assert running.statistics().components["lines"].restarts == 1
        assert (feeder.pending, feeder.acked, feeder.failed) == ([], [("fine",)], [])
