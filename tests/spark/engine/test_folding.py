"""Keyed bolts with ``merge``: their inputs become a state where they are emitted, and are merged as that (law K10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormlet import (
    BasicBolt,
    Collector,
    KeyedBolt,
    ListOf,
    MapOf,
    Reject,
    TaskContext,
    Topology,
    Tuple,
    Value,
)
from stormlet.errors import StartFailed
from stormlet.spark.engine.partition import merging
from stormlet.spark.engine.partition.keyed.execution import Execution
from stormlet.spark.engine.planning.combiners import unfolded
from tests.spark.engine.keyed_flows import Basket, Item, by_word, in_order
from tests.spark.engine.test_keyed import left_by, run
from tests.spark.engine.twin import Twin

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXT = "abracadabra" * 100


class Count(KeyedBolt[Any, Item, str]):
    """Counts."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        self.total += 1
        out.emit(tup.value.word)

    def merge(self, other: Self) -> None:
        self.total += other.total


class Single(Count):
    """Takes each input by itself."""

    merge: Any = KeyedBolt.merge


class Kinds(KeyedBolt[str, Item, str]):
    """Has a state of each kind."""

    places = ListOf(int)
    lengths = MapOf(int, int)
    basket = Value(Basket, factory=Basket)
    latest = Value(int, ttl=60)

    def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        place = tup.value.place
        self.places.append(place)
        self.lengths[place % 3] = self.lengths.get(place % 3, 0) + 1
        self.basket.places.append(place)
        self.latest = max(place, self.latest or 0)
        if place % 7 == 0:
            raise Reject("seven")
        if tup.attempt == 1 and place % 5 == 0:
            raise ValueError("not yet")

    def merge(self, other: Self) -> None:
        self.places.extend(other.places)
        for third, count in other.lengths.items():
            self.lengths[third] = self.lengths.get(third, 0) + count
        self.basket.places += other.basket.places
        self.latest = max(other.latest or 0, self.latest or 0)


class SingleKinds(Kinds):
    """Takes each input by itself."""

    merge: Any = KeyedBolt.merge


def items(text: str) -> list[Item]:
    return [Item(letter, place) for place, letter in enumerate(text)]


def topology(logic: Any, **options: Any) -> Topology:
    made = Topology("folding", replay_delay=0.001)
    by_word(made, logic, outputs=str, **options)
    return made


def folded(logic: Any, inputs: Sequence[Item], **options: Any) -> Twin:
    return run(topology(logic), sources={"items": list(inputs)}, **options)


def sent(done: Twin) -> int:
    """Tuples that went from one stage to another."""
    return sum(line.emitted for line in done.lines)


def test_fewer_tuples_make_the_same_counts() -> None:
    """One for each key and producer task, where there was one for each input."""
    merged, single = folded(Count, items(TEXT)), folded(Single, items(TEXT))
    for done in (merged, single):
        assert left_by(topology(Count), done.left) == {"count.total": dict(Counter(TEXT))}
    assert (sent(single), sent(merged)) == (len(TEXT), 2 * len(set(TEXT)))
    assert len(merged.acked) == len(TEXT)


def test_inputs_that_fail_go_by_themselves() -> None:
    """What they have changed is undone on the way, too, and what is given up is the same."""
    inputs = items(TEXT[:60])
    merged, single = folded(Kinds, inputs), folded(SingleKinds, inputs)
    for done in (merged, single):
        assert sorted(item.place for item in done.failed) == [*range(0, 60, 7)]
    assert in_order(left_by(topology(Kinds), merged.left)) == in_order(left_by(topology(Kinds), single.left))
    assert 12 + 9 <= sent(merged) < 40


_items = st.lists(st.builds(Item, st.sampled_from("abcde"), st.integers(0, 40)), max_size=50)


@FEW
@given(_items, st.lists(_items, max_size=2), st.integers(1, 3), st.sampled_from([1, 3, 100]))
def test_any_inputs_leave_the_same_state_with_and_without_merge(
    first: list[Item], more: list[list[Item]], spouts: int, keys: int
) -> None:
    """In one epoch after another, and however often what was folded leaves."""
    found = list[Any]()
    with patch.object(merging, "MOST_KEYS", keys), patch.object(merging, "FEW", keys):
        for logic in (Kinds, SingleKinds):
            rows, failed = [], list[int]()
            for inputs in (first, *more):
                done = folded(logic, inputs, states=rows, spouts=spouts)
                rows = done.left
                failed += [item.place for item in done.failed]
            found.append((in_order(left_by(topology(Kinds), rows)), sorted(failed)))
    assert found[0] == found[1]


def test_a_single_state_is_folded_too() -> None:
    """Where all inputs go to one task it saves the most."""
    made = Topology("folding")
    made.bolt("count", Count, made.spout("items", [Item("a", 0)], outputs=Item).global_(), outputs=str)
    done = run(made, sources={"items": items(TEXT)}, spouts=3)
    assert left_by(made, done.left) == {"count.total": {None: len(TEXT)}}
    assert sent(done) == 3


def taken(made: Topology, logic: Any, **options: Any) -> None:
    made.bolt("print", str, by_word(made, logic, outputs=str, **options).shuffle())


class Asks(Count):
    """Has timers."""

    def on_timer(self, at: float, out: Collector[str]) -> None:
        del self.total


class Prepares(Count):
    """Makes something when its task begins."""

    def prepare(self, context: TaskContext) -> None:
        self.made = 1


class Waits(KeyedBolt[Any, Item, str]):
    """Is asynchronous."""

    total = Value(int, 0)

    async def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
        self.total += 1

    def merge(self, other: Self) -> None:
        self.total += other.total


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda made: taken(made, Count), "'print' takes what it emits for each of them"),
        (lambda made: by_word(made, Asks, outputs=str), "it has on_timer, which is for its tasks alone"),
        (lambda made: by_word(made, Prepares, outputs=str), "it has prepare, which is for its tasks alone"),
        (lambda made: by_word(made, Waits, outputs=str), "its execute is asynchronous"),
    ],
)
def test_inputs_go_one_by_one_where_it_could_be_seen(build: Callable[[Topology], Any], reason: str) -> None:
    """With the reason, for the user; the state is the same."""
    made = Topology("folding")
    build(made)
    description = made.describe()
    assert unfolded(description.bolts["count"], description) == reason
    done = run(made, sources={"items": items(TEXT)})
    assert left_by(made, done.left)["count.total"] == dict(Counter(TEXT))
    assert done.statistics().components["count"].executed == len(TEXT)


def test_a_merge_that_raises_fails_the_messages_of_all() -> None:
    """As an input does; what it has changed is undone."""

    class Wrong(Count):
        def merge(self, other: Self) -> None:
            self.total += 1
            raise ArithmeticError("cannot add")

    done = run(topology(Wrong), sources={"items": items("aaaabbbb")}, spouts=2)
    assert len(done.failed) == 4
    assert left_by(topology(Wrong), done.left) == {"count.total": {"a": 2, "b": 2}}
    assert "cannot add" in str(done.dead_letters[0].failure)


def test_merge_is_not_called_for_the_first_of_a_key() -> None:
    """What comes is its state then."""

    class Never(Count):
        def merge(self, other: Self) -> None:
            raise AssertionError

    done = run(topology(Never), sources={"items": items("aabb")}, spouts=1)
    assert left_by(topology(Never), done.left) == {"count.total": {"a": 2, "b": 2}}


def test_a_later_attempt_is_executed_by_the_task() -> None:
    """So that it sees its attempt."""

    class Sees(Count):
        attempts = MapOf(int, int)

        def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
            self.attempts[tup.attempt] = self.attempts.get(tup.attempt, 0) + 1

        def merge(self, other: Self) -> None:
            for attempt, count in other.attempts.items():
                self.attempts[attempt] = self.attempts.get(attempt, 0) + count

    failed = list[int]()

    def once(item: Item) -> Item:
        if item.place % 2 and item.place not in failed:
            failed.append(item.place)
            raise ValueError("not yet")
        return item

    made = Topology("folding", replay_delay=0.001)
    source = made.spout("items", [Item("a", 0)], outputs=Item)
    made.bolt("count", Sees, made.bolt("once", once, source.shuffle()).fields("word"), outputs=str)
    done = run(made, sources={"items": items("a" * 10)}, spouts=1)
    assert left_by(made, done.left)["count.attempts"] == {"a": {1: 5, 2: 5}}


def test_a_constructor_that_raises_is_named() -> None:
    """As that of a task is."""

    class Broken(Count):
        def __init__(self) -> None:
            raise OSError("no room")

    with pytest.raises(StartFailed, match="bolt 'count'"):
        folded(Broken, items("a"))


def test_an_input_that_is_refused_by_its_collector_goes_by_itself() -> None:
    """As one whose call raises."""

    class Fails(Count):
        def execute(self, tup: Tuple[Item], out: Collector[str]) -> None:
            self.total += 1
            if tup.value.place % 3 == 0:
                out.fail(tup, "three", permanent=True)
            else:
                out.ack(tup)

    done = folded(Fails, items("a" * 30))
    assert sorted(item.place for item in done.failed) == [*range(0, 30, 3)]
    assert left_by(topology(Fails), done.left) == {"count.total": {"a": 20}}


class Passes(BasicBolt[Item, Item]):
    """Hands inputs on, each in a tree of its own."""

    def execute(self, tup: Tuple[Item], out: Collector[Item]) -> None:
        out.emit(tup.value)


@pytest.mark.parametrize("fused", [True, False])
def test_where_there_is_no_use_in_it_inputs_go_by_themselves(*, fused: bool) -> None:
    """Once it has shown that most keys have one input; before, each of them goes as it is, too."""
    many = [Item(f"{number}", number) for number in range(3000)]
    made = Topology("folding")
    source = made.spout("items", many, outputs=Item)
    before = source if fused else made.bolt("passes", Passes, source.shuffle(), outputs=Item)
    made.bolt("count", Count, before.fields("word"), parallelism=3, outputs=str)
    executed = list[int]()
    with patch.object(Execution, "add_all", _noting(executed)), patch.object(merging, "MOST_KEYS", 50):
        done = run(made, sources={"items": many}, spouts=1)
    assert left_by(made, done.left) == {"count.total": {f"{number}": 1 for number in range(3000)}}
    assert sent(done) == 3000
    assert sum(executed) <= 1000 + 50


def _noting(executed: list[int]) -> Any:
    def add_all(self: Execution, keys: Sequence[Any], values: Sequence[Any]) -> Sequence[int]:
        executed.append(len(values))
        return adds(self, keys, values)

    adds = Execution.add_all
    return add_all
