"""Keys as text, and the keys of rows that a checkpoint may need."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from stormlet import InvalidTopology
from stormlet.spark.source.ordering import KeyTrail, check_key, from_key_on, key_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEW_YORK = ZoneInfo("America/New_York")


def test_a_key_is_text_that_spark_casts() -> None:
    """Moments are in UTC, and decimals have no exponent."""
    night = datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK)
    assert key_of([7, "a", Decimal("1E-7"), night, night.replace(fold=1)]) == (
        "7",
        "a",
        "0.0000001",
        "2024-11-03T05:30:00+00:00",
        "2024-11-03T06:30:00+00:00",
    )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("tinyint", ["-3", "5"]),
        ("bigint", ["-9223372036854775808", "9223372036854775807"]),
        ("decimal(38,18)", ["-0.000000000000000001", "12345678901234567890.123456789012345678"]),
        ("string", ["", " x '\\ ", "ä"]),
        ("date", ["0001-01-01", "9999-12-31"]),
        ("timestamp", ["2024-11-03T05:30:00.000001+00:00", "2024-11-03T06:30:00+00:00"]),
        ("timestamp_ntz", ["2024-03-10 02:30:00.5", "2024-03-10 02:30:00.500001"]),
    ],
)
def test_from_a_key_on(spark: SparkSession, kind: str, values: list[str]) -> None:
    """A value's text is that value to Spark, of every type: from it on there is itself, and what comes after it."""
    frame = spark.createDataFrame([(text,) for text in values], "k string").selectExpr(
        f"CAST(k AS {kind}) AS k"
    )
    types = [frame.schema["k"].dataType]
    rows = [row.k.astimezone() if kind == "timestamp" else row.k for row in frame.collect()]
    for place, value in enumerate(rows):
        assert frame.where(from_key_on([frame.k], types, key_of([value]))).count() == len(values) - place


def test_from_a_key_of_several_columns_on(spark: SparkSession) -> None:
    """The first column counts most."""
    frame = spark.sql("SELECT a.id AS a, b.id AS b, c.id AS c FROM range(3) a, range(3) b, range(3) c")
    types = [field.dataType for field in frame.schema]
    found = frame.where(from_key_on([frame.a, frame.b, frame.c], types, ("1", "0", "2"))).collect()
    assert sorted(tuple(row) for row in found) == [
        (a, b, c) for a in range(3) for b in range(3) for c in range(3) if (a, b, c) >= (1, 0, 2)
    ]


@pytest.mark.parametrize("kind", ["double", "boolean", "array<int>", "string COLLATE UTF8_LCASE"])
def test_what_is_no_key(spark: SparkSession, kind: str) -> None:
    """Columns whose texts do not say which value is meant, or is equal to which, are refused by name."""
    schema = spark.sql("SELECT 1 AS n").selectExpr(f"CAST(NULL AS {kind.split(' ')[0]}) AS k").schema
    if "COLLATE" in kind:
        schema = spark.sql("SELECT collate('a', 'UTF8_LCASE') AS k").schema
    with pytest.raises(InvalidTopology, match=r"order_by= takes whole numbers, .* and column 'k' is "):
        check_key(schema, ["k"])


def test_a_key_that_is_not_there(spark: SparkSession) -> None:
    """The message names the columns that are."""
    with pytest.raises(
        InvalidTopology, match="order_by= wants a column 'key', which the DataFrame lacks; it has id"
    ):
        check_key(spark.range(1).schema, ["key"])


def trail_of(*, until_forgotten: bool) -> KeyTrail:
    trail = KeyTrail(until_forgotten=until_forgotten)
    trail.begin(10, ("ten",))
    trail.add(10, [(11,), (12,)])
    trail.add(12, [(13,), (14,), (15,)])
    return trail


def test_the_key_of_the_last_of_so_many_rows() -> None:
    """It is known from where another run ended on."""
    trail = trail_of(until_forgotten=True)
    assert [trail.last_of(rows) for rows in range(10, 16)] == [("ten",), *((str(n),) for n in range(11, 16))]


def test_keys_are_forgotten() -> None:
    """Those are kept that may be asked for, and no others."""
    trail = trail_of(until_forgotten=True)
    trail.forget(12)
    assert trail.last_of(12) == ("12",)
    trail.forget(13)
    assert trail.last_of(13) == ("13",)
    assert len(trail._parts) == 1
    trail = trail_of(until_forgotten=False)
    assert trail.last_of(15) == ("15",)
    assert len(trail._parts) == 1


def test_before_the_first_row_there_is_no_key() -> None:
    """A reading that begins has nothing to go on from."""
    assert KeyTrail(until_forgotten=True).last_of(0) == ()
