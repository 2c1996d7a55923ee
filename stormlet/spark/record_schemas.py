"""The columns that a record type stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin, get_type_hints

from stormlet.core.schema import Keyed, Record, schema_of
from stormlet.errors import InvalidTopology
from stormlet.spark.records import Wanted, said, wanted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

LISTS = (list, tuple, Sequence)
MAPS = (dict, Mapping)


def schema_of_record(record: object) -> StructType:
    """The columns of a msgspec.Struct, a dataclass, a NamedTuple or a TypedDict, in the order of its fields;
    a field may be null if its type allows None, or if it need not be there.

    Raises :class:`~stormlet.errors.InvalidTopology` naming a field whose type has no column type, and for
    what is no record type.
    """
    return _struct(record, ())


def _struct(record: object, around: tuple[object, ...]) -> StructType:
    """``around`` are the records that this one is nested in."""
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
        return get_type_hints(cast("Any", get_origin(record) or record))
    except (NameError, TypeError) as error:
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
    shown = " | ".join(map(said, want.choices)) or "Any"
    simple = ", ".join(map(said, _simple_types()))
    raise InvalidTopology(
        f"{shown} has no column type; use {simple}, lists, dicts and records of these, or give schema="
    )


@cache
def _simple_types() -> Mapping[object, DataType]:
    """What each Python type is written as; ``schema=`` can say otherwise."""
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
    """``list[T]`` or ``tuple[T, ...]``, but no tuple of a given length."""
    return len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is ...)


def _is_record(kind: object) -> bool:
    if not isinstance(kind, type):
        return False
    schema = schema_of(kind)
    return isinstance(schema, Record | Keyed) and schema.fields is not None
