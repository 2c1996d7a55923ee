"""What a source must know of a DataFrame before it reads it."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Any, cast

from stormlet.errors import InvalidTopology
from stormlet.spark.zones import zone_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_frame(frame: object) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for what is no DataFrame of a Spark session with a
    JVM, and for one that never ends."""
    _check_kind(frame)
    if cast("DataFrame", frame).isStreaming:
        raise InvalidTopology(
            "this DataFrame is a stream, which has no partitions to read to their end; feed a spout from it with "
            "stormlet.spark.stream(df, topology, into=..., checkpoint=...)"
        )


def check_streaming_frame(frame: object) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for what is no streaming DataFrame of a Spark session with
    a JVM."""
    _check_kind(frame)
    if not cast("DataFrame", frame).isStreaming:
        raise InvalidTopology(
            "this DataFrame is no stream; read it with topology.spout(..., DataFrameSpout(df)), or make it with "
            "spark.readStream"
        )


def _check_kind(frame: object) -> None:
    kinds = [base.__module__ for base in type(frame).__mro__ if base.__name__ == "DataFrame"]
    if any(module.startswith("pyspark.sql.connect") for module in kinds):
        raise InvalidTopology(
            "this DataFrame belongs to a Spark Connect session, which cannot be read yet; build the session with "
            "a master, such as SparkSession.builder.master(...)"
        )
    if not any(module.startswith("pyspark.sql") for module in kinds):
        raise InvalidTopology(f"{type(frame).__name__} object given, but a source reads a Spark DataFrame")


def zone_of_session(frame: DataFrame) -> tzinfo:
    """The session's time zone."""
    name = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    assert name is not None, "Spark gives it a default"
    return zone_of(name)


def has_fixed_order(frame: DataFrame) -> bool:
    """Whether Spark gives the same rows in the same partitions and order whenever it computes them."""
    plan = cast("Any", frame)._jdf.queryExecution()  # nothing public tells
    return str(plan.toRdd().outputDeterministicLevel()) == "DETERMINATE"
