"""Shared values, and context variables that travel with them (law B10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from stormlet import BasicBolt, Bolt, Collector, Spout, SpoutCollector, Topology, Tuple
from stormlet.errors import EndOfStream
from tests.cast import Counting, Note
from tests.engines import Engine
from tests.helpers import run_to_end


@pytest.mark.simulated_time
async def test_B10_replicas_and_replays_share_the_object() -> None:
    """Every task, and every attempt, gets the very object that was emitted."""
    value = object()
    seen: list[object] = []

    class Fail(Bolt[object, object]):
        def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
            seen.append(tup.value)
            out.fail(tup)

    topology = Topology("shared", max_attempts=2)
    topology.bolt("fail", Fail, topology.spout("one", [value]).all(), parallelism=3)
    await run_to_end(topology)
    assert len(seen) == 6
    assert all(each is value for each in seen)


request: ContextVar[object] = ContextVar("request", default=None)


class SetInSpout(Counting):
    """Sets the variable for each message."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        request.set(self.next)
        super().next_tuple(out)


class SetInAsyncSpout(Spout[int]):
    """The same, asynchronously."""

    next = 0

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == 3:
            raise EndOfStream
        request.set(self.next)
        await asyncio.sleep(0.1)
        out.emit(self.next, message_id=self.next)
        self.next += 1


def set_in_generator() -> Iterator[int]:
    for number in range(3):
        request.set(number)
        yield number


async def set_in_async_generator() -> AsyncIterator[int]:
    for number in set_in_generator():
        await asyncio.sleep(0.1)
        yield number


def see(value: object) -> object:
    return (value, request.get())


async def see_async(value: object) -> object:
    await asyncio.sleep(0.01)
    return see(value)


def see_in_generator(value: object) -> Iterator[object]:
    yield see(value)


class SeeBolt(BasicBolt[object, object]):
    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit(see(tup.value))


SOURCES = [SetInSpout, SetInAsyncSpout, set_in_generator, set_in_async_generator]


async def seen_contexts(source: Any, logic: Any, **options: Any) -> list[object]:
    """What two bolts in a row see of the variable, for each of three messages."""
    seen: list[object] = []
    topology = Topology("context")
    first = topology.bolt("first", logic, topology.spout("source", source).shuffle(), **options)
    second = topology.bolt("second", see, first.shuffle())
    topology.bolt("note", partial(Note, seen), second.shuffle())
    await run_to_end(topology)
    return sorted(seen, key=str)


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("logic", [see, see_async, see_in_generator, SeeBolt])
async def test_B10_context_variables_set_in_a_spout_travel_with_the_tuple(source: Any, logic: Any) -> None:
    """Each bolt of the chain sees the value that was set for its message."""
    assert await seen_contexts(source, logic) == [((number, number), number) for number in range(3)]


class SetOnce(Counting):
    """Sets the variable for its first message only."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.next == 0:
            request.set("first")
        super().next_tuple(out)


class SetOnceAsync(SetOnce):
    """The same, asynchronously."""

    async def next_tuple(self, out: SpoutCollector[int]) -> None:  # type: ignore[override]
        await asyncio.sleep(0.1)
        super().next_tuple(out)


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [SetOnce, SetOnceAsync])
async def test_B10_what_a_call_of_a_spout_sets_does_not_reach_the_next_one(source: Any) -> None:
    """Each ``next_tuple`` begins with the variables of the topology."""
    seen = await seen_contexts(source, see)
    assert seen == [((0, "first"), "first"), ((1, None), None), ((2, None), None)]


@pytest.mark.asyncio
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_B10_context_variables_travel_into_threads(concurrency: int) -> None:
    """A bolt that runs in a thread sees them as one on the loop does."""
    seen = await seen_contexts(SetInSpout, see, executor="thread", concurrency=concurrency)
    assert seen == [((number, number), number) for number in range(3)]


@pytest.mark.simulated_time
async def test_B10_context_variables_set_by_the_host_travel_with_its_message() -> None:
    """Two messages that are under way at the same time do not mix them up."""
    topology = Topology("host")
    fed = topology.spout("fed")
    seen = topology.bolt("see", see_async, fed.shuffle(), concurrency=2)
    trees = []
    async with topology.run() as running:
        for name in ("first", "second"):
            request.set(name)
            trees.append(await running.emit(fed, name, collect=seen))
        request.set("later")
        assert [await tree for tree in trees] == [[("first", "first")], [("second", "second")]]


@pytest.mark.simulated_time
async def test_B10_a_replay_brings_the_context_of_its_message() -> None:
    """A value that is executed again sees the variable that was set when it was yielded."""
    seen: list[object] = []

    def fail_first(value: object) -> None:
        seen.append((value, request.get()))
        if len(seen) < 2:
            raise ValueError(value)

    def one() -> Iterator[str]:
        request.set("set")
        yield "a"
        request.set("changed")

    topology = Topology("replay")
    topology.bolt("fail", fail_first, topology.spout("one", one).shuffle())
    await run_to_end(topology)
    assert seen == [("a", "set")] * 2


@pytest.mark.simulated_time
async def test_B10_what_a_bolt_sets_does_not_reach_other_tuples() -> None:
    """A variable that is set while one tuple is executed is unset for the next one and downstream."""

    def set_after(value: object) -> object:
        seen = request.get()
        request.set("leaked")
        return seen

    seen: list[object] = []
    topology = Topology("leak")
    first = topology.bolt("set", set_after, topology.spout("numbers", set_in_generator).shuffle())
    second = topology.bolt("see", see, first.shuffle())
    topology.bolt("note", partial(Note, seen), second.shuffle())
    await run_to_end(topology)
    assert seen == [(number, number) for number in range(3)]


@pytest.mark.simulated_time
async def test_B10_what_a_bolt_sets_stays_in_its_task(engine: Engine) -> None:
    """The bolt behind it sees nothing of that."""

    def set_always(value: object) -> object:
        request.set("leaked")
        return value

    seen: list[object] = []
    topology = Topology("stays")
    first = topology.bolt("set", set_always, topology.spout("numbers", range(3)).shuffle())
    topology.bolt("note", partial(Note, seen), topology.bolt("see", see, first.shuffle()).shuffle())
    await engine.run_to_end(topology)
    assert seen == [(number, None) for number in range(3)]
