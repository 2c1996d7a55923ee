"""Tables whose columns are those of the first record batch that comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stormlet.errors import InvalidTopology
from stormlet.spark.arrow_columns import Misfit
from stormlet.spark.tables import Batch, Tables
from stormlet.spark.troubles import summary
from stormlet.spark.whole_batches import is_batch

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class LearnedTables:
    """Makes tables of one schema, as :class:`~stormlet.spark.tables.Tables` does, which it learns.

    ``make`` makes them when it is known; what it raises as a :class:`~stormlet.spark.arrow_columns.Misfit` rejects
    the batch that has it.
    """

    def __init__(self, make: Callable[[StructType], Tables]) -> None:
        self._make = make
        self._tables: Tables | None = None

    @property
    def schema(self) -> StructType:
        """Raises :class:`~stormlet.errors.InvalidTopology` if it is not known yet."""
        if self._tables is None:
            raise InvalidTopology(
                "the columns of record batches are not known before the first one comes, and this sink needs them at "
                "the start; give schema=, or leave out mode= and exactly_once="
            )
        return self._tables.schema

    def of(self, values: Sequence[object]) -> Batch:
        """See :meth:`stormlet.spark.tables.Tables.of`."""
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
