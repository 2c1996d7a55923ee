"""Conversion of Spark's record batches or plain rows to the values that a source emits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from stormlet.errors import InvalidTopology
from stormlet.spark.arrow.records import ANYTHING, Wanted, fields_of, text_of, wanted
from stormlet.spark.arrow.refiners import MissingValue, Refine, Refiner, Refining, check_distinct

if TYPE_CHECKING:
    from pyarrow import Array, DataType, RecordBatch
    from pyspark.sql.types import StructType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Column:
    """One column, and the refiner of its values."""

    name: str
    refiner: Refiner

    def refined(self, values: Sequence[object]) -> Sequence[object]:
        """Refine values. Raises :class:`~stormlet.spark.arrow.refiners.MissingValue` for a null that is not
        accepted."""
        refiner = self.refiner
        if refiner.idle:
            return values
        if not refiner.nullable and None in values:
            raise MissingValue(self.name)
        return values if refiner.refine is None else _refined(refiner.refine, values)


@dataclass(frozen=True, slots=True)
class Conversion:
    """Makes the values of rows: records, or tuples."""

    columns: tuple[Column, ...]
    make: Callable[..., object] | None
    """Makes a record of the values; None for tuples."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the DataFrame that are read, in order."""
        return tuple(column.name for column in self.columns)

    def of_batch(self, batch: RecordBatch) -> list[object]:
        """The values of a batch of these columns."""
        return self._made(map(_plain, batch.columns))

    def of_rows(self, rows: Sequence[Sequence[object]]) -> list[object]:
        """The values of PySpark's rows of these columns."""
        return self._made(zip(*rows, strict=True))

    def _made(self, plain: Iterable[Sequence[object]]) -> list[object]:
        refined = [column.refined(values) for column, values in zip(self.columns, plain, strict=False)]
        return list(zip(*refined, strict=True) if self.make is None else map(self.make, *refined))


def check_form(record: type | None, columns: Sequence[str] | None) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for columns beside a record type, and for one name alone."""
    if record is not None and columns is not None:
        raise InvalidTopology("as_= names the columns and what a row becomes; leave out columns=")
    if isinstance(columns, str):
        raise InvalidTopology(f"columns= is a list of names, such as [{columns!r}]")


def conversion(
    schema: StructType, refining: Refining, *, record: type | None, columns: Sequence[str] | None
) -> Conversion:
    """Plan the conversion of rows of this schema: all columns, those named, or those that the record has.

    Raises :class:`~stormlet.errors.InvalidTopology` for a column that is missing, that has no Python form, or that
    does not fit the record's field.
    """
    if record is not None:
        fields = fields_of(record)
        wants = {name: wanted(annotation) for name, annotation in fields.annotations.items()}
        return Conversion(_columns(schema, refining, wants, f"as_={text_of(record)}"), fields.make)
    names = schema.names if columns is None else list(columns)
    check_distinct(names, "columns=" if columns is not None else "the DataFrame")
    return Conversion(_columns(schema, refining, dict.fromkeys(names, ANYTHING), "columns="), None)


def _columns(
    schema: StructType, refining: Refining, wants: dict[str, Wanted], asked_by: str
) -> tuple[Column, ...]:
    if not wants:
        raise InvalidTopology("no columns are left to read; a source needs one at least")
    return tuple(_column(schema, refining, name, want, asked_by) for name, want in wants.items())


def _column(schema: StructType, refining: Refining, name: str, want: Wanted, asked_by: str) -> Column:
    places = [place for place, each in enumerate(schema.names) if each == name]
    if not places:
        raise InvalidTopology(
            f"{asked_by} wants a column {name!r}, which the DataFrame lacks; it has {', '.join(schema.names)}"
        )
    if len(places) > 1:
        raise InvalidTopology(f"the DataFrame has {len(places)} columns called {name!r}; rename one")
    field = schema.fields[places[0]]
    return Column(name, refining.refiner(field.dataType, want, name, nullable=field.nullable))


def _refined(refine: Refine, values: Sequence[object]) -> Sequence[object]:
    return [None if value is None else refine(value) for value in values]


def _plain(array: Array) -> list[object]:
    """The values of an array as :mod:`pyarrow` makes them; dates and timestamps several times faster."""
    import pyarrow as pa

    if pa.types.is_date32(array.type):
        return _of_numbers(array.cast(pa.int32()), _day)
    if pa.types.is_timestamp(array.type):
        return _of_numbers(array.cast(pa.int64()), _naive_moment if array.type.tz is None else _moment)
    return (array.cast(_without_zones(array.type)) if pa.types.is_nested(array.type) else array).to_pylist()


def _of_numbers(numbers: Array, make: Callable[[Any], object]) -> list[object]:
    return [None if number is None else make(number) for number in numbers.to_pylist()]


def _day(days: int) -> date:
    return date.fromordinal(_EPOCH_DAY + days)


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(0, 0, microseconds)


def _naive_moment(microseconds: int) -> datetime:
    return _moment(microseconds).replace(tzinfo=None)


def _without_zones(kind: DataType) -> DataType:
    """The type with its zones replaced by UTC, as pyarrow does not know all of Spark's."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind):
        return pa.list_(_without_zones(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_without_zones(kind.key_type), _without_zones(kind.item_type))
    if pa.types.is_struct(kind):  # of nullable fields: pyarrow casts a null struct to no others
        return pa.struct([(field.name, _without_zones(field.type)) for field in kind])
    return kind
