"""What is read from users' record types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, NewType, Optional

import msgspec
import pytest

from stormlet import InvalidTopology
from stormlet.core.records import is_record
from stormlet.spark.arrow.records import ANYTHING, Wanted, fields_of, wanted

Miles = NewType("Miles", int)


class Struct(msgspec.Struct, frozen=True):
    first: int
    second: str


class StructByName(msgspec.Struct, kw_only=True):
    second: str = "two"
    first: int


@dataclass(frozen=True)
class Data:
    first: int
    second: str


@dataclass(kw_only=True)
class DataByName:
    first: int
    second: str


class Named(NamedTuple):
    first: int
    second: str


@pytest.mark.parametrize("record", [Struct, StructByName, Data, DataByName, Named])
def test_the_fields_of_a_record(record: type) -> None:
    """All kinds of records tell their fields, and are made by position in the order they tell."""
    fields = fields_of(record)
    assert dict(fields.annotations) == {"first": int, "second": str}
    values = {"first": 1, "second": "one"}
    made = fields.make(*(values[name] for name in fields.annotations))
    assert (made.first, made.second) == (1, "one")


@pytest.mark.parametrize("thing", [int, dict, tuple, Struct(1, "one"), "Struct", None])
def test_what_is_no_record(thing: Any) -> None:
    """Other classes, and instances of records, are no record types."""
    assert not is_record(thing)
    with pytest.raises(InvalidTopology, match=r"is no record type; give a class of msgspec\.Struct"):
        fields_of(thing)


def test_annotations_without_meaning_are_told() -> None:
    """A name that only type checkers know is told with the record that has it."""

    class Odd(msgspec.Struct):
        field: Unknown  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidTopology, match=r"the annotations of Odd cannot be read: name 'Unknown'"):
        fields_of(Odd)


@pytest.mark.parametrize(
    ("annotation", "parts"),
    [
        (int, Wanted((int,), nullable=False)),
        (int | None, Wanted((int,), nullable=True)),
        (Optional[str], Wanted((str,), nullable=True)),  # noqa: UP045 both notations are to be read
        (int | str | None, Wanted((int, str), nullable=True)),
        (Miles, Wanted((int,), nullable=False)),
        (Annotated[int | None, "miles"], Wanted((int,), nullable=True)),
        (list[int], Wanted((list[int],), nullable=False)),
        (Any, ANYTHING),
        (object, ANYTHING),
        (Any | None, ANYTHING),
    ],
)
def test_an_annotation_taken_apart(annotation: object, parts: Wanted) -> None:
    """Which types a field wants, and whether None will do, is found below all wrappings."""
    assert wanted(annotation) == parts
