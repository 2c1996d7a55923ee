"""Keyed state in a naive model, in process and on Spark (law K1 to K4, K6, K7, K10, X6, X7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import pytest

from stormlet import Cell, Collector, KeyedBolt, ListOf, MapOf, Reject, Topology, Tuple, Value
from tests.engines import IN_PROCESS, ON_SPARK, KeyedEngine

pytestmark = pytest.mark.simulated_time(allow_leaks=["errors"])


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


class Brief(KeyedBolt[Any, Any, tuple[Any, int]]):
    """Forgets what has not come for a minute."""

    total = Value(int, 0, ttl=60)

    def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:
        self.total += 1
        out.emit((self.key, self.total))


class Remind(KeyedBolt[Any, Any, tuple[Any, int]]):
    """Counts the calls of timers."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:
        self.set_timer(self.now + 60)
        self.set_timer(self.now + 90)
        self.cancel_timer(self.now + 90)

    def on_timer(self, at: float, out: Collector[tuple[Any, int]]) -> None:
        self.total += 1


class Merged(KeyedBolt[str, str, None]):
    """Has two states that can be merged; refuses "c" after it has changed them, and "b" once."""

    total = Value(int, 0)
    seen = ListOf(int)
    merges: ClassVar[int] = 0

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        self.total += 1
        self.seen.append(1)
        if tup.value == "c":
            raise Reject("not that")
        if tup.value == "b" and tup.attempt == 1:
            raise ValueError("not yet")

    def merge(self, other: Self) -> None:
        self.total += other.total
        self.seen.extend(other.seen)
        type(self).merges += 1


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


async def test_K1_equal_keys_are_one_key(keyed_engine: KeyedEngine) -> None:
    """Of whatever type."""
    topology, found = counting([1, 1.0, True, 2])
    left = await keyed_engine.leave(topology)
    assert found == left.states["count.total"] == {1: 3, 2: 1}


async def test_K1_maps_are_kept_too(keyed_engine: KeyedEngine) -> None:
    """Entry by entry."""

    class Prices(KeyedBolt[str, str, None]):
        seen = MapOf(str, int)

        def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
            self.seen[tup.value] = self.seen.get(tup.value, 0) + 1

    topology = Topology("maps")
    topology.bolt("prices", Prices, topology.spout("words", ["ab", "ac", "ab"]).fields(_first))
    left = await keyed_engine.leave(topology)
    assert left.states == {"prices.seen": {"a": {"ab": 2, "ac": 1}}}


async def test_K1_a_function_has_a_cell(keyed_engine: KeyedEngine) -> None:
    """Of the key's state, under the name of its parameter."""

    def count(word: str, total: Cell[int]) -> tuple[str, int]:
        total.value += 1
        return word, total.value

    topology = Topology("cells")
    counts = topology.bolt("count", count, topology.spout("words", list("aba")).fields(), state=Value(int, 0))
    seen: list[tuple[str, int]] = []
    topology.bolt("see", seen.append, counts.shuffle())
    left = await keyed_engine.leave(topology)
    assert sorted(seen) == [("a", 1), ("a", 2), ("b", 1)]
    assert left.states == {"count.total": {"a": 2, "b": 1}}


async def test_K2_a_call_sees_what_the_calls_before_have_left(keyed_engine: KeyedEngine) -> None:
    """Of its own key alone; calls of one key do not overlap."""
    topology, found = counting("abaab", Slow, concurrency=5)
    left = await keyed_engine.leave(topology)
    assert found == left.states["count.total"] == {"a": 3, "b": 2}


async def test_K3_what_a_failed_attempt_has_changed_is_undone(keyed_engine: KeyedEngine) -> None:
    """And nothing is left of what is given up."""
    topology, _ = counting("abcacb" * 2, Rash)
    left = await keyed_engine.leave(topology)
    assert left.states["count.total"] == {"a": 4, "b": 4}
    assert [letter.value for letter in left.dead_letters] == ["c"] * 4


async def test_K3_a_rejected_word_is_left_out(keyed_engine: KeyedEngine) -> None:
    """Its count is forgotten, and it is a dead letter."""
    topology, _ = counting("aca", Rash)
    left = await keyed_engine.leave(topology)
    assert left.states["count.total"] == {"a": 2}
    assert [letter.value for letter in left.dead_letters] == ["c"]


async def test_K4_a_bolt_that_dies_loses_no_state(keyed_engine: KeyedEngine) -> None:
    """Another instance goes on with it."""
    topology, found = counting("abab", Rash, on_error="restart")
    left = await keyed_engine.leave(topology)
    assert found == left.states["count.total"] == {"a": 2, "b": 2}


async def test_K6_a_value_that_was_not_written_for_long_is_absent(keyed_engine: KeyedEngine) -> None:
    """Written again in time it goes on; time stands still within an epoch."""
    topology, found = counting("a", Brief)
    epochs = [(at, {"values": [key]}) for at, key in ((0.0, "a"), (59.0, "a"), (60.0, "b"), (118.0, "a"))]
    left = await keyed_engine.leave(topology, [*epochs, (125.0, {"values": []})])
    assert (found, left.states) == ({"a": 3, "b": 1}, {"count.total": {"a": 3}})


async def test_K7_a_timer_is_called_once_when_it_is_due(keyed_engine: KeyedEngine) -> None:
    """Never early, one that was cancelled not at all, and one that is set twice once."""
    topology, _ = counting("a", Remind)
    epochs = [
        (0.0, {"values": ["a", "a", "b"]}),
        (59.0, {"values": []}),
        (60.0, {"values": []}),
        (300.0, {"values": []}),
    ]
    assert (await keyed_engine.leave(topology, epochs[:2])).states == {
        "count.on_timer": {"a": [60.0], "b": [60.0]}
    }
    assert (await keyed_engine.leave(topology, epochs)).states == {"count.total": {"a": 1, "b": 1}}


async def test_K10_states_that_are_merged_are_those_of_all_inputs(keyed_engine: KeyedEngine) -> None:
    """Whether an engine merges or not; what fails is given up all the same."""
    topology = Topology("merging", replay_delay=0.01)
    topology.bolt("count", Merged, topology.spout("values", list("abcacb" * 9)).fields(), parallelism=2)
    left = await keyed_engine.leave(topology)
    assert left.states == {"count.total": {"a": 18, "b": 18}, "count.seen": {"a": [1] * 18, "b": [1] * 18}}
    assert [letter.value for letter in left.dead_letters] == ["c"] * 18


async def test_K10_a_run_in_process_does_not_merge() -> None:
    """Nothing crosses the bounds of a process there."""
    Merged.merges = 0
    for engine, merges in ((IN_PROCESS, False), (ON_SPARK, True)):
        topology = Topology("merging")
        topology.bolt("count", Merged, topology.spout("values", list("aaaa")).fields())
        assert (await engine.leave(topology)).states["count.total"] == {"a": 4}
        assert bool(Merged.merges) is merges


async def test_X6_what_fails_before_state_is_replayed_alone(keyed_engine: KeyedEngine) -> None:
    """Nothing else is done again."""
    topology, found = counting("aba", Unsure)
    left = await keyed_engine.leave(topology)
    assert found == {"a": 2, "b": 1}
    assert left.executed("count") == 4


def failing_after(words: str, fails: dict[int, int], **options: Any) -> Topology:
    """A word count whose words fail after they were counted, by their places, each so many times."""
    topology = Topology("count", replay_delay=0.01, **options)
    numbered = [f"{letter}{place}" for place, letter in enumerate(words)]

    def fail(count: tuple[Any, int]) -> None:
        place = int(count[0][1:])
        if fails.get(place, 0):
            fails[place] -= 1
            raise ValueError("after it was counted")

    class ByLetter(Count):
        def execute(self, tup: Tuple[Any], out: Collector[tuple[Any, int]]) -> None:
            self.total += 1
            out.emit((tup.value, self.total))

    counted = topology.bolt("count", ByLetter, topology.spout("words", numbered).fields(_first))
    topology.bolt("fail", fail, counted.shuffle())
    return topology


def _first(word: str) -> str:
    return word[0]


async def test_X7_a_failure_after_the_count_is_not_counted_twice(keyed_engine: KeyedEngine) -> None:
    """The attempt is forgotten, and the messages before it are committed first (law X6, X7)."""
    left = await keyed_engine.leave(failing_after("abab", {2: 1}))
    assert left.states == {"count.total": {"a": 2, "b": 2}}


async def test_X7_the_very_first_message_that_fails_for_ever_becomes_a_dead_letter(
    keyed_engine: KeyedEngine,
) -> None:
    """The others get on (law X7)."""
    left = await keyed_engine.leave(failing_after("abab", {0: 99}, max_attempts=3))
    assert [letter.value for letter in left.dead_letters] == ["a0"]
    assert left.states == {"count.total": {"a": 1, "b": 2}}
