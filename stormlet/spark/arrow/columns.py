"""Strict conversion of Python values for the columns of an Arrow table. A value that Arrow would truncate,
reinterpret or leave out is refused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import inf
from numbers import Integral, Real
from operator import attrgetter, itemgetter
from types import NoneType
from typing import TYPE_CHECKING, cast

from stormlet.core.records import field_names
from stormlet.core.shortened import shortened

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


TOO_LARGE = (2 - 2.0**-24) * 2.0**127
"""The least number that is infinite when it is rounded to 32 bits."""


class Misfit(Exception):
    """A value that does not fit its column."""


@dataclass(frozen=True, slots=True)
class Column(ABC):
    """A column, or what is nested in one."""

    name: str
    nullable: bool
    accepted: tuple[type, ...]
    refused: tuple[type, ...] = ()
    """Types that would be accepted only because they derive from an accepted one: a bool is an int."""

    def fit(self, values: Sequence[object]) -> Sequence[object]:
        """Check the values and return them as Arrow takes them. Raises :class:`Misfit`."""
        for kind in set(map(type, values)):
            if kind is NoneType:
                if not self.nullable:
                    raise Misfit(f"{self.name} is None, which its type does not allow")
            elif not issubclass(kind, self.accepted) or issubclass(kind, self.refused):
                raise Misfit(f"{self.name}: expected {_named(self.accepted)}, got {kind.__name__}")
        return self._converted(values)

    @abstractmethod
    def _converted(self, values: Sequence[object]) -> Sequence[object]: ...


@dataclass(frozen=True, slots=True)
class Plain(Column):
    """Values that Arrow takes as they are."""

    def _converted(self, values: Sequence[object]) -> Sequence[object]:
        return values


@dataclass(frozen=True, slots=True)
class Floats(Column):
    """Numbers of 32 bits. Arrow would make one that is too large for them infinite."""

    def _converted(self, values: Sequence[object]) -> Sequence[object]:
        for value in values:
            if value is not None and _is_too_large(cast("float", value)):
                raise Misfit(
                    f"{self.name}: {shortened(value)} is too large for a float; make the column a double"
                )
        return values


def _is_too_large(value: float) -> bool:
    try:
        number = float(value)  # NumPy would take TOO_LARGE for one of its own 32 bits, and warn
    except OverflowError:  # an integer or a fraction
        return True
    return abs(number) >= TOO_LARGE and (abs(number) < inf or number != value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments(Column):
    """Timestamps, all with a time zone or all without; the one is never taken for the other."""

    aware: bool

    def _converted(self, values: Sequence[object]) -> Sequence[object]:
        for value in values:
            if value is not None and (cast("datetime", value).utcoffset() is not None) is not self.aware:
                raise Misfit(
                    f"{self.name}: {value} has no time zone, which a timestamp needs"
                    if self.aware
                    else f"{self.name}: {value} has a time zone, which timestamp_ntz cannot keep"
                )
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists(Column):
    """Lists, of one kind of element."""

    element: Column

    def _converted(self, values: Sequence[object]) -> Sequence[object]:
        return [
            None if value is None else self.element.fit(list(cast("Iterable[object]", value)))
            for value in values
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps(Column):
    """Dicts, of one kind of key and one kind of value."""

    key: Column
    value: Column

    def _converted(self, values: Sequence[object]) -> Sequence[object]:
        return [
            None if each is None else self._pairs(cast("Mapping[object, object]", each)) for each in values
        ]

    def _pairs(self, mapping: Mapping[object, object]) -> list[tuple[object, object]]:
        keys, values = self.key.fit(list(mapping)), self.value.fit(list(mapping.values()))
        return list(zip(keys, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Records(Column):
    """Records, dicts or tuples."""

    rows: Rows

    def _converted(self, values: Sequence[object]) -> Sequence[object]:
        present: list[object] = [value for value in values if value is not None]
        records = iter(zip(*self.rows.fit(present), strict=True))
        names = self.rows.names
        return [None if value is None else dict(zip(names, next(records), strict=True)) for value in values]


class Rows:
    """Rows of several columns: the whole of a value, or what is nested in a column."""

    def __init__(self, schema: StructType, path: str = "") -> None:
        self.names = tuple(schema.names)
        self.columns = tuple(_column(field, path) for field in schema.fields)
        self._getters = [attrgetter(name) for name in self.names]

    def fit(self, values: Sequence[object]) -> list[Sequence[object]]:
        """Return the values by column. Raises :class:`Misfit`."""
        return [column.fit(each) for column, each in zip(self.columns, self._by_column(values), strict=True)]

    def _by_column(self, values: Sequence[object]) -> Iterable[Sequence[object]]:
        kinds = set(map(type, values))
        if len(kinds) == 1:
            return self._of_kind(kinds.pop(), values)
        rows = [[first for (first,) in self._of_kind(type(value), (value,))] for value in values]
        return zip(*rows, strict=True) if rows else ((),) * len(self.columns)

    # Column by column: a tuple for each row would have the garbage collector look at all of them.
    def _of_kind(self, kind: type[object], values: Sequence[object]) -> Iterable[Sequence[object]]:
        if issubclass(kind, Mapping):
            return self._of_mappings(cast("Sequence[Mapping[str, object]]", values))
        if field_names(kind) is None and issubclass(kind, tuple | list):
            return self._of_sequences(cast("Sequence[Sequence[object]]", values))
        return self._of_attributes(values)

    def _of_attributes(self, values: Sequence[object]) -> Iterable[Sequence[object]]:
        try:
            return [list(map(getter, values)) for getter in self._getters]
        except AttributeError as error:
            raise Misfit(f"{error}; the columns are {', '.join(self.names)}") from None

    def _of_mappings(self, values: Sequence[Mapping[str, object]]) -> Iterable[Sequence[object]]:
        for mapping in values:
            for key in mapping:
                if key not in self.names:
                    raise Misfit(f"there is no column {key!r}; the columns are {', '.join(self.names)}")
        return [[mapping.get(name) for mapping in values] for name in self.names]

    def _of_sequences(self, values: Sequence[Sequence[object]]) -> Iterable[Sequence[object]]:
        for row in values:
            if len(row) != len(self.names):
                raise Misfit(f"expected {len(self.names)} columns, {', '.join(self.names)}, got {len(row)}")
        return [list(map(itemgetter(place), values)) for place in range(len(self.names))]


def _column(field: StructField, path: str) -> Column:
    return _column_of(field.dataType, f"{path}{field.name}", field.nullable)


def _column_of(kind: DataType, name: str, nullable: bool) -> Column:
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        element = _column_of(kind.elementType, f"{name}[]", kind.containsNull)
        return Lists(name, nullable, (list, tuple), element=element)
    if isinstance(kind, types.MapType):
        key = _column_of(kind.keyType, f"a key of {name}", nullable=False)
        value = _column_of(kind.valueType, f"{name}[...]", kind.valueContainsNull)
        return Maps(name, nullable, (Mapping,), key=key, value=value)
    if isinstance(kind, types.StructType):
        return Records(name, nullable, (object,), rows=Rows(kind, f"{name}."))
    if isinstance(kind, types.TimestampType | types.TimestampNTZType):
        return Moments(name, nullable, (datetime,), aware=isinstance(kind, types.TimestampType))
    if isinstance(kind, types.FloatType):
        return Floats(name, nullable, (Real,), (bool,))
    for spark_types, accepted, refused in _plain_types():
        if isinstance(kind, spark_types):
            return Plain(name, nullable, accepted, refused)
    raise Misfit(f"column {name} is a {kind.simpleString()}, which no Python value is written as")


def _plain_types() -> Iterable[tuple[tuple[type, ...], tuple[type, ...], tuple[type, ...]]]:
    """Spark's types, the Python types that they accept, and the subtypes that they refuse."""
    from pyspark.sql import types

    yield (types.BooleanType,), (bool,), ()
    yield (types.IntegralType,), (Integral,), (bool,)
    yield (types.DecimalType,), (Decimal, Integral), (bool,)
    yield (types.DoubleType,), (Real,), (bool,)
    yield (types.StringType,), (str,), ()
    yield (types.BinaryType,), (bytes, bytearray), ()
    yield (types.DateType,), (date,), (datetime,)
    yield (types.DayTimeIntervalType,), (timedelta,), ()


def _named(kinds: tuple[type, ...]) -> str:
    shown: dict[object, str] = {Integral: "int", Real: "float", Mapping: "dict"}
    return " or ".join(shown.get(kind, kind.__name__) for kind in kinds)
