"""Values of a stream as an Arrow table, without the values that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import groupby
from typing import TYPE_CHECKING, cast

from stormlet.errors import InvalidTopology
from stormlet.spark.arrow.batches import is_batch, table_of
from stormlet.spark.arrow.columns import Misfit, Rows
from stormlet.spark.failures import summary

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Batch:
    """The table of some values, and those that are not in it."""

    table: pa.Table
    misfits: Mapping[int, str]
    """Place of a value that is not in the table -> the reason."""


class Tables:
    """Makes tables of one schema. Raises :class:`~stormlet.spark.arrow.columns.Misfit` for a column that no Python
    value is written as."""

    def __init__(self, schema: StructType) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        to_arrow = cast("Callable[..., pa.Schema]", to_arrow_schema)
        # From PySpark 4.2 on, the zone must be given; before, it is UTC.
        zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow).parameters else {}
        self.schema = schema
        """The columns of every table."""
        self._rows = Rows(schema)
        self._arrow_schema = to_arrow(schema, **zone)

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
        import pyarrow as pa

        if not any(map(is_batch, values)):
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
