"""The columns that a sink writes: given, or read from the streams it consumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from stormlet.core.schema import Schema, class_below
from stormlet.errors import InvalidTopology
from stormlet.spark.record_schemas import schema_of_record
from stormlet.spark.troubles import summary

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def sink_schema(given: object, inputs: Sequence[Schema]) -> StructType | None:
    """The schema that was given (Spark's DDL, a StructType, a ``pyarrow.Schema`` or a record type) or, without
    one, that of the record type which all inputs share; None if all carry record batches, which know it themselves.
    Needs a session, for DDL.

    Raises :class:`~stormlet.errors.InvalidTopology` if there is none, for columns that a stream does not have
    and for types without columns.
    """
    if given is None:
        return _shared(inputs)
    schema = _read(given)
    for stream in inputs:
        unknown = [name for name in schema.names if stream.fields is not None and name not in stream.fields]
        if unknown:
            raise InvalidTopology(
                f"{stream.name} has no {', '.join(map(repr, unknown))} for the sink's columns"
            )
    return schema


def _shared(inputs: Sequence[Schema]) -> StructType | None:
    from pyarrow import RecordBatch

    declared = inputs[0].declared
    if all(stream.declared is RecordBatch for stream in inputs):
        return None
    if declared is None or any(stream.declared != declared for stream in inputs):
        names = ", ".join(dict.fromkeys(stream.name for stream in inputs))
        raise InvalidTopology(
            f"the columns are not known from the inputs ({names}); give schema=, such as "
            f'DataFrameSink(..., schema="word string, count bigint"), or annotate what they emit with a record type'
        )
    return schema_of_record(declared)


def _read(given: object) -> StructType:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    if isinstance(given, StructType):
        return given
    if isinstance(given, pa.Schema):
        return from_arrow_schema(given, prefer_timestamp_ntz=True)
    if class_below(given) is not None:
        return schema_of_record(given)
    if not isinstance(given, str):
        raise InvalidTopology(
            f"schema={given!r} is no schema; give Spark's DDL, a StructType, a pyarrow.Schema or a record type"
        )
    try:
        return cast("StructType", StructType.fromDDL(given))
    except PySparkException as error:
        raise InvalidTopology(f"schema={given!r} is no schema: {summary(error)}") from error
