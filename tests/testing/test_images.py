"""Images of values, by which a change after the emit is seen."""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest

from stormlet.testing.images import can_change, image


class Struct(msgspec.Struct):
    """A record that can be changed."""

    items: list[int]


class Frozen(msgspec.Struct, frozen=True):
    """A record that cannot, and may hold what can."""

    items: Any


@dataclass
class Data:
    """The same as a dataclass."""

    items: list[int]
    note: str = field(default="", compare=False)


class Pair(NamedTuple):
    """A tuple that may hold what can be changed."""

    left: Any
    right: Any


class Plain:
    """An object of a class of its own."""

    def __init__(self) -> None:
        self.items: list[int] = []


class Awkward:
    """Equal to everything, as some arrays seem to be, and true of nothing."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("ask me elementwise")

    __hash__ = None  # type: ignore[assignment]


def set_note(value: Data) -> None:
    value.note = "new"


def deepen(value: list[Any]) -> None:
    value[0][0].append(1)


CHANGES: list[tuple[Any, Callable[[Any], object]]] = [
    ([1], lambda value: value.append(2)),
    ([1, 2], lambda value: value.reverse()),
    ({"a": 1}, lambda value: value.update(a=2)),
    ({"a": 1}, lambda value: value.pop("a")),
    (defaultdict(list), lambda value: value["read"]),
    (Counter("ab"), lambda value: value.update("a")),
    (OrderedDict(a=1, b=2), lambda value: value.move_to_end("a")),
    ({1, 2}, lambda value: value.add(3)),
    (deque([1]), lambda value: value.append(2)),
    (bytearray(b"ab"), lambda value: value.extend(b"c")),
    (array("i", [1]), lambda value: value.append(2)),
    (Struct([1]), lambda value: value.items.append(2)),
    (Frozen([1]), lambda value: value.items.append(2)),
    (Frozen({"a": Struct([1])}), lambda value: value.items["a"].items.append(2)),
    (Data([1]), lambda value: value.items.append(2)),
    (Data([1]), set_note),
    (Pair([], 1), lambda value: value.left.append(1)),
    (([],), lambda value: value[0].append(1)),
    ([[[]]], deepen),
]


@pytest.mark.parametrize(("value", "change"), CHANGES, ids=lambda each: type(each).__name__)
def test_a_change_is_seen(value: Any, change: Callable[[Any], object]) -> None:
    """Whatever was changed, at whatever depth: the next image differs, and two without a change between do not."""
    assert can_change(value)
    before = image(value)
    assert image(value) == before
    change(value)
    assert image(value) != before


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.5,
        "a",
        b"a",
        None,
        True,
        Decimal(1),
        datetime(2026, 1, 1, tzinfo=UTC),
        (),
        (1, ("a",)),
        frozenset({1}),
        Frozen(1),
        Pair(1, "a"),
    ],
    ids=repr,
)
def test_what_cannot_change_is_not_looked_after(value: object) -> None:
    """Nearly all values of streams are these, and cost one look at them."""
    assert not can_change(value)


@pytest.mark.parametrize("value", [Plain(), Awkward(), object(), print], ids=lambda each: type(each).__name__)
def test_other_objects_are_taken_as_they_are(value: object) -> None:
    """What is no container and no record stands for itself: nobody looks into it, or asks whether it is equal."""
    assert not can_change(value)
    assert image([value]) == image([value])
    assert image([value]) != image([Plain()])


def test_a_circle_ends() -> None:
    """A list that contains itself has an image, and its changes are seen."""
    circle: list[object] = [1]
    circle.append(circle)
    before = image(circle)
    assert image(circle) == before
    circle.append(2)
    assert image(circle) != before


def test_the_same_object_twice_is_no_circle() -> None:
    """Two places may hold one list."""
    shared = [1]
    before = image([shared, shared])
    shared.append(2)
    assert image([shared, shared]) != before


def test_what_is_nested_too_deeply_is_left_alone() -> None:
    """A value that Python itself cannot compare stands for itself."""
    deep: list[Any] = []
    tall: tuple[Any, ...] = ()
    for _ in range(100_000):
        deep, tall = [deep], (tall,)
    assert image(deep) == image(deep)
    assert not can_change(tall)
