"""Function bolts and BasicBolt: outputs, acks and failures (law B1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    DirectStream,
    Reject,
    TaskContext,
    To,
    Topology,
    TopologyCrashed,
    Tuple,
)
from tests.cast import Note, ignore, refuse, twice
from tests.engines import Engine
from tests.helpers import run_to_end


async def outputs_of(engine: Engine, logic: Any, value: object = "in") -> list[object]:
    """What a bolt sends downstream for one input, which must be acked."""
    seen: list[object] = []
    topology = Topology("outputs")
    stream = topology.bolt("logic", logic, topology.spout("one", [value]).shuffle())
    topology.bolt("note", partial(Note, seen), stream.shuffle())
    running = await engine.run_to_end(topology)
    assert running.statistics().components["one"].acked == 1
    return seen


def return_generator(value: object) -> Iterator[object]:
    yield 1
    yield 2


async def return_awaited(value: object) -> object:
    await asyncio.sleep(1)
    return 1


async def return_async_generator(value: object) -> AsyncIterator[object]:
    yield 1
    await asyncio.sleep(1)
    yield 2


async def awaited_generator(value: object) -> object:
    return return_generator(value)


class Called:
    """A callable object, which inspect sees no coroutine function in."""

    async def __call__(self, value: object) -> object:
        return 1


def add(number: int, value: object) -> object:
    return number


RESULTS: dict[str, tuple[Callable[..., object], list[object]]] = {
    "None": (lambda _: None, []),
    "value": (lambda _: 1, [1]),
    "zero": (lambda _: 0, [0]),
    "text": (lambda _: "ab", ["ab"]),
    "list": (lambda _: [1, 2], [[1, 2]]),
    "empty list": (lambda _: [], [[]]),
    "tuple": (lambda _: (1, 2), [(1, 2)]),
    "set": (lambda _: {1}, [{1}]),
    "range": (lambda _: range(2), [range(2)]),
    "iterator": (lambda _: iter([1, 2]), [1, 2]),
    "map": (lambda _: map(int, "12"), [1, 2]),
    "empty iterator": (lambda _: iter([]), []),
    "generator function": (return_generator, [1, 2]),
    "generator returned by a lambda": (lambda value: return_generator(value), [1, 2]),
    "coroutine function": (return_awaited, [1]),
    "coroutine returned by a lambda": (lambda value: return_awaited(value), [1]),
    "task": (lambda value: asyncio.ensure_future(return_awaited(value)), [1]),
    "async generator function": (return_async_generator, [1, 2]),
    "async generator returned by a lambda": (lambda value: return_async_generator(value), [1, 2]),
    "generator that was awaited": (awaited_generator, [1, 2]),
    "callable object": (Called(), [1]),
    "partial": (partial(add, 7), [7]),
    "class": (type, [str]),
}


@pytest.mark.simulated_time
@pytest.mark.parametrize("kind", RESULTS)
async def test_B1_results_of_functions(engine: Engine, kind: str) -> None:
    """None is nothing; iterators and generators are drained, awaitables awaited; all else is one output."""
    logic, outputs = RESULTS[kind]
    assert await outputs_of(engine, logic) == outputs


@pytest.mark.simulated_time
@pytest.mark.parametrize("made", [Note, Note()])
async def test_B1_a_function_that_makes_bolts_crashes_the_topology(engine: Engine, made: object) -> None:
    """At the first input, with an error that names the way out."""
    with pytest.raises(
        TopologyCrashed, match=r"'logic' .* makes a bolt, Note: .*functools.partial\(Note, ...\)"
    ):
        await outputs_of(engine, lambda _: made)


@pytest.mark.simulated_time
@pytest.mark.parametrize("base", [Bolt, BasicBolt])
async def test_B1_what_execute_returns_counts_as_an_exception(engine: Engine, base: type[Any]) -> None:
    """Its input fails."""
    logic = type("Gives", (base,), {"execute": lambda self, tup, out: 5})
    topology = Topology("gives", max_attempts=1)
    topology.bolt("logic", logic, topology.spout("one", ["in"]).shuffle())
    (letter,) = (await engine.run_to_end(topology)).dead_letters
    assert "execute of logic[0] returned 5" in str(letter.failure.exception)


class Basic(BasicBolt[object, object]):
    """Emits its input twice."""

    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(tup.value)
        out.emit(tup.value)


class BasicAsync(BasicBolt[object, object]):
    """The same, asynchronously."""

    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(tup.value)
        await asyncio.sleep(1)
        out.emit(tup.value)


async def twice_async(value: object) -> AsyncIterator[object]:
    yield value
    await asyncio.sleep(1)
    yield value


def twice_to(value: object) -> Iterator[To[object]]:
    yield To(value)
    yield To(value)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [Basic, BasicAsync, twice, twice_async, twice_to, lambda value: value])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B1_outputs_are_anchored_to_the_input(engine: Engine, logic: Any, concurrency: int) -> None:
    """What happens to an output downstream happens to the message that it came of."""
    topology = Topology("anchored")
    source = topology.spout("words", ["a", "b"])
    stream = topology.bolt("logic", logic, source.shuffle(), concurrency=concurrency)
    topology.bolt("refuse", lambda value: refuse(value) if value == "a" else None, stream.shuffle())
    running = await engine.run_to_end(topology)
    assert [each.value for each in running.dead_letters] == ["a"]
    assert running.statistics().components["words"].acked == 1


def raise_at_once(value: object) -> None:
    raise Reject("refused")


def raise_midway(value: object) -> Iterator[object]:
    yield 1
    raise Reject("refused")


async def raise_awaited(value: object) -> None:
    await asyncio.sleep(1)
    raise Reject("refused")


async def raise_midway_async(value: object) -> AsyncIterator[object]:
    yield 1
    raise Reject("refused")


class BasicRaise(BasicBolt[object, object]):
    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(1)
        raise Reject("refused")


class BasicRaiseAsync(BasicBolt[object, object]):
    async def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        await asyncio.sleep(1)
        raise Reject("refused")


@pytest.mark.simulated_time
@pytest.mark.parametrize(
    "logic",
    [raise_at_once, raise_midway, raise_awaited, raise_midway_async, BasicRaise, BasicRaiseAsync],
)
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B1_an_exception_fails_the_input(engine: Engine, logic: Any, concurrency: int) -> None:
    """Wherever the code raises, the message fails with that component and exception."""
    topology = Topology("raise")
    source = topology.spout("one", ["a"])
    stream = topology.bolt("logic", logic, source.shuffle(), concurrency=concurrency)
    topology.bolt("ignore", ignore, stream.shuffle())
    running = await engine.run_to_end(topology)
    (letter,) = running.dead_letters
    assert letter.failure.component == "logic"
    assert isinstance(letter.failure.exception, Reject)


@pytest.mark.simulated_time
async def test_B1_the_input_is_acked_only_on_return() -> None:
    """While an asynchronous call is suspended, its message is pending."""
    topology = Topology("return")
    topology.bolt("slow", return_awaited, topology.spout("one", ["a"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        assert running.statistics().components["one"].acked == 0
        await asyncio.sleep(0.6)
        assert running.statistics().components["one"].acked == 1


def sort_out(value: int) -> object:
    """Even numbers to one stream, multiples of three to another one, the rest nowhere."""
    if value % 2 == 0:
        return To(value, stream="even")
    return iter([To(value, stream="three"), value]) if value % 3 == 0 else None


async def sort_out_async(value: int) -> object:
    return sort_out(value)


@pytest.mark.simulated_time
@pytest.mark.parametrize("logic", [sort_out, sort_out_async])
@pytest.mark.parametrize("concurrency", [1, 4])
async def test_B1_to_reaches_other_streams(engine: Engine, logic: Any, concurrency: int) -> None:
    """A result ``To(value, stream=...)`` goes there and nowhere else, alone or from an iterator."""
    seen: dict[str, list[object]] = {"default": [], "even": [], "three": []}
    topology = Topology("to")
    stream = topology.bolt(
        "sort",
        logic,
        topology.spout("numbers", range(10)).shuffle(),
        outputs=dict.fromkeys(seen),
        concurrency=concurrency,
    )
    for name, values in seen.items():
        topology.bolt(f"note {name}", partial(Note, values), stream.named(name).shuffle())
    await engine.run_to_end(topology)
    assert {name: sorted(map(str, values)) for name, values in seen.items()} == {
        "default": ["3", "9"],
        "even": ["0", "2", "4", "6", "8"],
        "three": ["3", "9"],
    }


@pytest.mark.simulated_time
async def test_B1_to_reaches_one_task() -> None:
    """``To(value, task=...)`` chooses the receiver on a direct stream, and is anchored like any output."""
    seen: list[tuple[object, int]] = []

    class Note(BasicBolt[object, object]):
        def prepare(self, context: TaskContext) -> None:
            self.task = context.task

        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            seen.append((tup.value, self.task))
            if tup.value == 1:
                raise Reject("refused")

    topology = Topology("direct")
    tasks = [4, 5, 6]
    numbers = topology.spout("numbers", range(6))
    stream = topology.bolt(
        "choose", lambda value: To(value, task=tasks[value % 3]), numbers.shuffle(), outputs=DirectStream()
    )
    topology.bolt("note", Note, stream.direct(), parallelism=3)
    running = await run_to_end(topology)
    assert sorted(seen) == [(value, tasks[value % 3]) for value in range(6)]
    assert [each.value for each in running.dead_letters] == [1]
