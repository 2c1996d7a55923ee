"""The table of types: the Python value of each Spark value, the same for Arrow and for plain rows.

Arrow and PySpark each give *plain* values of a column. These differ in details (a struct is a dict in Arrow and a
``Row`` in plain rows), and know neither the session's zone nor the user's records. A *refiner* makes the emitted
value of either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args, get_origin

import msgspec

from stormlet.core.records import is_record
from stormlet.errors import InvalidTopology
from stormlet.spark.arrow.records import ANYTHING, Wanted, fields_of, text_of, wanted

if TYPE_CHECKING:
    from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Transport: TypeAlias = Literal["arrow", "rows"]
Refine: TypeAlias = Callable[[Any], object]

SCALARS: Mapping[str, type] = {
    "BooleanType": bool,
    "ByteType": int,
    "ShortType": int,
    "IntegerType": int,
    "LongType": int,
    "FloatType": float,
    "DoubleType": float,
    "DecimalType": Decimal,
    "StringType": str,
    "CharType": str,
    "VarcharType": str,
    "BinaryType": bytes,
    "DateType": date,
    "TimeType": time,
    "TimestampType": datetime,
    "TimestampNTZType": datetime,
    "DayTimeIntervalType": timedelta,
    "NullType": type(None),
}
"""Class of a Spark type -> class of its values."""
ROWS_ONLY = ("VariantType", "UserDefinedType")
"""Types whose values stay as PySpark makes them, and come only in plain rows."""


class MissingValue(ValueError):
    """A null where the record needs a value; names the column."""

    def __init__(self, path: str) -> None:
        super().__init__(f"column {path!r} is null; declare it as X | None, or filter such rows")


@dataclass(frozen=True, slots=True)
class Refiner:
    """Makes the emitted values of one column, or of one part of its values."""

    refine: Refine | None
    """Function for plain values but None; None if they stay as they are."""
    nullable: bool
    """True if None is accepted."""

    @property
    def idle(self) -> bool:
        """True if plain values are emitted as they are."""
        return self.refine is None and self.nullable

    def every(self, path: str) -> Refine:
        """A function for all values, which raises :class:`MissingValue` for a None that is not accepted."""
        return partial(_refine, self, path)


@dataclass(frozen=True, slots=True)
class Refining:
    """Builds refiners for the values of one DataFrame."""

    zone: tzinfo
    """The session's zone, for timestamps."""
    transport: Transport

    def refiner(self, data_type: DataType, choices: Wanted, path: str, *, nullable: bool = True) -> Refiner:
        """The refiner of values of this type. ``path`` names the column, or part of it, in messages; ``nullable`` is
        false if there are no nulls at all.

        Raises :class:`~stormlet.errors.InvalidTopology` for a type outside the table, and for one that none of the
        choices can hold.
        """
        accepts_null = choices.nullable or not nullable
        refusals: list[str] = []
        for choice in choices.choices or (object,):
            try:
                return Refiner(self._refine_to(data_type, choice, path), accepts_null)
            except _Misfit as misfit:
                refusals.append(str(misfit))
        raise InvalidTopology(f"column {path!r}: {refusals[0]}")

    def _refine_to(self, data_type: DataType, choice: object, path: str) -> Refine | None:
        from pyspark.sql.types import ArrayType, MapType, StructType

        if isinstance(data_type, StructType):
            return self._struct(data_type, choice, path)
        if isinstance(data_type, ArrayType):
            return self._array(data_type, choice, path)
        if isinstance(data_type, MapType):
            return self._map(data_type, choice, path)
        return self._scalar(data_type, choice, path)

    def _scalar(self, data_type: DataType, choice: object, path: str) -> Refine | None:
        kinds = [base.__name__ for base in type(data_type).__mro__]
        made = next((SCALARS[kind] for kind in kinds if kind in SCALARS), None)
        if made is None:
            self._check_rows_only(data_type, kinds, path)
            made = object
        if made is int and choice is float:
            return float
        if made is not type(None):  # a column of nulls alone has no value to fit
            _check_fit(data_type, made, choice)
        if made is bytes:
            return bytes
        return self._in_zone if "TimestampType" in kinds else None

    def _check_rows_only(self, data_type: DataType, kinds: Sequence[str], path: str) -> None:
        name = data_type.simpleString()
        only_rows = any(kind in ROWS_ONLY for kind in kinds)
        if not only_rows:
            raise InvalidTopology(
                f"column {path!r}: {name} has no Python form; cast it, or leave it out with columns="
            )
        if self.transport == "arrow":
            raise InvalidTopology(
                f"column {path!r}: {name} has no Arrow form; cast it, leave it out with columns=, or use "
                f'transport="rows"'
            )

    def _in_zone(self, moment: datetime) -> datetime:
        # Plain rows have it naive, in this machine's own zone, and astimezone takes it so.
        return moment.astimezone(self.zone)

    def _array(self, data_type: ArrayType, choice: object, path: str) -> Refine | None:
        _check_fit(data_type, list, get_origin(choice) or choice)
        (of_elements,) = _arguments(choice, 1)
        inside = f"{path}[]"
        elements = self.refiner(data_type.elementType, of_elements, inside, nullable=data_type.containsNull)
        return None if elements.idle else partial(_refine_list, elements.every(inside))

    def _map(self, data_type: MapType, choice: object, path: str) -> Refine:
        _check_fit(data_type, dict, get_origin(choice) or choice)
        of_keys, of_values = _arguments(choice, 2)
        _check_hashable(data_type.keyType, path)
        key, value = f"{path}.key", f"{path}.value"
        keys = self.refiner(data_type.keyType, of_keys, key, nullable=False)
        values = self.refiner(data_type.valueType, of_values, value, nullable=data_type.valueContainsNull)
        if keys.idle and values.idle:
            return dict
        return partial(_refine_dict, keys.every(key), values.every(value))

    def _struct(self, data_type: StructType, choice: object, path: str) -> Refine:
        names = data_type.names
        check_distinct(names, f"column {path!r}")
        if choice is object:
            return self._refine_record(
                data_type, _record_of(path, names), dict.fromkeys(names, ANYTHING), path
            )
        record = get_origin(choice) or choice
        if not is_record(record):
            raise _Misfit(f"{data_type.simpleString()} does not fit {text_of(choice)}; give a record type")
        fields = fields_of(record)
        annotations = {name: wanted(each) for name, each in fields.annotations.items()}
        return self._refine_record(data_type, fields.make, annotations, path)

    def _refine_record(
        self, data_type: StructType, make: Callable[..., object], fields: Mapping[str, Wanted], path: str
    ) -> Refine:
        refined: list[tuple[int, Refine | None]] = []
        for name, choices in fields.items():
            if name not in data_type.names:
                raise _Misfit(f"there is no field {name!r} in {data_type.simpleString()}")
            field, inside = data_type[name], f"{path}.{name}"
            refiner = self.refiner(field.dataType, choices, inside, nullable=field.nullable)
            refined.append((data_type.names.index(name), None if refiner.idle else refiner.every(inside)))
        return partial(_refine_struct, make, tuple(refined))


class _Misfit(Exception):
    """One choice cannot hold values of the type; the next may."""


def check_distinct(names: Sequence[str], what: str) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` if a name occurs twice."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InvalidTopology(f"{what}: two fields are called {name!r}; rename one")


def _check_fit(data_type: DataType, made: type, choice: object) -> None:
    if not (isinstance(choice, type) and issubclass(made, choice)):
        raise _Misfit(f"{data_type.simpleString()} does not fit {text_of(choice)}; it gives {made.__name__}")


def _check_hashable(key: DataType, path: str) -> None:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(key, StructType):
        for field in key:
            _check_hashable(field.dataType, path)
    elif isinstance(key, ArrayType | MapType):
        raise InvalidTopology(
            f"column {path!r}: a map with {key.simpleString()} in its keys has no Python form, as a dict's keys "
            f"hold no lists or dicts; leave it out with columns="
        )


def _arguments(choice: object, count: int) -> Sequence[Wanted]:
    """The type arguments of a container, taken apart."""
    given = get_args(choice)
    return [wanted(each) for each in given] if len(given) == count else [ANYTHING] * count


def _record_of(path: str, names: Sequence[str]) -> type:
    """A record type for a struct that the user has none for."""
    for name in names:
        if not name.isidentifier():
            raise InvalidTopology(
                f"column {path!r}: the struct's field {name!r} is no Python name; rename it in the DataFrame"
            )
    name = path.rpartition(".")[2].rstrip("[]")
    return msgspec.defstruct(name if name.isidentifier() else "Record", names, frozen=True)


def _refine(refiner: Refiner, path: str, value: object) -> object:
    if value is None:
        if not refiner.nullable:
            raise MissingValue(path)
        return None
    return value if refiner.refine is None else refiner.refine(value)


def _refine_list(refine: Refine, values: Iterable[object]) -> list[object]:
    return [refine(value) for value in values]


def _refine_dict(keys: Refine, values: Refine, pairs: Any) -> dict[object, object]:
    items = cast("dict[object, object]", pairs).items() if isinstance(pairs, dict) else pairs
    return {keys(key): values(value) for key, value in items}


def _refine_struct(
    make: Callable[..., object], fields: Sequence[tuple[int, Refine | None]], struct: Any
) -> object:
    values = list(cast("dict[str, object]", struct).values()) if isinstance(struct, dict) else struct
    return make(*[values[at] if refine is None else refine(values[at]) for at, refine in fields])
