from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, NewType, NotRequired, Required, TypedDict, TypeVar

import msgspec
import pytest

from stormlet.core.records import (
    annotations_of,
    bare,
    class_below,
    compared_fields,
    compares_fields,
    field_names,
    is_record,
    keys_of,
    known_annotations,
)


class Struct(msgspec.Struct):
    word: str
    count: int


@dataclass
class Data:
    word: str
    count: int = field(compare=False)


class Derived(Data):
    pass


@dataclass(eq=False)
class Alone:
    word: str


class Named(NamedTuple):
    word: str
    number: int


class Keys(TypedDict, total=False):
    count: Required[int]
    word: str


class OtherKeys(TypedDict):
    count: int
    word: NotRequired[str]


class Misspelt(TypedDict):
    count: "Nowhere"  # type: ignore[name-defined]  # noqa: F821, UP037
    word: str


class Unfinished(TypedDict):
    count: "int |"  # type: ignore[syntax]  # noqa: F722
    word: str


class Unnamed:
    count: msgspec.nowhere  # type: ignore[name-defined]


T = TypeVar("T")
Wrapped = NewType("Wrapped", Annotated[list[int], "why"])  # type: ignore[valid-newtype]


@pytest.mark.parametrize(
    ("record", "names", "compared"),
    [
        (Struct, ("word", "count"), ("word", "count")),
        (Data, ("word", "count"), ("word",)),
        (Derived, ("word", "count"), ("word",)),
        (Named, ("word", "number"), ("word", "number")),
    ],
)
def test_records_have_fields(record: type, names: tuple[str, ...], compared: tuple[str, ...]) -> None:
    """In the order of their declaration; those that == leaves out are no part of a key."""
    assert is_record(record)
    assert (field_names(record), compared_fields(record)) == (names, compared)


@pytest.mark.parametrize("thing", [int, tuple, dict, Keys])
def test_other_classes_have_none(thing: type) -> None:
    """A TypedDict has keys, not fields."""
    assert not is_record(thing)
    assert (field_names(thing), compared_fields(thing)) == (None, ())


@pytest.mark.parametrize("thing", [Named("cow", 1), "Struct", None])
def test_an_instance_is_no_record_type(thing: object) -> None:
    """Nor is the name of one."""
    assert not is_record(thing)


@pytest.mark.parametrize(
    ("cls", "compares"), [(Data, True), (Derived, False), (Alone, False), (Struct, False)]
)
def test_a_dataclass_defines_equality_for_itself_alone(cls: type, compares: bool) -> None:
    """What is inherited from one is not defined by the class."""
    assert compares_fields(cls) is compares


@pytest.mark.parametrize(
    ("cls", "required"),
    [
        (Keys, ("count",)),
        (OtherKeys, ("count",)),
        (Misspelt, ("count", "word")),
        (Unfinished, ("count", "word")),
    ],
)
def test_keys_of_a_typed_dict(cls: type, required: tuple[str, ...]) -> None:
    """In their order; marks that Python misses in postponed annotations are found where these can be read."""
    assert keys_of(cls) == (("count", "word"), required)


def test_keys_of_a_plain_dict_are_not_known() -> None:
    """Any key may be there, and none must."""
    assert keys_of(dict) == (None, ())


@pytest.mark.parametrize("annotated", [Misspelt, Unfinished, Unnamed, 5])
def test_annotations_may_have_no_meaning_at_run_time(annotated: Any) -> None:
    """Names and notations for type checkers alone, and objects without annotations."""
    with pytest.raises(TypeError):
        annotations_of(annotated)
    assert known_annotations(annotated) == {}


def test_metadata_of_annotations_is_left_out() -> None:
    """Unless it is asked for."""

    class Marked:
        count: Annotated[int, "why"]

    assert annotations_of(Marked) == {"count": int}
    assert annotations_of(Marked, include_extras=True) == {"count": Annotated[int, "why"]}


def test_what_is_below_an_annotation() -> None:
    """NewType and Annotated are taken off, at any depth; the class stands without type arguments."""
    assert (bare(Wrapped), class_below(Wrapped)) == (list[int], list)
    assert (bare(T), class_below(T)) == (T, None)
