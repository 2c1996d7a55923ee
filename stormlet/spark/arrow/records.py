"""Record types of users: their fields, and the columns of Spark that they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from stormlet.core.records import annotations_of, bare, is_record
from stormlet.core.schema import Keyed, Record, schema_of
from stormlet.errors import InvalidTopology
from stormlet.model.signatures import signature_of

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

LISTS = (list, tuple, Sequence)
MAPS = (dict, Mapping)


@dataclass(frozen=True, slots=True)
class RecordFields:
    """The fields of a record type, and its constructor."""

    name: str
    annotations: Mapping[str, object]
    """Field -> its annotation, in the order that :attr:`make` takes them in."""
    make: Callable[..., Any]
    """Makes a record of the values, by position."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One annotation, taken apart."""

    choices: tuple[object, ...]
    """The types that a value may have, without None; none at all for ``Any``."""
    nullable: bool
    """True if None is accepted."""


ANYTHING = Wanted((), nullable=True)


def fields_of(record: type) -> RecordFields:
    """The fields that the record's constructor takes.

    Raises :class:`~stormlet.errors.InvalidTopology` if it is no record type, or has annotations that cannot be
    resolved at run time.
    """
    if not is_record(record):
        raise InvalidTopology(
            f"as_={record!r} is no record type; give a class of msgspec.Struct, a dataclass or a NamedTuple"
        )
    try:
        hints = annotations_of(record, include_extras=True)
    except TypeError as error:
        raise InvalidTopology(f"the annotations of {record.__name__} cannot be read: {error}") from None
    parameters = signature_of(record).parameters
    annotations = {name: hints.get(name, Any) for name in parameters}
    by_name = any(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters.values())
    return RecordFields(record.__name__, annotations, _by_name(record, annotations) if by_name else record)


def wanted(annotation: object) -> Wanted:
    """Take an annotation apart: ``int | None`` wants an int, and accepts None."""
    annotation = bare(annotation)
    if annotation is Any or annotation is object:
        return ANYTHING
    if get_origin(annotation) not in (Union, UnionType):
        return Wanted((annotation,), nullable=annotation in (None, NoneType))
    parts = [wanted(member) for member in get_args(annotation)]
    if ANYTHING in parts:
        return ANYTHING
    choices = (choice for part in parts for choice in part.choices if choice is not NoneType)
    return Wanted(tuple(choices), any(part.nullable for part in parts))


def text_of(annotation: object) -> str:
    """Text of an annotation in a message."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _by_name(record: type, names: Mapping[str, object]) -> Callable[..., Any]:
    def make(*values: object) -> object:
        return record(**dict(zip(names, values, strict=True)))

    return make


def schema_of_record(record: object) -> StructType:
    """The columns of a msgspec.Struct, a dataclass, a NamedTuple or a TypedDict, in the order of its fields; a field
    may be null if its type allows None, or if it is not required.

    Raises :class:`~stormlet.errors.InvalidTopology` naming a field whose type has no column type, and for anything
    but a record type.
    """
    return _struct(record, ())


def _struct(record: object, around: tuple[object, ...]) -> StructType:
    """The columns of a record; ``around`` are the records that it is nested in."""
    from pyspark.sql.types import StructField, StructType

    schema = schema_of(record)
    if record in around:
        raise InvalidTopology(f"{schema.name} contains itself, as no column can")
    if not isinstance(schema, Record | Keyed) or schema.fields is None:
        raise InvalidTopology(f"{schema.name} is no record type whose fields could be columns")
    annotations = _annotations(record)
    needed = schema.required if isinstance(schema, Keyed) else schema.fields
    fields: list[StructField] = []
    for name in schema.fields:
        kind = wanted(annotations.get(name, Any))
        try:
            fields.append(
                StructField(name, _column_type(kind, (*around, record)), kind.nullable or name not in needed)
            )
        except InvalidTopology as error:
            raise InvalidTopology(f"{schema.name}.{name}: {error}") from None
    return StructType(fields)


def _annotations(record: object) -> Mapping[str, object]:
    try:
        return annotations_of(get_origin(record) or record)
    except TypeError as error:
        raise InvalidTopology(f"the annotations of {record!r} cannot be read: {error}") from error


def _column_type(want: Wanted, around: tuple[object, ...]) -> DataType:
    from pyspark.sql.types import ArrayType, MapType

    kind = want.choices[0] if len(want.choices) == 1 else None
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _simple_types():
        return _simple_types()[kind]
    if origin in LISTS and _same(arguments):
        element = wanted(arguments[0])
        return ArrayType(_column_type(element, around), element.nullable)
    if origin in MAPS:
        value = wanted(arguments[1])
        key = _column_type(wanted(arguments[0]), around)
        return MapType(key, _column_type(value, around), value.nullable)
    if _is_record(kind):
        return _struct(kind, around)
    shown = " | ".join(map(text_of, want.choices)) or "Any"
    simple = ", ".join(map(text_of, _simple_types()))
    raise InvalidTopology(
        f"{shown} has no column type; use {simple}, lists, dicts and records of these, or give schema="
    )


@cache
def _simple_types() -> Mapping[object, DataType]:
    """Python type -> the type it is written as by default; ``schema=`` can give another."""
    from pyspark.sql import types

    return {
        bool: types.BooleanType(),
        int: types.LongType(),
        float: types.DoubleType(),
        str: types.StringType(),
        bytes: types.BinaryType(),
        date: types.DateType(),
        datetime: types.TimestampType(),
        timedelta: types.DayTimeIntervalType(),
        Decimal: types.DecimalType(38, 18),
    }


def _same(arguments: tuple[object, ...]) -> bool:
    """True for ``list[T]`` or ``tuple[T, ...]``, but not for a tuple of a given length."""
    return len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is ...)


def _is_record(kind: object) -> bool:
    if not isinstance(kind, type):
        return False
    schema = schema_of(kind)
    return isinstance(schema, Record | Keyed) and schema.fields is not None
