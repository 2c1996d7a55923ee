"""Calls of an async bolt that follow each other within one pause of its task, and end in every way (laws B4, F1)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

import pytest

from stormlet import BasicBolt, Collector, Failure, Reject, Topology, Tuple

pytestmark = pytest.mark.simulated_time

FAILED, REJECTED, DONE = "failed", "rejected", "done"
ENDS = {
    "plain": DONE,
    "returns": DONE,
    "awaits": DONE,
    "waits": DONE,
    "raises": FAILED,
    "raises awaited": FAILED,
    "rejects awaited": REJECTED,
    "cancels": FAILED,
    "cancels awaited": FAILED,
}
"""Ways of a call, and the outcome of its input."""


async def _later(way: str, value: int) -> tuple[str, int]:
    if way == "waits":
        await asyncio.sleep(0.5)
    elif way != "returns":
        await asyncio.sleep(0)
    if way == "raises awaited":
        raise ValueError(way)
    if way == "rejects awaited":
        raise Reject(way)
    if way == "cancels awaited":
        raise asyncio.CancelledError
    return way, value


def call(message: tuple[str, int]) -> Any:
    """A function that is sometimes async."""
    way, value = message
    if way == "plain":
        return way, value
    if way == "raises":
        raise ValueError(way)
    if way == "cancels":
        raise asyncio.CancelledError
    return _later(way, value)


class Everything(Collection[int]):
    """Has every number."""

    def __contains__(self, number: object) -> bool:
        return True

    def __iter__(self) -> Iterator[int]:
        return count()

    def __len__(self) -> int:
        return 1


class Basic(BasicBolt[tuple[str, int], tuple[str, int]]):
    """The same as a class."""

    def execute(self, tup: Tuple[tuple[str, int]], out: Collector[tuple[str, int]]) -> Any:
        given = call(tup.value)
        if isinstance(given, tuple):
            out.emit(given)
            return None
        return self._emit(given, out)

    async def _emit(self, later: Any, out: Collector[tuple[str, int]]) -> None:
        out.emit(await later)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("logic", [call, Basic])
async def test_each_input_has_the_outcome_of_its_own_call(logic: Any, seed: int) -> None:
    """Whatever the calls before it and after it in the same pause do."""
    random, topology = Random(seed), Topology("calls in turn", max_attempts=1)
    messages = [(random.choice(list(ENDS)), number) for number in range(300)]
    seen: list[object] = []
    numbers = topology.spout("numbers")
    calls = topology.bolt("call", logic, numbers.shuffle(), outputs=tuple)
    topology.bolt("see", seen.append, calls.shuffle())
    outcomes: dict[int, str] = {}
    async with topology.run() as running:
        trees = [await running.emit(numbers, message) for message in messages]
        for (_, number), tree in zip(messages, trees, strict=True):
            try:
                await tree
                outcomes[number] = DONE
            except Exception as error:
                failure = getattr(error, "failure", None)
                assert isinstance(failure, Failure)
                outcomes[number] = REJECTED if failure.permanent else FAILED
    assert outcomes == {number: ENDS[way] for way, number in messages}
    assert Counter(seen) == Counter(message for message in messages if ENDS[message[0]] is DONE)


async def test_calls_that_come_back_at_once_send_together() -> None:
    """The consumer is not woken for each of them."""
    topology = Topology("together")
    made, wakes = 0, set[int]()

    async def turn(number: int) -> int:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return number

    def see(number: int) -> None:
        wakes.add(made)

    numbers = topology.spout("numbers", range(400))
    topology.bolt("see", see, topology.bolt("turn", turn, numbers.shuffle()).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert made == 400
    assert len(wakes) < 100


async def test_a_slow_call_behind_quick_ones_is_measured_alone() -> None:
    """Though all of them are made in one pause."""
    topology = Topology("slow")

    async def call(number: int) -> None:
        await asyncio.sleep(0.2 if number % 100 == 99 else 0)

    topology.bolt("call", call, topology.spout("numbers", range(400)).shuffle())
    async with topology.run() as running:
        await running.finished()
        times = running.statistics().components["call"].execute_times
        executed = running.statistics().components["call"].executed
    assert executed == 400
    assert times.count == 400
    assert times.largest == pytest.approx(0.2, rel=0.05)
    assert times.quantile(0.985) < 0.01


async def test_calls_before_the_one_that_a_task_dies_of_are_measured() -> None:
    """Those of the same pause."""
    topology = Topology("dying", max_attempts=1, max_restarts=20)

    async def call(number: int) -> None:
        await asyncio.sleep(0)
        if number % 100 == 99:
            raise ValueError(number)

    topology.bolt("call", call, topology.spout("numbers", range(1000)).shuffle(), on_error="restart")
    async with topology.run() as running:
        await running.finished()
        calls = running.statistics().components["call"]
    assert (calls.executed, calls.execute_times.count) == (1000, 990)


async def test_a_lone_call_sends_in_the_next_iteration() -> None:
    """Only where inputs wait behind a call may its outputs wait for one iteration more (law F1)."""
    seen: list[int] = []
    turns: dict[int, int] = {}

    class Emits(BasicBolt[int, int]):
        """Emits, and counts the iterations until that has arrived."""

        async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(tup.value)
            turns[tup.value] = 0
            while tup.value not in seen:
                turns[tup.value] += 1
                await asyncio.sleep(0)

    topology = Topology("lone")
    numbers = topology.spout("numbers")
    topology.bolt("see", seen.append, topology.bolt("emits", Emits, numbers.shuffle()).shuffle())
    async with topology.run() as running:
        await (await running.emit(numbers, 0))
        trees = [await running.emit(numbers, number) for number in (1, 2)]
        for tree in trees:
            await tree
    assert turns[1] == turns[0] + 1
    assert turns[2] == turns[0]


async def test_a_tick_comes_between_two_calls() -> None:
    """In its time, though inputs wait; none begins before it is over (law B5)."""
    notes: list[str | int] = []

    class Ticks(BasicBolt[int, None]):
        """Every tenth call takes some time."""

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            notes.append(tup.value)
            await asyncio.sleep(0.0 if tup.value % 10 else 0.3)
            notes.append("over")

        async def tick(self, out: Collector[None]) -> None:
            notes.append("tick")
            await asyncio.sleep(0.1)
            notes.append("ticked")

    topology = Topology("ticks")
    topology.bolt("call", Ticks, topology.spout("numbers", range(200)).shuffle(), tick=1.0)
    async with topology.run() as running:
        await running.finished()
    ticks = [place for place, note in enumerate(notes) if note == "tick"]
    assert len(ticks) == 6
    assert [notes[place + 1] for place in ticks] == ["ticked"] * 6
    assert {notes[place - 1] for place in ticks} == {"over"}
    assert [note for note in notes if isinstance(note, int)] == list(range(200))


async def test_a_full_queue_stops_the_calls_of_a_pause() -> None:
    """As it stops all others (law B6)."""
    made, ahead = 0, set[int]()

    async def turn(number: int) -> int:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return number

    async def see(number: int) -> None:
        await asyncio.sleep(0.01)
        ahead.add(made - number)

    topology = Topology("full", queue_capacity=8)
    numbers = topology.spout("numbers", range(400))
    topology.bolt("see", see, topology.bolt("turn", turn, numbers.shuffle()).shuffle())
    async with topology.run() as running:
        await running.finished()
    assert made == 400
    assert 8 <= max(ahead) <= 8 + 8 + 1  # what is in hand, in the queue, and the call that found it full


async def test_who_begins_to_observe_hears_of_the_next_call() -> None:
    """In the middle of a pause, and no more once it is over."""
    heard: list[str] = []

    class Notes:
        """Notes what it hears."""

        @property
        def trees(self) -> Collection[int]:
            """Those of all inputs."""
            return Everything()

        def begin(self, tups: Sequence[Tuple[Any]]) -> None:
            heard.extend(f"begin {each.value}" for each in tups)

        def end(self, tups: Sequence[Tuple[Any]], waited: float = 0.0) -> None:
            heard.extend(f"end {each.value}" for each in tups)

    async def call(number: int) -> None:
        if number in (5, 8):
            (task,) = running._tasks.bolts["call"]  # pyright: ignore[reportPrivateUsage]
            task.observe(Notes() if number == 5 else None)
        await asyncio.sleep(0)

    topology = Topology("observed")
    numbers = topology.spout("numbers")
    topology.bolt("call", call, numbers.shuffle())
    async with topology.run() as running:
        for tree in [await running.emit(numbers, number) for number in range(12)]:
            await tree
    assert heard == ["begin 6", "end 6", "begin 7", "end 7", "begin 8", "end 8"]
