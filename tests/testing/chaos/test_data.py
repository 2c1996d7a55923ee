"""The data of bolts, and the comparison of two runs' changes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pytest

from stormlet import BasicBolt
from stormlet.testing.chaos.data import added, changes, data_of, frozen, is_less, spelt

TABLE = {"a": 1, "b": [2, 3]}


class Row(msgspec.Struct):
    name: str
    count: int = 0


@dataclass
class Pair:
    one: object
    other: object


class Plain:
    """Of the user's own."""

    def __init__(self) -> None:
        self.calls = 3
        self.itself = self


class Odd:
    """Cannot be compared."""

    def __hash__(self) -> int:
        raise TypeError


SAME = [
    ([1, 2, 2], [2, 1, 2]),
    ({"a": [1, 2]}, {"a": [2, 1]}),
    (deque([Row("a")]), deque([Row("a")])),
    (Pair({1}, None), Pair({1}, None)),
    (0.1 + 0.2, 0.3),
    (object(), object()),
    (Odd(), Odd()),
    (Decimal("sNaN"), Decimal("sNaN")),
]
OTHERS = [
    ([1, 2], [1, 1, 2]),
    ((1, 2), (2, 1)),
    (Row("a"), Row("b")),
    (Row("a", 1), Pair("a", 1)),
    (0.3, 0.31),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values(one: object, other: object) -> None:
    """Whatever the order of lists, and the last digits of floats; of strange objects the class alone counts."""
    assert frozen(one) == frozen(other)
    hash(frozen(one))


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_other_values(one: object, other: object) -> None:
    """Other parts, another order in a tuple, or another class."""
    assert frozen(one) != frozen(other)


def test_a_circle() -> None:
    """It ends somewhere."""
    circle: list[object] = []
    circle.append(circle)
    assert frozen(circle) is list


class Counting(BasicBolt[int, None]):
    """Has data wherever it may be."""

    limit = 7

    def __init__(self) -> None:
        self.total = 2
        self.rows = [Row("a"), Row("a"), object()]
        self.by_key = {"x": 0.5, "y": Row("b", 3)}
        self.plain = Plain()
        self.ready = True
        self.name = "text"

    def look(self) -> object:
        """Name a global."""
        return TABLE


def test_data_of_an_instance() -> None:
    """Of its attributes, of objects of the user's own, of its class, and of globals that its methods name."""
    row = frozen(Row("a"))
    assert data_of(Counting(), Counting) == {
        "self.total": 2.0,
        "self.rows": Counter({row: 2}),
        "self.by_key['x']": 0.5,
        "self.by_key['y'].count": 3.0,
        "self.plain.calls": 3.0,
        "Counting.limit": 7.0,
        "TABLE['a']": 1.0,
        "TABLE['b']": Counter([2, 3]),
    }


def closure() -> Callable[[int], None]:
    total, seen = 4, [1]

    def add(number: int) -> None:
        nonlocal total
        total += number
        if number < 0:
            print(later)
        seen.append(number)

    yet = add
    later = 5 if seen else None
    return yet


def test_data_of_functions() -> None:
    """Of their closures, of arguments of a partial, and of the owner of a method."""
    assert data_of(None, closure()) == {"later": 5.0, "seen": Counter([1]), "total": 4.0}
    assert data_of(None, partial(print, [1], end=3)) == {"argument 1": Counter([1]), "end": 3.0}
    assert data_of(None, [6].append) == {"self": Counter([6])}
    assert data_of(None, Counting().look)["TABLE['a']"] == 1.0


def test_large_collections_are_left_alone() -> None:
    """Nobody is to wait for them."""
    assert data_of(None, partial(print, list(range(2000)), dict.fromkeys(range(2000), 1))) == {}


def test_data_that_cannot_be_read() -> None:
    """What was found before is there."""

    class Strange(BasicBolt[int, None]):
        def __init__(self) -> None:
            self.total = 1
            self.huge = 10**400
            self.rows = Broken()

    class Broken:
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise OSError

    assert data_of(Strange(), Strange) == {"self.total": 1.0}


def test_changes() -> None:
    """Numbers grow by so much, and collections by so many of each thing."""
    before = {"n": 1.0, "seen": Counter("aab"), "was": 3.0, "kind": 1.0}
    after = {"n": 4.5, "seen": Counter("abb"), "new": Counter("c"), "was": 0.0, "kind": Counter("d")}
    change = changes(before, after)
    assert change == {"n": 3.5, "seen": Counter({"a": -1, "b": 1}), "new": Counter("c"), "was": -3.0}
    assert added(change, {"n": 1.0, "seen": Counter("a"), "more": 2.0, "new": 1.0}) == {
        **change,
        "n": 4.5,
        "seen": Counter({"b": 1}),
        "more": 2.0,
    }


@pytest.mark.parametrize(
    ("one", "other", "less"),
    [
        (3.0, 10.0, True),
        (-3.0, -10.0, True),
        (10.0, 10.0, False),
        (11.0, 10.0, False),
        (Counter("ab"), Counter("aab"), True),
        (Counter("c"), Counter("aab"), False),
        (Counter([15]), Counter([66]), True),
        (Counter([("a", 1)]), Counter([("a", 2)]), True),
        (Counter([("b", 1)]), Counter([("a", 2)]), False),
        (Counter([frozen({"hits": 6, "misses": 4})]), Counter([frozen({"hits": 8, "misses": 2})]), False),
        (0.0, Counter("a"), True),
    ],
)
def test_less(one: Any, other: Any, less: bool) -> None:
    """Fewer things or smaller numbers, and nothing more."""
    assert is_less(one, other) is less


def test_words() -> None:
    """Changes and values as an error tells them."""
    assert spelt(3.0) == "3"
    assert spelt(Counter([10, 9, "b"])) == "[9, 10, 'b']"
    assert (
        spelt(Counter([frozen(Row("a", 1)), frozen({"k": (1, None)})])) == "[Row('a', 1), {('k', (1, None))}]"
    )
