"""What is refused of bolts with state when they are added (law K1, K2)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, Self

import msgspec
import pytest

from stormlet import BasicBolt, Cell, Collector, KeyedBolt, ListOf, MapOf, Stream, Topology, Tuple, Value
from stormlet.core.state.tables import Declared
from stormlet.errors import InvalidTopology
from stormlet.model.checks.keyed import key_reader
from stormlet.model.logic import LogicKind


class Word(msgspec.Struct, frozen=True):
    """What the streams carry."""

    text: str
    length: int


class Count(KeyedBolt[str, Word, Word]):
    """Counts."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[Word], out: Collector[Word]) -> None:
        """Count."""


class Later(Count):
    """Awaits."""

    async def execute(self, tup: Tuple[Word], out: Collector[Word]) -> None:  # type: ignore[override]
        """Count, later."""


def counted(word: Word, total: Cell[int]) -> Word:
    """Count in a function."""
    return word


async def counted_later(word: Word, total: Cell[int]) -> AsyncIterator[Word]:
    """Count, later."""
    yield word


class World:
    """A topology with one spout."""

    def __init__(self) -> None:
        self.topology = Topology("words")
        self.words = self.topology.spout("words", outputs=Word)

    def add(self, logic: Any, *inputs: Any, **options: Any) -> Stream[Any]:
        return self.topology.bolt("count", logic, *inputs or [self.words.fields("text")], **options)

    def spec(self, logic: Any, **options: Any) -> Any:
        self.add(logic, **options)
        return self.topology.describe().bolts["count"]


def refused(logic: Any, says: str, *inputs: Callable[[Stream[Word]], Any], **options: Any) -> None:
    world = World()
    with pytest.raises(InvalidTopology, match=says):
        world.add(logic, *(each(world.words) for each in inputs), **options)


@pytest.mark.parametrize("logic", [Count, partial(Count), Later])
def test_a_description_has_the_states_of_a_class(logic: Any) -> None:
    """With the type of its keys."""
    spec = World().spec(logic)
    assert (spec.keyed, spec.kind) == (True, LogicKind.FACTORY)
    assert spec.states == {"total": Declared("value", int, key=str)}


@pytest.mark.parametrize("logic", [counted, counted_later, partial(counted)])
def test_a_description_has_the_state_of_a_function(logic: Any) -> None:
    """By the name of the parameter."""
    total = Value(int, 0)
    spec = World().spec(logic, state=total)
    assert (spec.keyed, spec.kind, spec.state) == (True, LogicKind.FUNCTION, total)
    assert spec.states == {"total": Declared("value", int)}


def test_another_bolt_has_none() -> None:
    """It is as it was."""
    spec = World().spec(lambda word: word)
    assert (spec.keyed, spec.states, spec.state) == (False, {}, None)


@pytest.mark.parametrize(
    ("grouped", "name"),
    [
        (lambda words: words.shuffle(), "shuffle"),
        (lambda words: words.all(), "all"),
        (lambda words: words.partial_key("text"), "partial_key"),
        (lambda words: words.none(), "none"),
        (lambda words: words.local_or_shuffle(), "local_or_shuffle"),
    ],
)
def test_only_groupings_by_key_are_allowed(grouped: Any, name: str) -> None:
    """The others do not bring equal keys to one task (law K1)."""
    says = rf"^bolt 'count' has state for each key, and \.{name}\(\) on .*; use \.fields\(\.\.\.\), or \.global_\(\)"
    refused(Count, says, grouped)
    refused(counted, says, grouped, state=Value(int, 0))


def test_a_later_input_is_held_to_it_as_well() -> None:
    """By ``connect`` (law K1)."""
    world = World()
    counts, others = world.add(Count), world.topology.spout("others", outputs=Word)
    with pytest.raises(InvalidTopology, match=r"^bolt 'count' has state for each key, and \.shuffle"):
        world.topology.connect(counts, others.shuffle())
    world.topology.connect(counts, others.fields("text"))


@pytest.mark.parametrize(
    ("grouped", "says"),
    [
        (
            lambda words: words.fields("length"),
            "declared by keys of type str, and .* is grouped by int; group all",
        ),
        (lambda words: words.fields("text", "length"), r"declared by .* grouped by tuple\[str, int\]"),
        (lambda words: words.fields(), "is grouped by Word"),
        (lambda words: words.global_(), "is grouped by None"),
    ],
)
def test_the_keys_are_those_that_are_declared(grouped: Any, says: str) -> None:
    """As far as annotations tell (law K1)."""
    refused(Count, rf"^bolt 'count': the bolt is {says}|^bolt 'count': .*{says}", grouped)


@pytest.mark.parametrize(
    "grouped", [lambda words: words.fields("text"), lambda words: words.fields(lambda word: word.length)]
)
def test_keys_of_unknown_type_are_taken(grouped: Any) -> None:
    """The first one that comes tells."""
    world = World()
    world.add(Count, grouped(world.words))


def test_all_inputs_are_grouped_by_one_type() -> None:
    """Where the bolt declares none (law K1)."""
    world = World()
    others = world.topology.spout("others", outputs=Word)
    with pytest.raises(
        InvalidTopology, match=r"'words' is grouped by keys of type str, and .*'others' .* by int"
    ):
        world.add(counted, world.words.fields("text"), others.fields("length"), state=Value(int, 0))


def test_a_stream_is_subscribed_once() -> None:
    """Two groupings of it would give two keys to one tuple."""
    refused(
        Count,
        r"^bolt 'count' has state and two inputs from stream 'default' of 'words'; subscribe it once$",
        lambda words: words.fields("text"),
        lambda words: words.fields(lambda word: "x"),
    )


def test_numbers_are_keys_of_one_type() -> None:
    """As equal ones are one key."""

    class Lengths(KeyedBolt[float, Word, Word]):
        def execute(self, tup: Tuple[Word], out: Collector[Word]) -> None: ...

    world = World()
    world.add(Lengths, world.words.fields("length"))


@pytest.mark.parametrize("logic", [Count, Later, counted])
def test_state_is_not_touched_by_other_threads(logic: Any) -> None:
    """The way out is to await one."""
    options = {"state": Value(int, 0)} if logic is counted else {}
    refused(logic, r"^bolt 'count' has state, .* await asyncio\.to_thread", executor="thread", **options)


def test_only_calls_that_await_may_overlap() -> None:
    """The others would not (law K2)."""
    refused(
        Count,
        r"^bolt 'count' has state, and with concurrency=2 its calls would overlap only if",
        concurrency=2,
    )
    refused(counted, "overlap only if", concurrency=2, state=Value(int, 0))
    World().add(Later, concurrency=2)
    World().add(counted_later, concurrency=2, state=Value(int, 0))


async def later(old: object) -> int:
    """Upgrade a value, too late."""
    return 0


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (Value(7), r"7 is no type; pass a class, such as int"),  # type: ignore[arg-type]
        (Value(object), r"object does not say|object cannot be kept"),
        (Value(list[int], []), r"all keys would share the default \[\], which can change; .* factory=list$"),
        (Value(int, 1, factory=int), r"it has a default and a factory; leave one out"),  # type: ignore[call-overload]
        (Value(int, "zero"), r"its default does not fit: the value 'zero' cannot be kept as int"),
        (Value(int, 0, ttl=0), r"ttl must be a number of seconds above 0, or None, not 0"),
        (Value(int, 0, upgrade=later), r"upgrade=<function later .*> is async; pass a plain function"),
        (Value(int, 0, upgrade="int"), r"upgrade='int' cannot be called; pass a plain function"),  # type: ignore[call-overload]
        (MapOf(World, int), r"World cannot be kept, because of World"),
        (MapOf(str, World), r"World cannot be kept, because of World"),
        (ListOf(World), r"World cannot be kept, because of World"),
    ],
)
def test_a_state_that_cannot_be_kept_is_refused(state: Any, says: str) -> None:
    """Component and state are named, with the way out (law K1)."""
    broken = type("Broken", (Count,), {"broken": state})
    refused(broken, rf"^bolt 'count': state 'broken': .*({says})")


@pytest.mark.parametrize("upgrade", [None, int, lambda old: len(old)])
def test_an_upgrade_is_whatever_makes_a_value(upgrade: Any) -> None:
    """A type is as good as a function (law K5)."""
    World().add(type("Upgraded", (Count,), {"other": Value(int, 0, upgrade=upgrade)}))


def test_a_name_is_declared_once() -> None:
    """A class and its base would keep two states under one name (law K1)."""
    again = type("Again", (Count,), {"total": Value(str)})
    refused(
        again,
        r"^bolt 'count': Again declares the state 'total' again, which Count declares; give it another name$",
    )


async def _later(self: object, other: object) -> None:
    """Await."""


def _of_inputs(self: object, other: Word) -> None:
    """Take an input."""


def _yields(self: object, other: object) -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    "merge",
    [
        staticmethod(lambda one, other: one),
        lambda self: None,
        lambda self, one, other: None,
        _later,
        _yields,
        _of_inputs,
        Value(int, 0),
        None,
    ],
)
def test_a_merge_takes_the_other_state(merge: Any) -> None:
    """As a method that returns when it is done: that of an ordinary bolt, of two inputs, is none (law K10)."""
    with pytest.raises(
        InvalidTopology, match=r"merge of Odd is to fold in .* write def merge\(self, other: Self\)"
    ):
        World().add(type("Odd", (Count,), {"merge": merge}))


def test_a_merge_may_be_inherited() -> None:
    """Whatever its parameter is called, and of whichever base."""
    base = type("Base", (Count,), {"merge": lambda self, theirs, *more: None})
    World().add(type("Count2", (base,), {}))
    World().add(type("Count3", (Count,), {"merge": lambda *both: None}))
    World().add(type("Count4", (Count,), {"merge": _of_base}))


def _of_base(self: object, other: Count) -> None:
    """Take what its base does."""


def test_a_merge_of_its_own_class_is_taken() -> None:
    """However its annotation says so."""

    class Merges(Count):
        """Names a class that is found only here."""

        def merge(self, other: Merges) -> None:
            """Fold it in."""

    class MergesSelf(Count):
        """Says what is usual."""

        def merge(self, other: Self) -> None:
            """Fold it in."""

    class MergesAny(Count):
        """Says nothing."""

        def merge(self, other: Any) -> None:
            """Fold it in."""

    for logic in (Merges, MergesSelf, MergesAny):
        World().add(logic)


def test_keys_of_a_union_are_taken() -> None:
    """It does not say which one comes."""

    class Either(KeyedBolt[str | int, Word, Word]):
        def execute(self, tup: Tuple[Word], out: Collector[Word]) -> None: ...

    world = World()
    world.add(Either, world.words.fields("length"))


def test_a_value_needs_no_default() -> None:
    """It reads as None."""
    named = type("Named", (Count,), {"name": Value(str)})
    assert list(World().spec(named).states) == ["total", "name"]


def test_a_class_without_state_may_be_any_bolt() -> None:
    """It has nothing to lose."""
    plain = type("Plain", (BasicBolt,), {"execute": lambda self, tup, out: None})
    assert not World().spec(plain).keyed


def test_state_belongs_to_a_keyed_bolt() -> None:
    """Another one has no keys."""
    odd = type("Odd", (BasicBolt,), {"total": Value(int, 0), "execute": lambda self, tup, out: None})
    refused(
        odd,
        r"^bolt 'count': Odd declares the state 'total' and is no KeyedBolt; derive it .* instead of BasicBolt$",
    )


@pytest.mark.parametrize(
    ("logic", "state", "says"),
    [
        (counted, int, r"state=<class 'int'> is no state; pass state=Value\(int, 0\)"),
        (counted, MapOf(str, int), r"is no state; pass state=Value\(int, 0\), or derive from KeyedBolt"),
        (counted, Value([]), r"state 'total': \[\] is no type"),  # type: ignore[arg-type]
        (Count, Value(int, 0), r"state= is for functions; a class declares its states as attributes"),
        (
            len,
            Value(int, 0),
            r"takes the value and a cell of the state; write def len\(value, total: Cell\[int\]\)",
        ),
        (lambda: None, Value(int, 0), r"takes the value and a cell"),
    ],
)
def test_a_function_takes_a_cell_of_its_state(logic: Any, state: Any, says: str) -> None:
    """Nothing else (law K1)."""
    refused(logic, rf"^bolt 'count': .*{says}", state=state)


def test_acks_are_needed() -> None:
    """The rule is that of every bolt that says so (law X5)."""
    assert Count.needs_acks
    assert not Count.keeps_state


def test_the_key_is_read_as_the_grouping_says() -> None:
    """One field, several as a tuple, the whole value, and None."""
    words, value = World().words, Word("moon", 4)
    read = [key_reader(each)(value) for each in (
        words.fields("text"), words.fields("text", "length"), words.fields(), words.global_(),
    )]  # fmt: skip
    assert read == ["moon", ("moon", 4), value, None]
