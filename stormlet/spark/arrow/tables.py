"""Values of a stream, single rows or whole record batches, as an Arrow table without the values that do not fit.

Batches are checked as strictly as rows are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from stormlet.errors import InvalidTopology
from stormlet.spark.arrow.columns import Misfit, Rows
from stormlet.spark.failures import summary

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import DataType
    from pyspark.sql.types import StructType


def is_batch(value: object) -> TypeGuard[pa.RecordBatch]:
    """True for a :class:`pyarrow.RecordBatch`."""
    pyarrow = sys.modules.get("pyarrow")  # imported already if there is one
    return pyarrow is not None and isinstance(value, pyarrow.RecordBatch)


def table_of(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The rows of these batches with the columns of this schema, found by name.

    Raises :class:`~stormlet.spark.arrow.columns.Misfit` for a column that is missing or unknown, that has nulls where
    it may not, and for one of another type, unless every value of that type means the same in the schema's.
    """
    import pyarrow as pa

    return pa.Table.from_batches([_fitted(batch, schema) for batch in batches], schema=schema)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    _check_names(batch.column_names, schema.names)
    arrays = [_fitted_array(batch.column(field.name), field) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _check_names(given: Sequence[str], wanted: Sequence[str]) -> None:
    columns = f"the columns are {', '.join(wanted)}"
    for name in wanted:
        if given.count(name) != 1:
            raise Misfit(f"the batch has {_number(given.count(name))} {name!r}; {columns}")
    for name in given:
        if name not in wanted:
            raise Misfit(f"there is no column {name!r}; {columns}")


def _number(columns: int) -> str:
    return f"{columns} columns" if columns else "no column"


def _fitted_array(array: pa.Array, field: pa.Field) -> pa.Array:
    import pyarrow as pa

    if not same(array.type, field.type):
        raise Misfit(f"{field.name}: expected {field.type}, got {array.type}")
    try:
        fitted = array if array.type == field.type else array.cast(field.type)
    except (pa.ArrowException, ValueError) as error:
        raise Misfit(f"{field.name}: {error}") from error
    _check_nulls(fitted, field, field.name)
    return fitted


def _check_nulls(array: pa.Array, field: pa.Field, path: str) -> None:
    """Raise :class:`~stormlet.spark.arrow.columns.Misfit` for a null where the type has none, at any depth."""
    if array.null_count and not field.nullable:
        raise Misfit(f"{path} is None, which its type does not allow")
    for part, inside, name in _parts(array, field.type, path):
        _check_nulls(part, inside, name)


def _parts(array: pa.Array, kind: pa.DataType, path: str) -> Iterator[tuple[pa.Array, pa.Field, str]]:
    from pyarrow import types

    if types.is_list(kind):
        yield array.flatten(), kind.value_field, f"{path}[]"
    elif types.is_map(kind):
        copy = array.filter(array.is_valid())  # a slice's items are those of the whole
        yield copy.items, kind.item_field, f"{path}[...]"
    elif types.is_struct(kind):
        present = array.drop_null()
        for place, field in enumerate(kind):
            yield present.field(place), field, f"{path}.{field.name}"


def same(given: DataType, wanted: DataType) -> bool:
    """True if values of both types mean the same: strings of either layout, integers of any width, timestamps with a
    zone, whichever it is. A value that has no room in the wanted type fails in the cast, later."""
    from pyarrow import types

    if types.is_dictionary(given):
        given = given.value_type
    if given == wanted or types.is_null(given):
        return True
    parts, wanted_parts = _type_parts(given), _type_parts(wanted)
    if parts is None or wanted_parts is None:
        widened = types.is_floating(given) and types.is_float64(wanted)
        return widened or any(is_kind(given) and is_kind(wanted) for is_kind in _kinds())
    return list(parts) == list(wanted_parts) and all(same(parts[name], wanted_parts[name]) for name in parts)


def _type_parts(kind: DataType) -> dict[str, DataType] | None:
    """The types that a nested type is made of, by their place; None for a plain type."""
    from pyarrow import types

    if types.is_map(kind):
        return {"a key": kind.key_type, "a value": kind.item_type}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"an element": kind.value_type}
    if types.is_struct(kind):
        return {f".{field.name}": field.type for field in kind}
    return None


def _kinds() -> Sequence[Callable[[DataType], bool]]:
    from pyarrow import types

    return (
        types.is_integer,
        types.is_decimal,
        types.is_duration,
        lambda kind: types.is_string(kind) or types.is_large_string(kind),
        lambda kind: types.is_binary(kind) or types.is_large_binary(kind),
        lambda kind: types.is_timestamp(kind) and kind.tz is None,
        lambda kind: types.is_timestamp(kind) and kind.tz is not None,
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """The table of some values, and those that are not in it."""

    table: pa.Table
    misfits: Mapping[int, str]
    """Place of a value that is not in the table -> the reason."""


NULLS: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder for the rows in which the column is null. A value of this name would be written over them,
which fails the write, or else be read back as null."""


class Tables:
    """Makes tables of one schema, for files in folders of these columns. Raises
    :class:`~stormlet.spark.arrow.columns.Misfit` for a column that no Python value is written as."""

    def __init__(self, schema: StructType, folders: Sequence[str] = ()) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        to_arrow = cast("Callable[..., pa.Schema]", to_arrow_schema)
        # From PySpark 4.2 on, the zone must be given; before, it is UTC.
        zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow).parameters else {}
        self.schema = schema
        """The columns of every table."""
        self._rows = Rows(schema)
        self._arrow_schema = to_arrow(schema, **zone)
        self._named = [
            field.name for field in self._arrow_schema if field.name in folders and _is_text(field.type)
        ]

    def of(self, values: Sequence[object]) -> Batch:
        """The table of all values that fit, in their order, and the reasons why the others do not."""
        try:
            return Batch(self._table(values), {})
        except Misfit:
            misfits = {
                place: why for place, value in enumerate(values) if (why := self._why_not(value)) is not None
            }
        fitting = [value for place, value in enumerate(values) if place not in misfits]
        return Batch(self._table(fitting), misfits)

    def _why_not(self, value: object) -> str | None:
        try:
            self._table([value])
        except Misfit as misfit:
            return str(misfit)
        return None

    def _table(self, values: Sequence[object]) -> pa.Table:
        table = self._converted(values)
        for name in self._named:
            if _has_nulls_name(cast("Any", table).column(name)):
                raise Misfit(f"{name}: {NULLS!r} names the folder of rows without a value, for partition_by")
        return table

    def _converted(self, values: Sequence[object]) -> pa.Table:
        import pyarrow as pa

        if not any(issubclass(kind, pa.RecordBatch) for kind in set(map(type, values))):
            return self._table_of_rows(values)
        return pa.concat_tables(
            table_of(cast("list[pa.RecordBatch]", list(run)), self._arrow_schema)
            if whole
            else self._table_of_rows(list(run))
            for whole, run in groupby(values, key=is_batch)
        )

    def _table_of_rows(self, values: Sequence[object]) -> pa.Table:
        import pyarrow as pa

        columns = self._rows.fit(values)
        arrays = [_array(column, field) for column, field in zip(columns, self._arrow_schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._arrow_schema)


def _has_nulls_name(column: Any) -> bool:
    import pyarrow as pa
    from pyarrow import compute

    untyped: Any = compute
    return bool(untyped.index(column, cast("Any", pa).scalar(NULLS, column.type)).as_py() >= 0)


def _is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    return any(
        is_kind(kind)
        for is_kind in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def _array(values: Sequence[object], field: pa.Field) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, type=field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise Misfit(f"{field.name}: {error}") from error


class LearnedTables:
    """Makes tables of one schema, as :class:`Tables` does, and takes the schema from the first record batch.

    ``make`` makes the tables of a schema; a :class:`~stormlet.spark.arrow.columns.Misfit` that it raises rejects that
    batch.
    """

    def __init__(self, make: Callable[[StructType], Tables]) -> None:
        self._make = make
        self._tables: Tables | None = None

    @property
    def schema(self) -> StructType:
        """The schema. Raises :class:`~stormlet.errors.InvalidTopology` before the first record batch."""
        if self._tables is None:
            raise InvalidTopology(
                "the columns of record batches are not known before the first one comes, and this sink needs them at "
                "the start; give schema=, or leave out mode= and exactly_once="
            )
        return self._tables.schema

    def of(self, values: Sequence[object]) -> Batch:
        """See :meth:`Tables.of`."""
        misfits = dict[int, str]()
        for place, value in enumerate(values):
            if self._tables is not None:
                break
            try:
                self._tables = self._make(_columns_of(value))
            except Misfit as misfit:
                misfits[place] = str(misfit)
        return _nothing(misfits) if self._tables is None else self._rest(self._tables, values, misfits)

    def _rest(self, tables: Tables, values: Sequence[object], misfits: dict[int, str]) -> Batch:
        places = [place for place in range(len(values)) if place not in misfits]
        batch = tables.of([values[place] for place in places])
        return Batch(batch.table, misfits | {places[place]: why for place, why in batch.misfits.items()})


def _columns_of(value: object) -> StructType:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema

    if not is_batch(value):
        raise Misfit(f"expected a RecordBatch, whose columns are the sink's, and got {type(value).__name__}")
    try:
        return from_arrow_schema(value.schema, prefer_timestamp_ntz=True)
    except PySparkException as error:
        raise Misfit(summary(error)) from error


def _nothing(misfits: dict[int, str]) -> Batch:
    import pyarrow as pa

    return Batch(pa.Table.from_arrays([], names=[]), misfits)
