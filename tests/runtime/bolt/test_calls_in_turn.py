"""Calls of an async bolt that follow each other within one pause of its task, and end in every way (laws B4, F1)."""

from __future__ import annotations

import asyncio
from collections import Counter
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
