"""The columns that record types stand for; no Spark runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, NewType, NotRequired, TypedDict

import msgspec
import pytest

from stormlet.errors import InvalidTopology
from stormlet.spark.arrow.records import schema_of_record

Code = NewType("Code", str)


class Leg(NamedTuple):
    origin: str
    minutes: int | None


class Everything(msgspec.Struct):
    flag: bool
    count: int
    ratio: float | None
    name: Annotated[str, "a name"]
    code: Code
    raw: bytes
    day: date
    at: datetime
    took: timedelta
    price: Decimal
    names: list[str]
    maybe: tuple[int | None, ...]
    some: Sequence[float] | None
    counts: dict[str, int | None]
    others: Mapping[str, Leg]
    leg: Leg
    legs: list[Leg]


COLUMNS = (
    "struct<flag:boolean,count:bigint,ratio:double,name:string,code:string,raw:binary,day:date,at:timestamp,"
    "took:interval day to second,price:decimal(38,18),names:array<string>,maybe:array<bigint>,some:array<double>,"
    "counts:map<string,bigint>,others:map<string,struct<origin:string,minutes:bigint>>,"
    "leg:struct<origin:string,minutes:bigint>,legs:array<struct<origin:string,minutes:bigint>>>"
)


def test_every_type_with_columns() -> None:
    """In the order of the fields; nested records are structs."""
    schema = schema_of_record(Everything)
    assert schema.simpleString() == COLUMNS
    assert [field.name for field in schema if field.nullable] == ["ratio", "some"]


def test_what_is_nested_may_be_null_where_its_type_says_so() -> None:
    """Elements, values of maps and fields of structs."""
    schema = schema_of_record(Everything).jsonValue()
    types = {field["name"]: field["type"] for field in schema["fields"]}
    assert not types["names"]["containsNull"]
    assert types["maybe"]["containsNull"]
    assert types["counts"]["valueContainsNull"]
    assert not types["others"]["valueContainsNull"]
    assert [field["nullable"] for field in types["leg"]["fields"]] == [False, True]


@dataclass
class Point:
    x: int
    y: int


class Keys(TypedDict):
    word: str
    count: NotRequired[int]


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        (Point, "struct<x:bigint,y:bigint>"),
        (Leg, "struct<origin:string,minutes:bigint>"),
        (Keys, "struct<word:string,count:bigint>"),
    ],
)
def test_every_kind_of_record(record: type, columns: str) -> None:
    """Dataclasses, named tuples and typed dicts, too."""
    assert schema_of_record(record).simpleString() == columns


def test_a_key_that_need_not_be_there_may_be_null() -> None:
    """Though its type does not allow None."""
    assert [field.nullable for field in schema_of_record(Keys)] == [False, True]


class Odd(msgspec.Struct):
    what: object


class Either(msgspec.Struct):
    what: int | str


class Fixed(msgspec.Struct):
    what: tuple[int, str]


class Deep(msgspec.Struct):
    inner: list[Odd]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Odd, r"Odd\.what: Any has no column type; use bool, int, float, str, .* or give schema="),
        (Either, r"Either\.what: int \| str has no column type"),
        (Fixed, r"Fixed\.what: tuple\[int, str\] has no column type"),
        (Deep, r"Deep\.inner: Odd\.what: Any has no column type"),
        (int, "int is no record type"),
        (dict, "dict is no record type"),
    ],
)
def test_types_without_columns_are_refused(record: Any, message: str) -> None:
    """The message names record and field, and the way out."""
    with pytest.raises(InvalidTopology, match=message):
        schema_of_record(record)


def test_annotations_that_mean_nothing() -> None:
    """A name that only the type checker knows is an error of the record's, not a traceback of ours."""
    record = type("Lost", (msgspec.Struct,), {"__annotations__": {"what": "Unknown"}, "__module__": __name__})
    with pytest.raises(InvalidTopology, match=r"the annotations of .*Lost.* cannot be read"):
        schema_of_record(record)


class Tree(msgspec.Struct):
    children: list[Tree]


def test_a_record_of_itself_is_refused() -> None:
    """Spark has no such columns."""
    with pytest.raises(InvalidTopology, match=r"Tree\.children: Tree contains itself"):
        schema_of_record(Tree)
