"""The page "Testing your topology": ``run_bolt``."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from stormlet import BasicBolt, Bolt, Collector, KeyedBolt, Tuple, Value
from stormlet.testing import Input, Simulation, run_bolt, run_bolt_async


class Repeats(BasicBolt[str, str]):
    """Emits each value several times."""

    def __init__(self, times: int = 2) -> None:
        self.times = times

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        for _ in range(self.times):
            out.emit(tup.value)


@pytest.mark.parametrize(
    ("bolt", "emitted"), [(str.upper, ["A"]), (Repeats, ["a", "a"]), (partial(Repeats, 3), ["a", "a", "a"])]
)
def test_whatever_a_topology_takes(bolt: Any, emitted: list[str]) -> None:
    """`run_bolt` runs one task of a bolt, whatever a topology takes for one: a function, a class, a factory."""
    assert run_bolt(bolt, ["a"]).emitted() == emitted


class Says(Bolt[str, str]):
    """Emits the name of each method, and holds what it is told to hold."""

    def __init__(self) -> None:
        self.held: list[Tuple[str]] = []

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.emit("execute", anchors=tup)
        if tup.value.startswith("hold"):
            self.held.append(tup)
        else:
            out.ack(tup)

    def tick(self, out: Collector[str]) -> None:
        out.emit("tick")

    def flush(self, out: Collector[str]) -> None:
        out.emit("flush")
        while self.held and self.held[-1].value != "hold for ever":
            out.ack(self.held.pop())

    def finish(self, out: Collector[str]) -> None:
        out.emit("finish")


def test_what_is_held() -> None:
    """`result.held` are inputs that the bolt neither acked nor failed. `flush` and `finish` are called after the last
    input and another `seconds` for ticks; `each.during` says which method has emitted.
    """
    result = run_bolt(Says, ["hold for ever", "hold", "a"], tick=10.0, seconds=15.0)
    assert (result.held, result.acked) == (["hold for ever"], ["hold", "a"])
    emitted = [(each.value, each.at) for each in result.emissions]
    assert emitted[:5] == [*[("execute", 0.0)] * 3, ("tick", 10.0), ("flush", 15.0)]
    assert [each.value for each in run_bolt(Says, ["a"], tick=10.0, seconds=15.0).emissions] == [
        "execute",
        "tick",
        "finish",
    ]
    assert all(each.during == each.value for each in result.emissions)


class Notes(BasicBolt[tuple[str, float], object]):
    """Emits what a tuple says of itself."""

    def execute(self, tup: Tuple[tuple[str, float]], out: Collector[object]) -> None:
        out.emit((tup.component, tup.stream, tup.origin, tup["customer"], tup["amount"]))


def test_what_an_input_says() -> None:
    """An `Input` says of its tuple what a test needs: component, stream, origin, and how long after the one before it
    comes; `schema=["customer", "amount"]` declares fields.
    """
    bill = ("ann", 4.0)
    given = [Input(bill), Input(bill, component="price", stream="vip", origin="desk 7", after=60.0)]
    result = run_bolt(Notes, given, schema=["customer", "amount"])
    assert result.emitted() == [("values", "default", None, *bill), ("price", "vip", "desk 7", *bill)]
    assert [each.at for each in result.emissions] == [0.0, 60.0]


@pytest.mark.simulated_time
async def test_in_a_coroutine(sim: Simulation) -> None:
    """In a coroutine, await `run_bolt_async`."""
    result = await run_bolt_async(str.upper, [Input("a", after=5.0)])
    assert (result.emitted(), sim.now) == (["A"], 5.0)


class Count(KeyedBolt[str, str, tuple[str, int]]):
    """Counts words; refuses one after it has counted it."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[tuple[str, int]]) -> None:
        self.total += 1
        if tup.value == "never":
            raise ValueError(tup.value)
        out.emit((self.key, self.total))


def test_a_bolt_with_state_gets_its_inputs_by_key() -> None:
    """One that fails leaves nothing behind, and is failed once."""
    result = run_bolt(Count, ["a", "b", "never", "a"])
    assert result.emitted() == [("a", 1), ("b", 1), ("a", 2)]
    assert result.failed == ["never"]


def test_the_key_is_a_field_or_a_function_of_the_value() -> None:
    """As for fields()."""
    by_letter = run_bolt(Count, ["apple", "ant"], key=lambda word: word[0])
    by_field = run_bolt(Count, [("a", 1), ("a", 2)], schema=["letter", "number"], key="letter")  # type: ignore[list-item]
    assert by_letter.emitted() == by_field.emitted() == [("a", 1), ("a", 2)]
