"""Single bolts on given values."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Cell,
    Collector,
    FailureKind,
    InvalidTopology,
    Reject,
    TaskContext,
    To,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.testing import Input, Leaked, run_bolt, run_bolt_async


def upper(value: str) -> str | None:
    return value.upper() or None


def words(value: str) -> Iterator[str | To[object]]:
    yield from value.split()
    yield To(len(value), stream="length")


async def looked_up(value: str) -> str:
    await asyncio.sleep(10)
    return value * 2


async def streamed(value: str) -> AsyncIterator[str]:
    for letter in value:
        await asyncio.sleep(1)
        yield letter


class Upper(BasicBolt[str, str]):
    """The same as a class."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        out.emit(tup.value.upper())


class Pairs(Bolt[int, int]):
    """Sums of two, anchored to both; what is odd alone is held."""

    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.held.append(tup)
        if len(self.held) == 2:
            out.emit(sum(each.value for each in self.held), anchors=self.held)
            for each in self.held:
                out.ack(each)
            self.held.clear()


class Threes(BatchBolt[int, int]):
    """Batches of three, or of what five seconds have brought."""

    size = 3
    within = 5.0

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        if any(tup.value < 0 for tup in tups):
            raise LookupError("negative")
        out.emit(len(tups))


@pytest.mark.parametrize("bolt", [upper, Upper, lambda: Upper(), partial(Upper)])
def test_functions_classes_and_factories(bolt: Any) -> None:
    """Whatever a topology takes for a bolt: outputs are anchored to the input, and it is acked."""
    result = run_bolt(bolt, ["a", "b"])
    assert result.emitted() == ["A", "B"]
    assert [each.emitted for each in result.inputs] == [["A"], ["B"]]
    assert (result.acked, result.failed, result.held, result.unanchored) == (["a", "b"], [], [], [])


def test_a_generator_function() -> None:
    """Many outputs of one input, on several streams."""
    result = run_bolt(words, ["a bc", ""], outputs={"default": None, "length": None})
    assert result.emitted() == ["a", "bc"]
    assert result.emitted("length") == [4, 0]
    assert [each.emitted for each in result.inputs] == [["a", "bc", 4], [0]]


@pytest.mark.parametrize(("bolt", "end"), [(looked_up, 20.0), (streamed, 2.0)])
def test_async_functions_take_simulated_time(bolt: Any, end: float) -> None:
    """When each value came is told."""
    result = run_bolt(bolt, ["a", "b"])
    assert result.acked == ["a", "b"]
    assert result.emissions[-1].at == end


def test_concurrency_is_an_option_as_in_a_topology() -> None:
    """Two at a time take the time of one."""
    assert run_bolt(looked_up, ["a", "b"], concurrency=2).emissions[-1].at == 10.0


def test_exceptions_fail_their_input() -> None:
    """With the exception, and for good if it is a Reject."""

    def checked(value: int) -> int:
        if value == 0:
            raise Reject("nothing")
        return 1 // (value - 1)

    result = run_bolt(checked, [0, 1, 2])
    nothing, boom, fine = result.inputs
    assert (result.acked, result.failed) == ([2], [0, 1])
    assert nothing.failure is not None
    assert (nothing.failure.kind, nothing.failure.permanent) == (FailureKind.FAILED, True)
    assert boom.failure is not None
    assert isinstance(boom.failure.exception, ZeroDivisionError)
    assert (fine.failure, fine.emitted) == (None, [1])


def test_a_bolt_that_anchors_acks_and_holds_by_itself() -> None:
    """An output anchored to two inputs is told at both; what is never settled is held."""
    result = run_bolt(Pairs, [1, 2, 3])
    assert result.emitted() == [3]
    assert [each.emitted for each in result.inputs] == [[3], [3], []]
    assert [each.held for each in result.inputs] == [False, False, True]
    assert (result.acked, result.failed, result.held) == ([1, 2], [], [3])


def test_unanchored_outputs_are_told_apart() -> None:
    """An emit of a Bolt that names no anchors belongs to no input."""

    class Forgets(Bolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            out.emit(tup.value)
            out.fail(tup, "on purpose")

    result = run_bolt(Forgets, ["a"])
    assert (result.unanchored, result.inputs[0].emitted) == (["a"], [])
    assert result.inputs[0].failure is not None
    assert result.inputs[0].failure.reason == "on purpose"


def test_batches() -> None:
    """By size, by age, and at the end; the time between inputs is the test's to say."""
    values = [1, 2, 3, 4, Input(5, after=10.0)]
    result = run_bolt(Threes, values)
    assert [(each.value, each.at, len(each.roots)) for each in result.emissions] == [
        (3, 0.0, 3),
        (1, 5.0, 1),
        (1, 10.0, 1),
    ]
    assert result.acked == [1, 2, 3, 4, 5]


def test_a_batch_that_fails() -> None:
    """All its members fail, and no other."""
    result = run_bolt(Threes, [1, -1, 2, 3])
    assert (result.failed, result.acked) == ([1, -1, 2], [3])


class Sums(BasicBolt[int, int]):
    """Adds up; tells on a tick and at the end."""

    def prepare(self, context: TaskContext) -> None:
        self.sum = context.parallelism - 1

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.sum += tup.value

    def tick(self, out: Collector[int]) -> None:
        out.emit(-self.sum)

    def finish(self, out: Collector[int]) -> None:
        out.emit(self.sum)


def test_ticks_and_finish() -> None:
    """The bolt has so many seconds for ticks; then no more input comes, and it finishes."""
    result = run_bolt(Sums, [1, 2], tick=10.0, seconds=25.0)
    assert [(each.value, each.during, each.at) for each in result.emissions] == [
        (-3, "tick", 10.0),
        (-3, "tick", 20.0),
        (3, "finish", 25.0),
    ]
    assert result.unanchored == [-3, -3, 3]


def test_a_bolt_that_holds_until_the_next_tick_gets_it() -> None:
    """What is held is waited for, as a topology that drains does."""

    class OnTick(Bolt[int, int]):
        def __init__(self) -> None:
            self.held: list[Tuple[int]] = []

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.held.append(tup)

        def tick(self, out: Collector[int]) -> None:
            while self.held:
                out.ack(self.held.pop())

    assert run_bolt(OnTick, [1, 2], tick=60.0).acked == [1, 2]
    assert run_bolt(OnTick, [1, 2], tick=60.0, time_limit=59.0).held == [1, 2]


def test_flush() -> None:
    """It is called when nothing more comes."""

    class Flushes(Pairs):
        def flush(self, out: Collector[int]) -> None:
            for tup in self.held:
                out.emit(-tup.value, anchors=tup)
                out.ack(tup)

    result = run_bolt(Flushes, [1, 2, 3])
    assert [(each.value, each.during) for each in result.emissions] == [(3, "execute"), (-3, "flush")]
    assert result.held == []


def test_without_inputs() -> None:
    """A bolt that is given nothing finishes all the same, once it has been prepared."""
    result = run_bolt(Sums, [])
    assert list(result.inputs) == []


def test_what_a_tuple_says_of_itself() -> None:
    """Storm's testTestTuple: component, stream and fields are the test's to choose, by default they are
    "values" and "default"."""
    seen: list[tuple[object, ...]] = []

    class Look(BasicBolt[tuple[str, str], None]):
        def execute(self, tup: Tuple[tuple[str, str]], out: Collector[None]) -> None:
            seen.append((tup.component, tup.stream, tup["fname"], tup["lname"], tup.origin))

    bond = ("james", "bond")
    given = Input(bond, component="test-component", stream="test-stream", origin="here")
    run_bolt(Look, [bond, given, bond], schema=["fname", "lname"])
    assert seen == [
        ("values", "default", "james", "bond", None),
        ("test-component", "test-stream", "james", "bond", "here"),
        ("values", "default", "james", "bond", None),
    ]


def test_values_that_are_changed_after_their_emit_are_an_error() -> None:
    """As in any test, unless it is allowed."""

    def grow(value: list[int]) -> list[int]:
        value.append(1)
        return value

    with pytest.raises(Leaked, match=r"values\[0\] emitted \[\] .* afterwards to \[1\]"):
        run_bolt(grow, [[]])
    assert run_bolt(grow, [[]], allow_leaks=True).emitted() == [[1]]


def test_exceptions_for_which_no_input_answers_are_an_error() -> None:
    """As in any test, unless it is allowed."""

    class AcksFirst(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.ack(tup)
            raise LookupError

    with pytest.raises(Leaked, match=r"bolt\[0\] raised LookupError\(\) in execute .* on 7, already"):
        run_bolt(AcksFirst, [7])
    assert run_bolt(AcksFirst, [7], allow_leaks=["errors"]).acked == [7]


def test_crashes_come_out() -> None:
    """What no input answers for is raised, and so is a bolt that cannot be."""

    class Boom(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            """Nothing."""

        def finish(self, out: Collector[int]) -> None:
            raise LookupError

    with pytest.raises(TopologyCrashed, match="finish of bolt"):
        run_bolt(Boom, [1])
    with pytest.raises(InvalidTopology, match="Pairs object given"):
        run_bolt(Pairs(), [1])  # type: ignore[call-overload]
    with pytest.raises(TopologyCrashed, match="makes a bolt, Boom"):
        run_bolt(lambda number=1: Boom(), [1])


@pytest.mark.simulated_time
async def test_in_a_coroutine_it_is_awaited() -> None:
    """On the loop of the test and in its time; the other form says so."""
    result = await run_bolt_async(looked_up, ["a"])
    assert (result.emitted(), asyncio.get_running_loop().time()) == (["aa"], 10.0)
    with pytest.raises(RuntimeError, match=r"write await run_bolt_async\(\.\.\.\)"):
        run_bolt(upper, ["a"])


def test_it_shows_itself_in_short() -> None:
    """For the message of a failing assertion."""
    assert repr(run_bolt(Pairs, [1, 2, 3])) == "<BoltResult emitted 1, acked 2, failed 0, held 1>"


def test_a_function_with_state_gets_its_inputs_by_key() -> None:
    """Without a key the value itself is one."""

    def count(word: str, total: Cell[int]) -> int:
        total.value += 1
        return total.value

    assert run_bolt(count, ["a", "b", "a"], state=Value(int, 0)).emitted() == [1, 1, 2]  # type: ignore[call-overload]
