"""Values as JSON, and the way back."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import sys
from decimal import Decimal
from types import ModuleType
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.report.rebuilding import CannotRebuild, portable, rebuild

NOW = dt.datetime(2026, 11, 21, 12, 30, 0, 5, tzinfo=dt.UTC)
ID = UUID("12345678-1234-5678-1234-567812345678")


class Order(msgspec.Struct):
    """A record whose fields say their types."""

    id: UUID
    at: dt.datetime
    lines: tuple[str, ...] = ()


class Loose(msgspec.Struct):
    """A record that does not say what its field holds."""

    field: object


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: float
    label: str | None = None


@dataclasses.dataclass(eq=False)
class Incomparable:
    """A dataclass that == does not compare by its fields."""

    x: int


class Pair(NamedTuple):
    """A named tuple."""

    left: int
    right: str


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"


class Level(enum.IntEnum):
    """Its members equal plain numbers."""

    LOW = 1


class Unspeakable:
    """Cannot even be shown."""

    def __repr__(self) -> str:
        raise ValueError


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        (None, "None"),
        (True, "bool"),
        (7, "int"),
        (2**200, "int"),
        (1.0, "float"),
        (-0.0, "float"),
        ("ä\x00", "str"),
        ([1, "a", None, [2.0]], "list"),
        ({"a": {"b": [1]}}, "dict"),
        ({1: "a", 2: "b"}, "dict[int, str]"),
        ((), "tuple"),
        ((1, "a"), "tuple"),
        ((1, NOW), "tuple[int, datetime.datetime]"),
        ((NOW, NOW), "tuple[datetime.datetime, ...]"),
        ([NOW], "list[datetime.datetime]"),
        ({"at": NOW, "it's": ID}, "{'at': datetime.datetime, \"it's\": uuid.UUID}"),
        (b"\x00\xff", "bytes"),
        (Decimal("1.00"), "decimal.Decimal"),
        (NOW.date(), "datetime.date"),
        (dt.timedelta(seconds=1.5), "datetime.timedelta"),
        (NOW.astimezone(ZoneInfo("Europe/Berlin")), "datetime.datetime"),
        ({1, "a"}, "set"),
        (frozenset([ID]), "frozenset[uuid.UUID]"),
        (Colour.RED, f"{__name__}.Colour"),
        (Level.LOW, f"{__name__}.Level"),
        (Pair(1, "a"), f"{__name__}.Pair"),
        (Point(1.5), f"{__name__}.Point"),
        (Order(ID, NOW, ("a",)), f"{__name__}.Order"),
        ([Order(ID, NOW)], f"list[{__name__}.Order]"),
        (Loose({"a": 1}), f"{__name__}.Loose"),
    ],
)
def test_a_value_is_rebuilt_as_it_was(value: object, expression: str) -> None:
    """What JSON holds, the standard library's small types and records come back equal and of the same type."""
    written = portable(value)
    assert written.type == expression
    again = rebuild(written.json, expression)
    assert type(again) is type(value)
    assert again == value


def without_fold(time: dt.datetime) -> dt.datetime:
    """In a zone without summer time it means nothing."""
    return time.replace(fold=0)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)
LEAVES = [
    st.none() | st.booleans() | st.integers() | st.floats() | st.decimals(),
    st.text() | st.binary() | st.uuids() | st.sampled_from([*Colour, *Level]),
    st.datetimes() | st.datetimes(timezones=st.just(dt.UTC)).map(without_fold) | st.timedeltas(),
]
ANYTHING = st.recursive(
    st.one_of(LEAVES),
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner)
    ),
)


@given(JSON)
def test_json_is_always_rebuilt(value: object) -> None:
    """What JSON itself can say needs no types."""
    written = portable(value)
    assert written.type in {"None", "bool", "int", "float", "str", "list", "dict"}
    assert repr(rebuild(written.json, written.type)) == repr(value)


@pytest.mark.untraced
@given(ANYTHING)
def test_what_is_rebuilt_is_the_same(value: object) -> None:
    """Whatever is nested in what: the value comes back as it was, or is only shown."""
    written = portable(value)
    if written.type is None:
        assert isinstance(msgspec.json.decode(written.json), str)
    else:
        assert repr(rebuild(written.json, written.type)) == repr(value)


def test_a_record_need_not_be_comparable() -> None:
    """Records without an equality of their own are compared field by field."""
    assert portable(Incomparable(1)).type == f"{__name__}.Incomparable"


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        [math.inf],
        "\ud800",
        10**5000,
        {1: "a", 2: 3},
        {"a": 1, 2: 3},
        [NOW, "a"],
        [Level.LOW, 1],
        Loose((1, 2)),
        Loose(NOW),
        Point(1),
        Decimal("NaN"),
        NOW.replace(tzinfo=None, fold=1),
        object(),
        1j,
        Order,
        Unspeakable(),
        [Unspeakable()],
        endless(),
        nested(100_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_come_back_different_is_shown_instead(value: object) -> None:
    """A value that JSON changes, that no type expression describes, or that fails all attempts to read it, becomes
    its repr, or what can be said instead."""
    written = portable(value)
    assert written.type is None
    assert isinstance(msgspec.json.decode(written.json), str)


def test_a_class_of_a_function_is_not_found_again() -> None:
    """A class that its module does not have under its name cannot be rebuilt."""

    class Local(msgspec.Struct):
        x: int

    assert portable(Local(1)).type is None


def test_another_class_of_the_name_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value whose class was replaced in its module meanwhile cannot be rebuilt."""
    order = Order(ID, NOW)
    monkeypatch.setattr(sys.modules[__name__], "Order", Point)
    assert portable(order).type is None


def test_a_huge_value_is_written() -> None:
    """Ten megabytes are no special case."""
    written = portable("x" * 10_000_000)
    assert written.type == "str"
    assert len(written.json) == 10_000_002


def test_a_record_may_have_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that was written by a program run as __main__ is found among the topology's own by its name there."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    text = msgspec.json.encode(Point(1.0))
    with pytest.raises(CannotRebuild, match=r"there is no class __main__\.Point in any loaded module"):
        rebuild(text, "__main__.Point")
    assert rebuild(text, "__main__.Point", {"Point": Point}) == Point(1.0)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("os.system", "no class os.system"),
        ("print", "no class print"),
        ("nowhere.Order", "no class nowhere.Order"),
        ("list[", "is no type"),
        ("list[nowhere.A]", "no class nowhere.A"),
        ("().__class__", "no class"),
        ("f()", "is no type"),
        ("int[str]", "is no type"),
        ("{**int}", "is no type"),
        ("[" * 1000, "is no type"),
        ("", "is no type"),
        ("subprocess.Popen", "is no subprocess.Popen|no class"),
    ],
)
def test_an_expression_is_only_ever_a_type(expression: str, message: str) -> None:
    """Whatever else a file says calls nothing and imports nothing."""
    with pytest.raises(CannotRebuild, match=message):
        rebuild(b'"x"', expression)


def test_a_text_that_does_not_fit_is_refused() -> None:
    """The message says what was expected."""
    with pytest.raises(CannotRebuild, match="it is no int: Expected `int`, got `str`"):
        rebuild(b'"x"', "int")


def test_a_time_that_would_lose_its_fold_is_not_rebuilt() -> None:
    """JSON has none, and == does not compare it."""
    assert portable(dt.datetime(2024, 10, 27, 2, 30)).type == "datetime.datetime"
    assert portable(dt.datetime(2024, 10, 27, 2, 30, fold=1)).type is None
