"""Single rules of tables: keys, values and ttl (law K1, K3, K6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeVar, cast
from uuid import UUID

import msgspec
import pytest

from stormlet.core.state import rounds
from stormlet.core.state.codecs import is_immutable, unfit
from stormlet.core.state.commits import StateId
from stormlet.core.state.map_table import MapTable
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import ValueTable


@pytest.fixture(autouse=True, scope="module")
def rounds_at_once() -> Iterator[None]:
    """Rounds of small states, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "LEAST_LOG", 0)
        yield


ID = StateId("count", "total")


class Point(msgspec.Struct, frozen=True):
    """Immutable by its type."""

    x: int
    y: float = 0.0


class Box(msgspec.Struct, frozen=True):
    """Frozen, and yet its list can change."""

    items: list[int]


class Node(msgspec.Struct, frozen=True):
    """Holds itself."""

    next: Node | None = None


class Cart(msgspec.Struct):
    """Can change in place."""

    items: list[str]


class Loose(msgspec.Struct):
    """Is not frozen, and that is all."""

    x: int


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: str


class Day(Enum):
    """A choice."""

    MONDAY = "mon"


class Stranger:
    """No record."""


def table(kind: Any, **more: Any) -> ValueTable:
    return cast(ValueTable, State(ID, Declared("value", kind, **more)).tables[0])


def reloaded(kind: Any, at: Any, value: Any, *, key: Any = Any) -> dict[Any, Any]:
    """What another run finds."""
    first, second = (State(ID, Declared("value", kind, key=key)) for _ in range(2))
    cast(ValueTable, first.tables[0]).put(at, value)
    second.load([each.blob for each in first.seal()])
    return dict(second.tables[0].committed_items())


KEYS = [
    (str, "é"), (int, -(2**63)), (float, 0.5), (bytes, b"x"), (bool, True), (type(None), None),
    (Decimal, Decimal("1.0")), (date, date(2026, 1, 1)),
    (datetime, datetime(2026, 1, 1, tzinfo=UTC)), (UUID, UUID(int=7)),
    (Day, Day.MONDAY), (Point, Point(1)), (Pair, Pair(1, "x")), (tuple[str, Point], ("a", Point(1))),
    (str | int, 1), (Literal["x"], "x"), (Any, ("a", (1, None))), (Any, None), (Any, 2**64 - 1),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_a_key_comes_back_as_it_was(kind: Any, key: Any) -> None:
    """With its type (law K1)."""
    found = reloaded(int, key, 1, key=kind)
    assert found == {key: 1}
    assert type(next(iter(found))) is type(key)


@pytest.mark.parametrize(
    ("kind", "keys"), [(int, [1, 1.0, True, Decimal(1)]), (float, [1.0, 1]), (Any, [True, 1.0, 1])]
)
def test_equal_keys_are_one(kind: Any, keys: list[Any]) -> None:
    """Whatever their types are (law K1)."""
    found = table(int, key=kind)
    for key in keys:
        found.put(key, (found.get(key) or 0) + 1)
    assert found.changes == 1
    assert reloaded(int, keys[-1], 1, key=kind) == {1: 1}


@pytest.mark.parametrize(
    ("kind", "key", "way_out"),
    [
        (
            Any,
            Point(1),
            r"does not come back from the store as any basic type; without .* as in KeyedBolt\[Day",
        ),
        (Any, Decimal(1) / 3, "does not come back"),
        (Any, Day.MONDAY, "does not come back"),
        (Any, 2**64, "does not come back"),
        (
            Any,
            "\ud800",
            "it has halves of characters .lone surrogates.; group by .* replaces them, or by bytes",
        ),
        (str, "a\udfff", "it has halves of characters"),
        (Any, float("nan"), "nan is equal to no key, .*; group by .* another key for it, such as None"),
        (Decimal, Decimal("NaN"), "is equal to no key"),
        (int, "1", r"as int; group by a key of that type, or declare another one as the first type argument"),
        (int, 1.5, "as int"),
        (str, 1, "as str"),
    ],
)
def test_a_key_that_would_not_come_back_is_refused(kind: Any, key: Any, way_out: str) -> None:
    """When it first comes, with the way out (law K1)."""
    with pytest.raises(TypeError, match=rf"^bolt 'count', state 'total': the key .*{way_out}"):
        table(int, key=kind).put(key, 1)


VALUES = [
    (int, 2**64 - 1), (float, float("inf")), (float, 1), (int, True), (str, "é"), (Decimal, Decimal("1.0")),
    (Day, Day.MONDAY), (Point, Point(1, 2)), (tuple[int, ...], (1, 2)), (int | str, "a"),
    (Cart, Cart(["a"])), (list[Point], [Point(1)]),
    (dict[str, int], {"a": 1}), (set[int], {1}), (Node, Node(Node())), (Cart | int, Cart(["a"])),
    (Cart | int, 7), (Box, Box([1])), (bytearray, bytearray(b"x")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_a_value_comes_back_as_it_was(kind: Any, value: Any) -> None:
    """Of whatever type it is declared."""
    assert unfit(kind) is None
    assert reloaded(kind, "a", value) == {"a": value}


def test_a_record_with_nan_is_kept() -> None:
    """Although it is equal to nothing."""
    assert str(reloaded(Point, "a", Point(1, float("nan")))["a"].y) == "nan"


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (int, 2**64, "cannot be kept as int: a store keeps ints of 64 bits; keep a larger one as str"),
        (int, "one", "the value 'one' cannot be kept as int: it is of type str"),
        (str, "\ud800", "cannot be kept as str: 'utf-8' codec"),
        (Point, Point(cast(int, "x")), r"cannot be kept as Point: Expected `int`, got `str`"),
        (Cart, Point(1), "cannot be kept as Cart: it is of type Point"),
        (int | str, 1.5, r"cannot be kept as int \| str"),
    ],
)
def test_a_value_that_would_not_come_back_is_refused(kind: Any, value: Any, says: str) -> None:
    """When it is set, with state and key."""
    with pytest.raises(TypeError, match=rf"^bolt 'count', state 'total', key 'a': the value .*{says}|{says}"):
        table(kind).put("a", value)


class Branch(msgspec.Struct):
    """A value that may hold itself."""

    name: str = ""
    branches: list[Branch] = []


def endless() -> Branch:
    made = Branch()
    made.branches.append(made)
    return made


def unset() -> Branch:
    made = Branch()
    del made.name
    return made


@pytest.mark.parametrize(
    ("make", "says"), [(endless, "maximum recursion depth exceeded"), (unset, "Struct field 'name' is unset")]
)
def test_a_value_that_cannot_be_encoded_is_named_when_its_epoch_ends(
    make: Callable[[], Branch], says: str
) -> None:
    """It might have changed until then."""
    with pytest.raises(
        TypeError,
        match=rf"^bolt 'count', state 'total', key 'a': the value .* cannot be kept as Branch: {says}",
    ):
        reloaded(Branch, "a", make())


def test_a_long_key_is_shortened() -> None:
    """In a message."""
    with pytest.raises(TypeError) as refused:
        table(int).put("a" * 10_000, "one")
    assert len(str(refused.value)) < 500


def test_a_subclass_is_refused() -> None:
    """It would come back as its base."""

    class Further(Point, frozen=True):
        z: int = 0

    with pytest.raises(TypeError, match="cannot be kept as Point: it would come back as another value"):
        table(Point).put("a", Further(1))


@pytest.mark.parametrize(
    "kind", [int, Point, Pair, Day, Node, tuple[int, Literal[1], Point], Point | None, frozenset[int]]
)
def test_some_types_cannot_change(kind: Any) -> None:
    """Their values are kept as they are."""
    assert is_immutable(kind)


@pytest.mark.parametrize(
    "kind", [list[int], Cart, Loose, Box, tuple[Cart, int], Cart | int, tuple, set[int], Stranger]
)
def test_others_can(kind: Any) -> None:
    """By what they are, or by what they hold."""
    assert not is_immutable(kind)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (5, "5 is no type; pass a class, such as int"),
        ([], r"\[\] is no type; pass a class, such as list"),
        (Stranger, "Stranger cannot be kept, because of Stranger; keep a record of basic types"),
        (list[Stranger], r"list\[Stranger\] cannot be kept, because of Stranger"),
        (dict, r"dict does not say of what types its parts are; name them, as in dict\[str, int\]"),
        (Any, "Any does not say"),
        (Cart | Point, r"Cart \| Point cannot be kept: If a type union contains"),
    ],
)
def test_a_type_that_cannot_be_kept_is_told(kind: Any, says: str) -> None:
    """With the way out."""
    assert re.search(says, unfit(kind) or "")


def test_what_is_committed_is_an_object_of_its_own() -> None:
    """Whoever changes it changes nothing (law K8)."""
    state = State(ID, Declared("value", Cart))
    found = cast(ValueTable, state.tables[0])
    found.put("a", Cart(["x"]))
    state.seal()
    found.committed("a").items.append("y")
    assert found.committed("a") == Cart(["x"])


def test_a_key_that_is_refused_leaves_nothing_behind() -> None:
    """The overlay is as before, also where the value fits (law K1)."""
    found = table(int, key=str)
    with pytest.raises(TypeError, match="does not come back"):
        found.put(cast(Any, 1), 2)
    assert (found.changes, found.changed) == (0, {})


@pytest.mark.parametrize("kind", [int, Cart])
def test_a_value_that_is_too_old_is_absent(kind: Any) -> None:
    """To the second, until it is set again, be it to the same (law K6)."""
    value = {int: 1, Cart: Cart(["x"])}[kind]
    state = State(ID, Declared("value", kind, ttl=10.0))
    found = cast(ValueTable, state.tables[0])
    found.put("a", value)
    found.put("b", value)
    blobs = [each.blob for each in state.seal()]
    state.tell(9.9)
    found.put("b", value)
    assert found.get("a") == value
    blobs += [each.blob for each in state.seal()]
    state.tell(10.0)
    again = State(ID, state.declared)
    again.load(blobs)
    again.tell(10.0)
    for each in (found, cast(ValueTable, again.tables[0])):
        assert (each.get("a"), each.get("b"), dict(each.committed_items())) == (None, value, {"b": value})


def test_the_round_frees_what_is_too_old() -> None:
    """In memory, and in the log (law K6)."""
    state = State(ID, Declared("value", int, ttl=10.0))
    found = cast(ValueTable, state.tables[0])
    for number in range(100):
        found.put(number, 1)
    state.seal()
    state.tell(20.0)
    appends = []
    for _ in range(60):
        found.put("new", 2)
        appends += state.seal()
    assert (found.size, len(found.written)) == (1, 1)
    begins = [number for number, each in enumerate(appends) if each.begins_round]
    again = State(ID, state.declared)
    again.load([each.blob for each in appends[begins[-2] :]])
    assert again.size == 1


def test_a_list_that_is_too_old_does_not_come_back() -> None:
    """A new item begins a new list (law K6)."""
    state = State(ID, Declared("list", int, int, ttl=10.0))
    found = cast(MapTable, state.tables[0])
    for index in range(3):
        found.put("a", index, index)
    blobs = [each.blob for each in state.seal()]
    state.tell(10.0)
    assert (found.length("a"), found.committed("a"), list(found.inner("a"))) == (0, None, [])
    found.put("a", 0, 7)
    assert found.length("a") == 1
    blobs += [each.blob for each in state.seal()]
    again = State(ID, state.declared)
    again.load(blobs)
    again.tell(10.0)
    for each in (state, again):
        assert dict(each.tables[0].committed_items()) == {"a": [7]}


def test_entries_of_a_map_grow_old_one_by_one() -> None:
    """Each from the time when it was set (law K6)."""
    state = State(ID, Declared("map", int, str, ttl=10.0))
    found = cast(MapTable, state.tables[0])
    found.put("a", "old", 1)
    state.seal()
    state.tell(5.0)
    found.put("a", "new", 2)
    state.seal()
    state.tell(10.0)
    assert (found.length("a"), list(found.inner("a")), found.committed("a")) == (1, ["new"], {"new": 2})
    found.put("a", "old", 3)
    assert found.length("a") == 2


def test_a_key_of_a_map_is_refused_as_any_key() -> None:
    """Where it is set; the length stays."""
    state = State(ID, Declared("map", int, str))
    found = cast(MapTable, state.tables[0])
    with pytest.raises(
        TypeError, match=r"^bolt 'count', state 'total': the key 1 does not come back .* as str"
    ):
        found.put("a", 1, 1)
    assert found.length("a") == 0


def test_the_round_frees_what_is_too_old_of_maps() -> None:
    """As of single values (law K6)."""
    state = State(ID, Declared("map", int, str, ttl=10.0))
    found = cast(MapTable, state.tables[0])
    for number in range(100):
        found.put(number % 3, str(number), 1)
    state.seal()
    state.tell(20.0)
    for _ in range(60):
        found.put("new", "x", 2)
        state.seal()
    assert (found.size, found.written) == (1, {("new", "x"): 20.0})


def test_a_table_says_that_it_was_touched() -> None:
    """By a change, and by reading what can be changed in place (law X6)."""
    numbers, carts = table(int), table(Cart)
    numbers.get("a")
    assert not numbers.touched
    for touch in (lambda: numbers.put("a", 1), lambda: numbers.delete("a"), lambda: carts.get("a")):
        numbers.touched = carts.touched = False
        touch()
        assert numbers.touched or carts.touched


def test_the_round_writes_what_a_map_has_when_it_comes_to_it() -> None:
    """Not what it had when the round began: entries are gone, and maps are others under the same key."""
    state = State(ID, Declared("map", int, str))
    found = cast(MapTable, state.tables[0])
    for number in range(100):
        found.put("a", str(number), 1)
    blobs = [each.blob for each in state.seal()]
    for epoch in range(30):
        for inner in list(found.inner("a")):
            found.put("a", inner, None)
        blobs += [each.blob for each in state.seal()]
        for number in range(epoch, 100, 2):
            found.put("a", str(number), epoch)
        blobs += [each.blob for each in state.seal()]
        found.put("b", "x", epoch)
        blobs += [each.blob for each in state.seal()]
        again = State(ID, state.declared)
        again.load(blobs)
        assert dict(again.tables[0].committed_items()) == dict(found.committed_items())


def test_a_type_that_is_no_class_may_change() -> None:
    """As nothing is known of it."""
    assert not is_immutable(TypeVar("T"))


def test_a_map_whose_entries_are_all_too_old_is_no_item() -> None:
    """As for ``committed``."""
    state = State(ID, Declared("map", int, str, ttl=10.0))
    table = cast("MapTable", state.tables[0])
    state.tell(0.0)
    table.put("old", "x", 1)
    state.seal()
    state.tell(9.0)
    table.put("new", "x", 2)
    state.seal()
    state.tell(15.0)
    assert dict(table.committed_items()) == {"new": {"x": 2}}
