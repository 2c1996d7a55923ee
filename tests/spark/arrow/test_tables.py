"""Values as Arrow tables: which fit, which are refused and why. No Spark runs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from pyspark.sql import types as t

from stormlet.spark.arrow.columns import Misfit
from stormlet.spark.arrow.tables import Tables

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


def schema(*fields: tuple[str, t.DataType], nullable: bool = True) -> t.StructType:
    return t.StructType([t.StructField(name, kind, nullable) for name, kind in fields])


def written(kind: t.DataType, *values: object) -> list[object]:
    """What a column of this type holds of the values, all of which fit."""
    batch = Tables(schema(("a", kind))).of([(value,) for value in values])
    assert batch.misfits == {}
    return [row["a"] for row in batch.table.to_pylist()]


def why_not(kind: t.DataType, value: object, *, nullable: bool = True) -> str:
    """Why a value does not fit a column of this type."""
    batch = Tables(schema(("a", kind), nullable=nullable)).of([(value,)])
    assert batch.table.num_rows == 0
    return batch.misfits[0]


class Word(msgspec.Struct):
    word: str
    count: int


class NamedWord(NamedTuple):
    count: int
    word: str


@dataclass
class Pair:
    word: str
    count: int
    more: int = 0


WORDS = schema(("word", t.StringType()), ("count", t.LongType()))


@pytest.mark.parametrize(
    "value",
    [Word("a", 1), NamedWord(1, "a"), Pair("a", 1), {"word": "a", "count": 1}, ("a", 1), ["a", 1]],
    ids=["struct", "named tuple", "dataclass", "dict", "tuple", "list"],
)
def test_what_a_row_may_be(value: object) -> None:
    """Fields go by their names, items of plain tuples by their places; attributes without a column are left out."""
    assert Tables(WORDS).of([value]).table.to_pylist() == [{"word": "a", "count": 1}]


def test_a_single_column() -> None:
    """It is read as several are."""
    assert Tables(schema(("word", t.StringType()))).of([Word("a", 1)]).table.to_pylist() == [{"word": "a"}]


def test_no_rows() -> None:
    """An empty table has the columns."""
    assert Tables(WORDS).of([]).table.schema.names == ["word", "count"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (t.BooleanType(), True),
        (t.ByteType(), 127),
        (t.IntegerType(), 1),
        (t.LongType(), 2**62),
        (t.DoubleType(), 1.5),
        (t.StringType(), "a"),
        (t.BinaryType(), b"a"),
        (t.DateType(), date(2013, 1, 1)),
        (t.TimestampType(), NOON),
        (t.TimestampNTZType(), NOON.replace(tzinfo=None)),
        (t.DayTimeIntervalType(), timedelta(seconds=1.5)),
        (t.DecimalType(10, 2), Decimal("1.25")),
        (t.ArrayType(t.LongType()), [1, None]),
        (t.ArrayType(t.ArrayType(t.StringType())), [["a"], None, []]),
    ],
    ids=lambda each: each.simpleString() if isinstance(each, t.DataType) else "",
)
def test_every_type(kind: t.DataType, value: object) -> None:
    """A value is written as it is, and so is None."""
    assert written(kind, value, None) == [value, None]


def test_numbers_of_another_kind() -> None:
    """An int is a float and a decimal, where nothing is lost."""
    assert written(t.DoubleType(), 1) == [1.0]
    assert written(t.DecimalType(10, 2), 1) == [Decimal("1.00")]


def test_other_time_zones() -> None:
    """A moment is a moment."""
    (value,) = written(t.TimestampType(), datetime.fromisoformat("2013-01-01T14:00:00+02:00"))
    assert value == NOON


def test_nested_values() -> None:
    """Maps, and records in records."""
    nested = t.ArrayType(WORDS)
    assert written(nested, [Word("a", 1), {"word": "b", "count": 2}], [None]) == [
        [{"word": "a", "count": 1}, {"word": "b", "count": 2}],
        [None],
    ]
    assert written(t.MapType(t.StringType(), WORDS), {"x": Word("a", 1)}, None, {}) == [
        [("x", {"word": "a", "count": 1})],
        None,
        [],
    ]


@pytest.mark.parametrize("value", [3.4028234663852886e38, math.inf, -math.inf, None])
def test_the_largest_float_and_what_is_no_number(value: float | None) -> None:
    """They fit a column of floats."""
    assert written(t.FloatType(), value) == [value]


@pytest.mark.filterwarnings("error")
def test_floats_of_numpy() -> None:
    """Those of 32 bits and less always fit, and are not compared with a number that they cannot hold."""
    assert written(t.FloatType(), np.float32(3.4e38), np.float16(0.5)) == [float(np.float32(3.4e38)), 0.5]


def test_an_integer_that_python_writes_in_no_text_is_too_large_as_well() -> None:
    """It has more digits than ``str`` gives, which must not fail the rows beside it."""
    batch = Tables(schema(("a", t.FloatType()))).of([(1,), (10**5000,)])
    assert list(batch.misfits) == [1]
    assert "is too large for a float" in batch.misfits[1]


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (t.LongType(), "1", "a: expected int, got str"),
        (t.LongType(), 1.5, "a: expected int, got float"),
        (t.LongType(), True, "a: expected int, got bool"),
        (t.LongType(), 2**63, "a: Python int too large"),
        (t.ByteType(), 128, "a: Value 128 too large"),
        (t.DoubleType(), 2**60 + 1, "a: Integer value"),
        (t.DoubleType(), Decimal(1), "a: expected float, got Decimal"),
        (t.FloatType(), 1e39, r"a: 1e\+39 is too large for a float; make the column a double"),
        (t.FloatType(), -3.402823567797337e38, r"a: -3\.402823567797337e\+38 is too large for a float"),
        pytest.param(t.FloatType(), -(10**400), r"a: -10+\.\.\.0+ is too large for a float", id="large int"),
        (t.FloatType(), np.float64(1e39), r"a: .*1e\+39.* is too large for a float"),
        (t.ArrayType(t.FloatType()), [0.5, 1e39], r"a\[\]: 1e\+39 is too large for a float"),
        (t.BooleanType(), 1, "a: expected bool, got int"),
        (t.StringType(), b"a", "a: expected str, got bytes"),
        (t.StringType(), "\ud800", "a: 'utf-8' codec can't encode"),
        (t.BinaryType(), "a", "a: expected bytes or bytearray, got str"),
        (t.DecimalType(10, 2), Decimal("1.234"), r"a: Rescaling Decimal(128)? value would cause data loss"),
        (t.DecimalType(10, 2), 1.5, "a: expected Decimal or int, got float"),
        (t.DateType(), NOON, "a: expected date, got datetime"),
        (t.TimestampType(), date(2013, 1, 1), "a: expected datetime, got date"),
        (t.TimestampType(), NOON.replace(tzinfo=None), "has no time zone, which a timestamp needs"),
        (t.TimestampNTZType(), NOON, "has a time zone, which timestamp_ntz cannot keep"),
        (t.ArrayType(t.StringType()), "abc", "a: expected list or tuple, got str"),
        (
            t.ArrayType(t.StringType(), containsNull=False),
            [None],
            r"a\[\] is None, which its type does not allow",
        ),
        (t.MapType(t.StringType(), t.LongType()), {1: 1}, "a key of a: expected str, got int"),
        (t.MapType(t.StringType(), t.LongType()), {"x": "y"}, r"a\[\.\.\.\]: expected int, got str"),
        (WORDS, Word("a", "b"), r"a\.count: expected int, got str"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit(kind: t.DataType, value: object, why: str) -> None:
    """What would be truncated, reinterpreted or lost is refused, naming the column."""
    assert re.search(why, why_not(kind, value))


def test_none_where_there_must_be_a_value() -> None:
    """The column is named."""
    assert why_not(t.LongType(), None, nullable=False) == "a is None, which its type does not allow"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (("a",), "expected 2 columns, word, count, got 1"),
        (("a", 1, 2), "expected 2 columns, word, count, got 3"),
        ({"word": "a", "cuont": 1}, "there is no column 'cuont'; the columns are word, count"),
        ("a", "'str' object has no attribute 'word'; the columns are word, count"),
    ],
)
def test_what_is_no_row(value: object, why: str) -> None:
    """The columns are named."""
    assert Tables(WORDS).of([value]).misfits == {0: why}


def test_a_key_that_is_not_there_is_null() -> None:
    """Where its column may be null."""
    assert Tables(WORDS).of([{"word": "a"}]).table.to_pylist() == [{"word": "a", "count": None}]


def test_misfits_do_not_keep_the_others_out() -> None:
    """The rest of the batch stays in its order; each misfit is named by its place."""
    values: list[Any] = [Word("a", 1), Word("b", "x"), Word("c", 3), 5, Word("d", 4)]  # type: ignore[arg-type]
    batch = Tables(WORDS).of(values)
    assert [row["word"] for row in batch.table.to_pylist()] == ["a", "c", "d"]
    assert list(batch.misfits) == [1, 3]


def test_a_column_type_that_nothing_is_written_as() -> None:
    """It is refused by name, before there are values."""
    with pytest.raises(Misfit, match="column a is a variant, which no Python value is written as"):
        Tables(schema(("a", t.VariantType())))
