"""Bolts that follow a script, and bolts that collect."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import InvalidConfiguration, InvalidTopology, Topology, Tuple
from stormlet.testing import (
    Ack,
    CollectingBolt,
    Completed,
    Delay,
    Fail,
    Feeder,
    Hold,
    Raise,
    ScriptedBolt,
    Simulation,
    complete,
    run_bolt,
)


def played(bolt: ScriptedBolt[Any], *values: Any, **options: Any) -> Completed:
    topology = Topology("scripted")
    topology.bolt("bolt", bolt, topology.spout("values").shuffle(), **options)
    return complete(topology, {"values": values}, max_attempts=2)


def test_every_step() -> None:
    """Ack with and without outputs, fail, raise, delay; and the default for what the script does not name."""
    error = LookupError("on purpose")
    steps = {
        "a": Ack(["x", "y"]),
        "b": Fail("no"),
        "c": Raise(error),
        "d": Delay(5.0, Fail("late")),
        "e": Delay(2.0),
    }
    result = run_bolt(ScriptedBolt(steps, default=Ack(["default"])), [*"abcdef"])
    a, b, c, d, e, f = result.inputs
    assert (a.emitted, f.emitted) == (["x", "y"], ["default"])
    assert [each.failure and each.failure.reason for each in (b, d)] == ["no", "late"]
    assert c.failure is not None
    assert c.failure.exception is error
    assert result.emissions[-1].at == 7.0
    assert e.acked


def test_one_step_for_each_time() -> None:
    """The first time, the second; the last step is for all later ones."""
    bolt = ScriptedBolt({"a": [Fail("first"), Ack()], "b": [Fail("first"), Fail("second")]})
    result = played(bolt, "a", "b", "a")
    assert [each.acked for each in result.outcomes] == [True, False, True]
    reasons = [failure.reason for failure in result.outcome("b").history]
    assert reasons == ["first", "second"]
    assert bolt.executed[:3] == ["a", "b", "a"]
    assert sorted(bolt.executed[3:]) == ["a", "b"]


def test_a_function_is_a_script() -> None:
    """For values that are no keys, or too many."""
    result = played(ScriptedBolt(lambda value: Fail() if value[0] > 2 else Ack()), [1], [2], [3])
    assert (result.acked, result.failed) == ([[1], [2]], [[3]])


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            lambda: ScriptedBolt({"a": 5}),
            "ScriptedBolt: for 'a' the script has 5, which is no step; steps are Ack",
        ),
        (
            lambda: ScriptedBolt({"a": [Ack(), Fail]}),
            "ScriptedBolt: for 'a' the script has <class .*>, which is no",
        ),
        (lambda: ScriptedBolt({"a": "ack"}), "ScriptedBolt: for 'a' the script has 'ack', which is no step"),
        (
            lambda: ScriptedBolt(5),
            "ScriptedBolt: a script is a dict from values to steps, or a function, not 5",
        ),
        (lambda: ScriptedBolt(default=5), "ScriptedBolt: default is 5, which is no step"),
        (lambda: Delay(1.0, 5), "Delay: then is 5, which is no step"),
    ],
)
def test_what_is_no_step_is_refused(made: Any, says: str) -> None:
    """Where it is written: at work it would hold the input, and say nothing."""
    with pytest.raises(InvalidConfiguration, match=f"^{says}"):
        made()


def test_a_function_that_returns_no_step() -> None:
    """Its input fails, and says why."""
    script: Any = {"a": Ack()}.get
    a, b = run_bolt(ScriptedBolt(script), ["a", "b"]).inputs
    assert a.acked
    assert b.failure is not None
    assert "for 'b' the function has returned None, which is no step" in str(b.failure.exception)


def test_a_permanent_failure() -> None:
    """It is not replayed."""
    assert played(ScriptedBolt({"a": Fail("never", permanent=True)}), "a").outcome("a").attempts == 1


def test_values_need_not_be_keys() -> None:
    """What cannot be looked up gets the default."""
    assert played(ScriptedBolt({"a": Fail()}), {"a": 1}, ["a"]).failed == []


@pytest.mark.simulated_time
async def test_what_is_held_is_settled_by_the_test(sim: Simulation) -> None:
    """Ack and fail by value, the one that is held longest first."""
    feeder, bolt = Feeder[str](), ScriptedBolt[str](default=Hold())
    topology = Topology("held")
    topology.bolt("bolt", bolt, topology.spout("values", feeder).shuffle())
    async with topology.run():
        for value in "aba":
            feeder.feed(value)
        await sim.settled()
        assert bolt.held == ["a", "b", "a"]
        bolt.fail("a", "by hand")
        bolt.ack("b")
        with pytest.raises(KeyError, match=r"'c' is not held; held are \['a'\]"):
            bolt.ack("c")
        bolt.ack("a")
        await sim.settled()
    assert {each.message_id: each.failure is None for each in feeder.outcomes} == {0: False, 1: True, 2: True}


def test_collecting() -> None:
    """Every input is kept, of all tasks and all streams, and acked."""
    seen = CollectingBolt[object]()
    topology = Topology("collecting")
    one, two = topology.spout("one", [1, 2]), topology.spout("two", ["a"])
    topology.bolt("seen", seen, one.shuffle(), two.shuffle(), parallelism=3)
    result = complete(topology)
    assert set(seen.values) == {1, 2, "a"}
    assert all(isinstance(tup, Tuple) for tup in seen.tuples)
    assert {tup.component for tup in seen.tuples} == {"one", "two"}
    assert result.failed == []


@pytest.mark.parametrize("made", [ScriptedBolt[str](), CollectingBolt[str]()])
def test_they_are_no_sources(made: Any) -> None:
    """As a spout's source they are refused with the words that any factory of bolts gets."""
    with pytest.raises(InvalidTopology):
        complete(_with_source(made))


def _with_source(source: Any) -> Topology:
    topology = Topology("wrong")
    topology.spout("wrong", source)
    return topology
