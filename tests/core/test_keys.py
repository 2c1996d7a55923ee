from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormlet.core.keys import stable_hash
from stormlet.errors import UnroutableKey

ROOT = Path(__file__).parents[2]


class Point(NamedTuple):
    x: object
    y: object


class Struct(msgspec.Struct):
    x: object
    y: object


class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True):
    y: object
    x: object


@dataclass
class Data:
    x: object
    y: object


@dataclass(frozen=True, slots=True)
class Noted:
    x: object
    y: object
    note: str = field(default="", compare=False)


@dataclass(eq=False)
class Identical:
    x: object
    y: object


@dataclass(eq=False)
class Extended(Data):
    """Compares as Data does: what it adds is no part of its equality."""

    remark: str = ""


class Typed(TypedDict):
    x: object
    y: object


class Colour(Enum):
    RED = 1
    GREEN = 2
    CRIMSON = 1  # noqa: PIE796 - an alias


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    COW = "cow"


class Birthday(date, Enum):
    ADA = 1815, 12, 10


@dataclass(frozen=True)
class Size:
    width: int
    height: int


class Paper(Size, Enum):
    A4 = 210, 297


class Permission(Flag):
    READ = 4
    WRITE = 2


class Mode(IntFlag):
    READ = 4


class Text(str):
    __slots__ = ()


class Caseless(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


class CaselessStruct(msgspec.Struct):
    word: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CaselessStruct) and self.word.lower() == other.word.lower()


@dataclass(eq=False)
class CaselessData:
    word: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CaselessData) and self.word.lower() == other.word.lower()


@dataclass(frozen=True)
class CaselessRecord:
    """``dataclass`` leaves an ``==`` as it is that stands there, though it says ``eq=True``."""

    word: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CaselessRecord) and self.word.lower() == other.word.lower()

    def __hash__(self) -> int:
        return hash(self.word.lower())


@dataclass
class Labelled(str):
    """Two of these are equal if their labels are, whatever their text."""

    label: str

    def __new__(cls, label: str, text: str = "") -> Labelled:
        return super().__new__(cls, text)

    def __init__(self, label: str, text: str = "") -> None:
        self.label = label


class Inherited(Data):
    pass


class Fallback(tzinfo):
    """A zone whose clocks go back from 03:00 to 02:00 every day: 02:30 comes twice."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        if moment is None:
            return None
        return timedelta(hours=2 if moment.hour < 2 or (moment.hour == 2 and not moment.fold) else 1)

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, moment: datetime | None) -> str:
        return "fallback"


class Floating(tzinfo):
    """A zone that does not know its offset: its moments count as naive."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None

    dst = utcoffset

    def tzname(self, moment: datetime | None) -> str:
        return "floating"


def zone(minutes: float) -> timezone:
    return timezone(timedelta(minutes=minutes))


EQUAL: dict[str, tuple[object, ...]] = {
    "one": (1, 1.0, True, Decimal(1), Decimal("1.00"), Level.LOW),
    "zero": (0, 0.0, -0.0, False, Decimal("-0"), Decimal("0E+9")),
    "half": (0.5, Decimal("0.5")),
    "big": (2**100, float(2**100), Decimal(2**100)),
    "infinity": (float("inf"), Decimal("Infinity")),
    "flag of int": (4, Mode.READ),
    "text": ("cow", Text("cow"), Word.COW),
    "enum alias": (Colour.RED, Colour.CRIMSON),
    "enum of dates": (date(1815, 12, 10), Birthday.ADA),
    "enum of records": (Paper.A4, Paper["A4"]),
    "flag": (Permission.READ | Permission.WRITE, Permission.WRITE | Permission.READ, Permission(6)),
    "moment": (
        datetime(2024, 3, 1, 12, tzinfo=UTC),
        datetime(2024, 3, 1, 13, 30, tzinfo=zone(90)),
        datetime(2024, 2, 29, 23, tzinfo=zone(-780)),
        datetime(2024, 3, 1, 12, 0, 30, tzinfo=zone(0.5)),
    ),
    "moment before the year 1": (
        datetime(1, 1, 1, 0, 30, tzinfo=zone(60)),
        datetime(1, 1, 1, 1, 30, tzinfo=zone(120)),
    ),
    "fold": (
        datetime(2024, 3, 1, 2, 30, tzinfo=(fallback := Fallback())),
        datetime(2024, 3, 1, 2, 30, fold=1, tzinfo=fallback),
    ),
    "naive moment": (
        datetime(2024, 3, 1),
        datetime(2024, 3, 1, fold=1),
        datetime(2024, 3, 1, tzinfo=Floating()),
    ),
    "clock": (time(12, tzinfo=UTC), time(13, 30, tzinfo=zone(90)), time(12, fold=1, tzinfo=zone(0))),
    "clock of another day": (time(0, 30, tzinfo=zone(60)), time(1, 30, tzinfo=zone(120))),
    "naive clock": (time(12), time(12, fold=1), time(12, tzinfo=Fallback())),
    "uuid": (UUID(int=7), UUID("00000000-0000-0000-0000-000000000007")),
    "tuple": ((1, "a"), (True, Text("a")), Point(1.0, "a")),
    "list": ([1, ["a"]], [1.0, [Text("a")]]),
    "dict": (
        {"x": 1, "y": (0,)},
        {"y": (False,), "x": 1.0},
        Typed(y=Point(0, 0)[:1], x=1),
        OrderedDict(y=(0,), x=1),
        defaultdict(list, y=(0,), x=1),
    ),
    "dict of numbers": ({1: "a", 2: "b"}, {2.0: "b", True: "a"}),
    "struct": (Struct(1, "a"), Struct(1.0, "a")),
    "frozen struct": (FrozenStruct(x=1, y="a"), FrozenStruct(y="a", x=True)),
    "dataclass": (Data(1, "a"), Data(1.0, "a")),
    "dataclass with a field that is not compared": (Noted(1, "a", "this"), Noted(1, "a", "that")),
    "dataclass that is text beside": (Labelled("a", "this"), Labelled("a", "that")),
}


def test_fields_that_equality_leaves_out_are_no_part_of_the_hash() -> None:
    """A dataclass with eq=False is equal by the fields of its base alone, so its own must not part equal keys."""
    one, other = Extended(1, 2, "one"), Extended(1, 2, "other")
    assert one == other
    assert stable_hash(one) == stable_hash(other)


@pytest.mark.parametrize("keys", EQUAL.values(), ids=EQUAL)
def test_equal_keys_hash_equal(keys: tuple[object, ...]) -> None:
    """Keys that Python calls equal have one hash, whatever their types."""
    assert all(key == keys[0] for key in keys)
    assert len({stable_hash(key) for key in keys}) == 1


scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 3),
    st.floats(),
    st.floats(-3, 3).map(round).map(float),
    st.decimals(allow_nan=False),
    st.text(),
    st.text(st.characters()),  # lone surrogates too
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC, zone(330), zone(-0.5)])),
    st.times(),
    st.uuids(),
    st.sampled_from([*Colour, *Level, *Word, *Permission]),
)
keys: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(Struct, inner, inner),
        st.builds(Data, inner, inner),
    ),
    max_leaves=6,
)


def twin(key: Any) -> Any:
    """Rebuild a key from other types as far as equality lets it."""
    match key:
        case tuple():
            return tuple(map(twin, key))
        case list():
            return list(map(twin, key))
        case dict():
            return {twin(name): twin(value) for name, value in reversed(key.items())}
        case Struct() | Data():
            return type(key)(twin(key.x), twin(key.y))
        case Enum():
            return key if type(key) in (Colour, Permission) else key.value
        case _:
            return other_scalar(key)


def other_scalar(key: Any) -> Any:
    match key:
        case bool():
            return int(key)
        case int():
            return Decimal(key)
        case float():
            return Decimal(key) if key == key else key
        case Decimal() if key.is_finite() and key == key.to_integral_value() and abs(key) < 10**30:
            return int(key)
        case str():
            return Text(key)
        case datetime() if key.tzinfo is not None and 2 < key.year < 9998:
            return key.astimezone(zone(-75))
        case _:
            return key


@given(keys)
def test_a_key_hashes_like_its_twin(key: Any) -> None:
    """Another representation of the same key has the same hash, in 32 bits."""
    other = twin(key)
    assert key == other or "nan" in repr(key).lower()
    assert stable_hash(key) == stable_hash(other)
    assert 0 <= stable_hash(key) < 2**32


CROWD: list[object] = [
    -1,
    0,
    1,
    2,
    0.0,
    -0.0,
    1.0,
    0.5,
    True,
    Decimal(2),
    Decimal("0.5"),
    None,
    "",
    "a",
    b"a",
    b"",
    (),
    [],
]


def test_equality_decides() -> None:
    """In a crowded space, alone and in pairs, no two equal keys have different hashes."""
    pairs: list[object] = list(product(CROWD, repeat=2))
    for crowd in (CROWD, pairs):
        hashed = [(key, stable_hash(key)) for key in crowd]
        assert not any(one == two and this != that for one, this in hashed for two, that in hashed)


@given(st.floats(min_value=1e-300), st.integers())
def test_numbers_agree_across_their_types(number: float, integer: int) -> None:
    """The exact Decimal of a float, and the Decimal of an int, hash like it."""
    assert stable_hash(number) == stable_hash(Decimal(number))
    assert stable_hash(integer) == stable_hash(Decimal(integer))


def test_all_nans_are_one_key() -> None:
    """NaN equals nothing, not even itself, yet missing numbers go to one task: Python's own hash would scatter them."""
    nans = float("nan"), -float("nan"), Decimal("NaN"), Decimal("-NaN123"), Decimal("sNaN")
    assert len({stable_hash(nan) for nan in nans}) == 1
    assert stable_hash((1, float("nan"))) == stable_hash((1, Decimal("NaN")))


def test_records_of_one_content_share_a_hash() -> None:
    """A record hashes as the dict of its fields, so that a producer may change its type and keep its routes."""
    contents = {"x": 1, "y": "a"}
    records = (
        Struct(1, "a"),
        FrozenStruct(x=1, y="a"),
        Data(1, "a"),
        Noted(1, "a"),
        Identical(1, "a"),
        Inherited(1, "a"),
    )
    assert {stable_hash(record) for record in records} == {stable_hash(contents)}
    assert stable_hash([1, "a"]) == stable_hash((1, "a")) == stable_hash(Point(1, "a"))


GOLDEN: list[tuple[object, int]] = [
    (None, 3751981041),
    (0, 1696784233),
    (1, 2844319735),
    (-1, 3991854978),
    (2.5, 984664176),
    ("", 0),
    ("word", 3287381265),
    ("wörd \ud800", 2913480383),
    (b"word", 3287381265),
    (Decimal("1.1"), 311646706),
    (date(2024, 3, 1), 958459214),
    (datetime(2024, 3, 1, 12, 30), 3424819894),
    (time(12, 30), 815481817),
    (UUID(int=1), 2612820931),
    (Colour.GREEN, 667823249),
    (Permission.READ, 3781742995),
    ((), 0),
    (("a", 1), 1814418517),
    ({"a": 1, "b": [2]}, 3429748663),
]


@pytest.mark.parametrize(("key", "expected"), GOLDEN)
def test_hashes_never_change(key: object, expected: int) -> None:
    """A release of stormlet that moved keys to other tasks would break whoever stores state per task."""
    assert stable_hash(key) == expected


SCRIPT = """
from __future__ import annotations
import dataclasses, datetime, decimal, enum, sys, typing, uuid
import msgspec
from stormlet.core.keys import stable_hash

class Struct(msgspec.Struct):
    word: str
    parts: list[object]

@dataclasses.dataclass
class Data:
    word: str
    parts: list[object]

class Pair(typing.NamedTuple):
    word: str
    parts: list[object]

class Colour(enum.Enum):
    RED = object()

def hashes():
    parts = ["a", b"b", None, 1, 2.5, decimal.Decimal("0.1"), Colour.RED, uuid.UUID(int=5), datetime.date(2024, 3, 1)]
    records = [Struct("w", parts), Data("w", parts), Pair("w", parts), {"z": parts, "a": {"c": 1, "b": 2}}]
    return [stable_hash(key) for key in (*parts, *records, float("nan"), "word")]

if __name__ == "__main__":
    print(hashes())
"""


def run(code: list[str], folder: Path, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    return subprocess.run(
        [sys.executable, *code], env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_every_process_agrees(tmp_path: Path) -> None:
    """The salt of a process does not reach the hash, nor the name of a record's module: __main__ or its own."""
    script = tmp_path / "keyed_topology.py"
    script.write_text(SCRIPT, "utf-8")
    first = run([str(script)], tmp_path, "0")
    assert first.count(",") == 14
    assert run([str(script)], tmp_path, "4242") == first
    assert run(["-c", "import keyed_topology; print(keyed_topology.hashes())"], tmp_path, "random") == first


@pytest.mark.parametrize(
    ("key", "named"),
    [
        (object(), "object "),
        ({1, 2}, "set "),
        (frozenset({1}), "frozenset "),
        (1j, "complex "),
        (range(3), "range "),
        (bytearray(b"a"), "bytearray "),
        (memoryview(b"a"), "memoryview "),
        (Fraction(1, 2), "fractions.Fraction "),
        (timedelta(1), "datetime.timedelta "),
        (int, "type "),
        (len, "builtin_function_or_method "),
        (MappingProxyType({"a": 1}), "mappingproxy "),
        (iter([1]), "list_iterator "),
    ],
)
def test_any_other_type_is_refused_by_name(key: object, named: str) -> None:
    """What has no stable hash is an error that names the type and those that would do."""
    with pytest.raises(UnroutableKey, match=f"^a key of type {named}has no stable hash; keys are None, bool"):
        stable_hash(key)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda key: (1, key),
        lambda key: [key],
        lambda key: {"a": key},
        lambda key: {key: 1},
        lambda key: Point(1, key),
        lambda key: Struct(key, 1),
        lambda key: Data(1, ((key,),)),
    ],
)
def test_the_refused_part_of_a_key_is_named(wrap: Callable[[object], object]) -> None:
    """However deep the unroutable part hides, the message names its type."""
    with pytest.raises(UnroutableKey, match="type complex has"):
        stable_hash(wrap(1j))


@pytest.mark.parametrize(
    ("key", "named"),
    [
        (Caseless("Cow"), "Caseless"),
        (CaselessStruct("Cow"), "CaselessStruct"),
        (CaselessData("Cow"), "CaselessData"),
        (CaselessRecord("Cow"), "CaselessRecord"),
        (Counter("cow"), "collections.Counter"),
    ],
)
def test_an_equality_of_its_own_is_refused(key: object, named: str) -> None:
    """Where a class redefines ==, equal keys could hash apart, so they are not hashed at all."""
    with pytest.raises(
        UnroutableKey, match=rf"{named} has no stable hash; .* none with an __eq__ of its own$"
    ):
        stable_hash(key)


@pytest.mark.parametrize("tasks", [2, 3, 4, 6, 7, 16])
@pytest.mark.parametrize(
    "make",
    [
        lambda number: number,
        lambda number: 8 * number,
        lambda number: f"key{number}",
        lambda number: (number // 50, f"key{number % 50}"),
        lambda number: Struct(number, "same"),
        lambda number: datetime(2024, 1, 1) + timedelta(minutes=number),
    ],
    ids=["integers", "strided", "text", "pairs", "records", "minutes"],
)
def test_ordinary_keys_spread(make: Callable[[int], object], tasks: int) -> None:
    """No task gets half as much again as its share of the usual kinds of keys."""
    counts = Counter(stable_hash(make(number)) % tasks for number in range(4000))
    assert len(counts) == tasks
    assert max(counts.values()) < 1.5 * 4000 / tasks


class OddInt(int):
    def __hash__(self) -> int:
        return 5


class OddFloat(float):
    def __hash__(self) -> int:
        return 5


@pytest.mark.parametrize("key", [OddInt(2), OddFloat(2.0)])
def test_a_number_with_a_hash_of_its_own(key: object) -> None:
    """Equal numbers go to one task, whatever the ``__hash__`` of their class."""
    assert stable_hash(key) == stable_hash(2)


def test_microseconds_part_times() -> None:
    """Times that differ by as little are spread over the tasks, too."""
    assert len({stable_hash(time(12, 0, 0, each)) for each in range(8)}) == 8
