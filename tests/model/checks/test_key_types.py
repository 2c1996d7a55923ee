"""Which grouping keys cannot be hashed, told from annotations, before there is a value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Protocol, TypedDict, TypeVar, cast
from uuid import UUID

import pytest
from msgspec import Struct

from stormlet import Topology
from stormlet.core.groupings import Fields, PartialKey
from stormlet.core.keys import stable_hash
from stormlet.core.schema import schema_of
from stormlet.errors import UnroutableKey
from stormlet.model.checks.key_types import key_annotations, unroutable_types

V = TypeVar("V")
Where = NewType("Where", Path)


class Colour(Enum):
    RED = 1


class Plain:
    pass


class Own(Struct):
    name: str

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Shape(Protocol):
    sides: int


class Box(Struct, Generic[V]):
    content: V


class Row(Struct):
    word: str
    tags: set[str]
    parent: Row | None = None


@dataclass
class Order:
    number: int
    note: bytearray = field(compare=False, default_factory=bytearray)


@dataclass(eq=False)
class Loose:
    place: Path


class Pair(NamedTuple):
    left: int
    right: complex


class Keys(TypedDict):
    place: Path


class Broken(Struct):
    word: NoSuchName  # type: ignore[name-defined]  # noqa: F821


def unroutable(annotation: object, *names: str | int) -> list[type]:
    return unroutable_types(schema_of(annotation), Fields(names=names))


ROUTABLE: list[object] = [
    str, int, bool, UUID, datetime, Colour, None, tuple[int, str], tuple[int, ...], list[str], dict[str, int],
    Order, int | None, Literal["a", 1], Annotated[str, "text"],
]  # fmt: skip
UNKNOWN: list[object] = [Any, object, Hashable, Sequence[int], Shape, Broken, Callable[[], int]]
UNROUTABLE: list[tuple[object, list[type]]] = [
    (set[str], [set]),
    (frozenset[str], [frozenset]),
    (bytearray, [bytearray]),
    (timedelta, [timedelta]),
    (Plain, [Plain]),
    (Own, [Own]),
    (Where, [Path]),
    (Annotated[Path, "place"], [Path]),
    (str | Path | None, [Path]),
    (tuple[int, list[complex]], [complex]),
    (dict[str, set[str]], [set]),
    (Row, [set]),
    (list[Row], [set]),
    (Loose, [Path]),
    (Pair, [complex]),
    (Keys, [Path]),
    (tuple[Path, set[str], Path], [Path, set]),
]


@pytest.mark.parametrize("annotation", [*ROUTABLE, *UNKNOWN], ids=str)
def test_what_may_be_routed_is_not_found_fault_with(annotation: object) -> None:
    """Keys of these types are hashed, or nobody can tell before a value is there."""
    assert unroutable(annotation) == []


def test_the_type_variable_of_a_generic_record_is_anything() -> None:
    """What a type variable stands for is not known, so no fault is found with it."""
    assert unroutable(Box) == unroutable(Box, "content") == []


@pytest.mark.parametrize(("annotation", "types"), UNROUTABLE, ids=str)
def test_types_without_a_stable_hash_are_named(annotation: object, types: list[type]) -> None:
    """Each is named once, however deep in the key it lies, the fields of records included."""
    assert unroutable(annotation) == types


@pytest.mark.parametrize(
    "value", [{"a"}, frozenset("a"), bytearray(b"a"), timedelta(1), Plain(), Own("a"), Path(), Row("a", {"b"}),
              Loose(Path()), Pair(1, 2j)]
)  # fmt: skip
def test_the_engine_agrees(value: object) -> None:
    """What is called unroutable by its type is refused as a value."""
    assert unroutable(type(value))
    with pytest.raises(UnroutableKey):
        stable_hash(value)


def test_only_the_fields_of_the_key_count() -> None:
    """A record with an unroutable field may be grouped by another one, by name and by position."""
    assert unroutable(Row, "word") == unroutable(Row, 0) == []
    assert unroutable(Row, "tags") == unroutable(Row, 1) == unroutable(Row, -2) == [set]
    assert unroutable(Keys, "place") == unroutable(Annotated[Keys, "a row"], "place") == [Path]
    assert unroutable(["place", "word"], "place") == unroutable(None, 0) == []


def by_place(value: object) -> Path:
    return Path()


def test_a_key_function_is_judged_by_what_it_says_it_returns() -> None:
    """Its return annotation counts, through the wrapper that guards it; without one nothing is known."""
    topology = Topology("keys")
    stream = topology.spout("rows", outputs=Row)
    grouping = cast(Fields, stream.fields(by_place).grouping)
    assert key_annotations(stream.output.schema, grouping) == [Path]
    assert unroutable_types(stream.output.schema, grouping) == [Path]
    silent: Callable[[Any], object]
    for silent in (lambda row: row.tags, itemgetter(0)):
        assert key_annotations(stream.output.schema, cast(Fields, stream.fields(silent).grouping)) == []


def test_partial_key_is_judged_alike() -> None:
    """Both groupings hash the same keys."""
    stream = Topology("keys").spout("rows", outputs=Row)
    assert unroutable_types(stream.output.schema, cast(PartialKey, stream.partial_key("tags").grouping)) == [
        set
    ]
    assert cast(PartialKey, stream.partial_key("word").grouping).names == ("word",)
