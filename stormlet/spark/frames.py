"""A DataFrame of the user's: checks before it is read, its time zone, and the origin of a row."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Final, cast
from zoneinfo import ZoneInfo

import msgspec

from stormlet.errors import InvalidTopology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

A_MASTER: Final = "build the session with a master, such as SparkSession.builder.master(...)"
"""The way out where Spark Connect cannot be used."""

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")


def check_frame(frame: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for anything but a DataFrame, and for a stream, which never
    ends."""
    _check_kind(frame)
    if cast("DataFrame", frame).isStreaming:
        raise InvalidTopology(
            "this DataFrame is a stream, which has no partitions to read to their end; feed a spout from it with "
            "stormlet.spark.stream(df, topology, into=..., checkpoint=...)"
        )


def check_streaming_frame(frame: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for anything but a streaming DataFrame of a Spark session with
    a JVM."""
    _check_kind(frame)
    if is_of_connect(frame):
        raise InvalidTopology(
            f"this DataFrame belongs to a Spark Connect session, where foreachBatch runs on the server; {A_MASTER}"
        )
    if not cast("DataFrame", frame).isStreaming:
        raise InvalidTopology(
            "this DataFrame is no stream; read it with topology.spout(..., DataFrameSpout(df)), or make it with "
            "spark.readStream"
        )


def check_local(frame: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for a DataFrame of Spark Connect, whose partitions cannot be
    pulled into this process."""
    if is_of_connect(frame):
        raise InvalidTopology(
            "this DataFrame belongs to a Spark Connect session, and only Spark itself can read its partitions: run the "
            f"topology by run_on_spark, without checkpoint= and order_by=; or {A_MASTER}"
        )


def is_of_connect(thing: object) -> bool:
    """True for a session or a DataFrame of Spark Connect."""
    return any(base.__module__.startswith("pyspark.sql.connect") for base in type(thing).__mro__)


def _check_kind(frame: object) -> None:
    kinds = [base.__module__ for base in type(frame).__mro__ if base.__name__ == "DataFrame"]
    if not any(module.startswith("pyspark.sql") for module in kinds):
        raise InvalidTopology(f"{type(frame).__name__} object given, but a source reads a Spark DataFrame")


def zone_of_session(frame: DataFrame) -> tzinfo:
    """The session's time zone."""
    name = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    assert name is not None, "Spark gives it a default"
    return zone_of(name)


def zone_of(name: str) -> tzinfo:
    """The zone of ``spark.sql.session.timeZone``: a region, or an offset such as ``GMT+8`` or ``-01:30``.

    Raises :class:`~stormlet.errors.InvalidTopology` for a name that Python does not know.
    """
    if name == "Z":
        return ZoneInfo("UTC")
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups(default="0")
        ahead = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(ahead if sign == "+" else -ahead)
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise InvalidTopology(
            f"spark.sql.session.timeZone is {name!r}, which Python's zoneinfo does not know; set a region such as "
            f"'Europe/Berlin' or an offset such as '+02:00', or install the package tzdata"
        ) from None


class Origin(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Place of a row in its DataFrame: ``tup.origin`` of all tuples that come of the row."""

    partition: int
    """The partition of the DataFrame, from 0."""
    row: int
    """The row within its partition, from 0; of a batch, its first row."""
    epoch: int | None = None
    """The epoch that the row belongs to, where the source gives epochs."""
