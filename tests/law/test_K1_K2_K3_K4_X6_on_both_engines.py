"""Keyed state on both engines: what a call sees, what is undone, what belongs to the task (law K1 to K4, X6)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from stormlet import Collector, KeyedBolt, Reject, Topology, Tuple, Value
from tests.engines import Engine

pytestmark = pytest.mark.simulated_time


class Count(KeyedBolt[Any, Any, tuple[Any, int]]):
    """Counts values."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:
        self.total += 1
        out.emit((self.key, self.total))


class Unsure(Count):
    """Fails the first attempt at "b" before it counts."""

    def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:
        if tup.value == "b" and tup.attempt == 1:
            raise ValueError("not yet")
        super().execute(tup, out)


class Rash(Count):
    """Fails the first attempt at "b" after it has counted, and refuses "c" then."""

    def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:
        super().execute(tup, out)
        if tup.value == "c":
            raise Reject("not that")
        if tup.value == "b" and tup.attempt == 1:
            raise ValueError("not yet")


class Slow(Count):
    """Counts with a pause in the midst; calls of one key that overlap would count one."""

    async def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:  # type: ignore[override]
        before = self.total
        await asyncio.sleep(0.1)
        self.total = before + 1
        out.emit((self.key, self.total))


def counting(values: Sequence[Any], logic: Any = Count, **options: Any) -> tuple[Topology, dict[Any, int]]:
    """Count values, and note the last count of each."""
    topology: Any = Topology("count", replay_delay=0.01)
    found: dict[Any, int] = {}

    def see(count: tuple[Any, int]) -> None:
        found[count[0]] = count[1]

    counts = topology.bolt(
        "count", logic, topology.spout("values", list(values)).fields(), parallelism=2, **options
    )
    topology.bolt("see", see, counts.global_())
    return topology, found


async def test_K1_equal_keys_are_one_key(engine: Engine) -> None:
    """Of whatever type."""
    topology, found = counting([1, 1.0, True, 2])
    await engine.run_to_end(topology)
    assert found == {1: 3, 2: 1}


async def test_K2_a_call_sees_what_the_calls_before_have_left(engine: Engine) -> None:
    """Of its own key alone; calls of one key do not overlap."""
    topology, found = counting("abaab", Slow, concurrency=5)
    await engine.run_to_end(topology)
    assert found == {"a": 3, "b": 2}


async def test_K3_what_a_failed_attempt_has_changed_is_undone(engine: Engine) -> None:
    """And nothing is left of what is given up."""
    topology, found = counting("abcacb" * 2, Rash)
    done = await engine.run_to_end(topology)
    assert {key: found[key] for key in "ab"} == {"a": 4, "b": 4}
    assert [letter.value for letter in done.dead_letters] == ["c"] * 4


async def test_K4_a_bolt_that_dies_loses_no_state(engine: Engine) -> None:
    """Another instance goes on with it."""
    topology, found = counting("abab", Rash, on_error="restart")
    await engine.run_to_end(topology)
    assert found == {"a": 2, "b": 2}


async def test_X6_what_fails_before_state_is_replayed_alone(engine: Engine) -> None:
    """Nothing else is done again."""
    topology, found = counting("aba", Unsure)
    done = await engine.run_to_end(topology)
    assert found == {"a": 2, "b": 1}
    assert done.statistics().components["count"].executed == 4
