"""Writes batches of values with Spark, in whatever thread it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast
from uuid import uuid4

from stormlet.core.schema import Schema
from stormlet.errors import InvalidTopology, SparkFailed
from stormlet.spark.arrow_columns import Misfit
from stormlet.spark.destinations import Destination
from stormlet.spark.learned_tables import LearnedTables
from stormlet.spark.session import spark_session
from stormlet.spark.sink_schemas import sink_schema
from stormlet.spark.tables import Tables
from stormlet.spark.troubles import summary

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Writer(Protocol):
    """What a sink needs; one for each of its tasks."""

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """Before the first batch; ``first`` is true in one task of the sink."""
        ...

    def write(self, values: Sequence[object]) -> Mapping[int, str]:
        """Write all that fit, durably; by its place, why another one did not."""
        ...

    def interrupt(self) -> None:
        """Have a write that is under way, in another thread, fail soon."""
        ...


class SparkWriter:
    """Writes to a destination of Spark's."""

    _session: SparkSession
    _tables: Tables | LearnedTables

    def __init__(self, destination: Destination, schema: object) -> None:
        self._destination = destination
        self._given_schema = schema
        self._tag = f"stormlet-sink-{uuid4()}"
        self._interrupted = False

    def open(self, inputs: Sequence[Schema], *, first: bool) -> None:
        """See :meth:`Writer.open`. Raises :class:`~stormlet.errors.SparkUnavailable`,
        :class:`~stormlet.errors.SparkFailed`, and :class:`~stormlet.errors.InvalidTopology` for columns that
        cannot be written."""
        self._session = spark_session()
        self._session.sparkContext.addJobTag(self._tag)  # of this thread, which is the task's own
        schema = sink_schema(self._given_schema, inputs)
        try:
            self._tables = LearnedTables(self._tables_of) if schema is None else self._tables_of(schema)
        except Misfit as misfit:
            raise InvalidTopology(str(misfit)) from None
        if first and self._destination.mode != "append":
            self._begin(self._schema)

    def write(self, values: Sequence[object]) -> Mapping[int, str]:
        """See :meth:`Writer.write`. Raises :class:`~stormlet.errors.SparkFailed`."""
        batch = self._tables.of(values)
        if batch.table.num_rows:
            self._append(batch.table)
        return batch.misfits

    def interrupt(self) -> None:
        """See :meth:`Writer.interrupt`."""
        self._interrupted = True
        with suppress(Exception):  # a JVM that is gone writes nothing, either
            self._session.sparkContext.cancelJobsWithTag(self._tag)

    def _append(self, table: pa.Table) -> None:
        def append() -> None:
            rows = self._frame(table, self._schema).coalesce(1)  # one file for a batch, not one for each core
            self._destination.append(rows)

        self._in_turn(f"writing {table.num_rows:,} rows to {self._destination}", append)

    def _begin(self, schema: StructType) -> None:
        def begin() -> None:
            self._destination.begin(self._frame([], schema))

        self._in_turn(f"beginning with {self._destination}", begin)

    def _in_turn(self, what: str, write: Callable[[], None]) -> None:
        with self._destination.turn:
            if self._interrupted:
                raise SparkFailed(f"{what} was interrupted")
            try:
                write()
            except Exception as error:
                raise SparkFailed(f"{what} failed: {summary(error)}") from error

    @property
    def _schema(self) -> StructType:
        return self._tables.schema

    def _frame(self, rows: object, schema: StructType) -> DataFrame:
        create = cast("Callable[[object, StructType], DataFrame]", self._session.createDataFrame)
        return create(rows, schema)

    def _tables_of(self, schema: StructType) -> Tables:
        unknown = [name for name in self._destination.partition_by if name not in schema.names]
        if unknown:
            raise Misfit(f"partition_by: there is no column {unknown[0]!r}, only {', '.join(schema.names)}")
        return Tables(schema)
