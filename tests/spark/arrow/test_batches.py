"""Record batches that a sink gets whole, as tables of its columns; no Spark runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from stormlet.errors import InvalidTopology
from stormlet.spark.arrow.tables import LearnedTables, Tables

NOON = datetime(2013, 1, 1, 12)
WORDS = t.StructType(
    [t.StructField("word", t.StringType()), t.StructField("count", t.LongType(), nullable=False)]
)


def batch(**columns: Any) -> pa.RecordBatch:
    arrays = [each if isinstance(each, pa.Array) else pa.array(each) for each in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def column(kind: t.DataType, array: pa.Array, *, nullable: bool = True) -> tuple[list[object], str]:
    """What is written of a batch with one column, and why it is not."""
    made = Tables(t.StructType([t.StructField("a", kind, nullable)])).of([batch(a=array)])
    return [row["a"] for row in made.table.to_pylist()], made.misfits.get(0, "")


def test_batches_and_rows_keep_their_order() -> None:
    """Columns go by their names, wherever they stand in a batch."""
    made = Tables(WORDS).of(
        [
            batch(count=[1, 2], word=["a", "b"]),
            ("c", 3),
            batch(word=["d"], count=[4]),
            batch(word=["e"], count=[5]),
        ]
    )
    assert made.misfits == {}
    assert made.table.to_pylist() == [{"word": word, "count": place} for place, word in enumerate("abcde", 1)]


def test_a_batch_that_does_not_fit_leaves_the_others_alone() -> None:
    """It is refused as a whole, and named by its place."""
    made = Tables(WORDS).of(
        [batch(word=["a"]), ("b", 2), batch(word=["c"], count=["3"]), batch(word=["d"], count=[4])]
    )
    assert [row["word"] for row in made.table.to_pylist()] == ["b", "d"]
    assert made.misfits == {
        0: "the batch has no column 'count'; the columns are word, count",
        2: "count: expected int64, got string",
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (batch(word=["a"], count=[1], more=[2]), "there is no column 'more'; the columns are word, count"),
        (
            pa.RecordBatch.from_arrays(
                [pa.array(["a"]), pa.array([1]), pa.array([2])], ["word", "count", "count"]
            ),
            "the batch has 2 columns 'count'; the columns are word, count",
        ),
        (batch(word=["a", "b"], count=[1, None]), "count is None, which its type does not allow"),
        (batch(word=["a"], count=[1.0]), "count: expected int64, got double"),
    ],
)
def test_columns_that_do_not_fit(given: pa.RecordBatch, why: str) -> None:
    """The reason names the column, and those that there are."""
    assert Tables(WORDS).of([given]).misfits == {0: why}


def test_nulls_are_looked_for_where_all_seems_well() -> None:
    """A batch may say of itself that a column has no nulls, and have some."""
    never = pa.schema([pa.field("word", pa.string()), pa.field("count", pa.int64(), nullable=False)])
    liar = pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array([None], pa.int64())], schema=never)
    assert Tables(WORDS).of([liar]).misfits == {0: "count is None, which its type does not allow"}


@pytest.mark.parametrize(
    ("kind", "array", "values"),
    [
        (t.StringType(), pa.array(["a", None], pa.large_string()), ["a", None]),
        (t.StringType(), pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (t.BinaryType(), pa.array([b"a"], pa.large_binary()), [b"a"]),
        (t.IntegerType(), pa.array([1, 2], pa.int64()), [1, 2]),
        (t.LongType(), pa.array([1, 2], pa.uint8()), [1, 2]),
        (t.DoubleType(), pa.array([0.5], pa.float32()), [0.5]),
        (t.LongType(), pa.array([None], pa.null()), [None]),
        (t.TimestampNTZType(), pa.array([NOON], pa.timestamp("s")), [NOON]),
        (
            t.TimestampType(),
            pa.array([NOON], pa.timestamp("ns", "America/New_York")),
            [NOON.replace(tzinfo=UTC)],
        ),
        (t.ArrayType(t.LongType()), pa.array([[1], None, []], pa.large_list(pa.int32())), [[1], None, []]),
        (
            t.MapType(t.StringType(), t.LongType()),
            pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
            [[("a", 1)]],
        ),
        (
            t.StructType([t.StructField("x", t.LongType())]),
            pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])),
            [{"x": 1}, None],
        ),
    ],
)
def test_the_same_in_another_layout(kind: t.DataType, array: pa.Array, values: list[object]) -> None:
    """Is written as it is meant."""
    assert column(kind, array) == (values, "")


@pytest.mark.parametrize(
    ("kind", "array", "why"),
    [
        (t.IntegerType(), pa.array([2**40]), "a: Integer value 1099511627776 not in range"),
        (t.StringType(), pa.array([1]), "a: expected string, got int64"),
        (t.LongType(), pa.array(["1"]), "a: expected int64, got string"),
        (t.BooleanType(), pa.array([1]), "a: expected bool, got int64"),
        (t.FloatType(), pa.array([0.1]), "a: expected float, got double"),
        (t.TimestampType(), pa.array([NOON]), "a: expected timestamp[us, tz=UTC], got timestamp[us]"),
        (
            t.TimestampNTZType(),
            pa.array([NOON], pa.timestamp("us", "UTC")),
            "a: expected timestamp[us], got timestamp[us, tz=UTC]",
        ),
        (t.TimestampNTZType(), pa.array([1], pa.timestamp("ns")), "a: Casting from timestamp[ns]"),
        (t.DateType(), pa.array([NOON]), "a: expected date32[day], got timestamp[us]"),
        (t.ArrayType(t.LongType()), pa.array([["1"]]), "a: expected list<element: int64>, got list<"),
        (t.ArrayType(t.LongType()), pa.array([1]), "a: expected list<element: int64>, got int64"),
        (
            t.StructType([t.StructField("x", t.LongType())]),
            pa.array([{"y": 1}]),
            "a: expected struct<x: int64>, got struct<y: int64>",
        ),
    ],
)
def test_what_would_be_truncated_or_reinterpreted(kind: t.DataType, array: pa.Array, why: str) -> None:
    """Is refused, and not written as something else."""
    written, reason = column(kind, array)
    assert written == []
    assert reason.startswith(why)


MAPS = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("kind", "array", "path"),
    [
        (t.ArrayType(t.LongType(), containsNull=False), pa.array([[1], [None]]), "a[]"),
        (
            t.MapType(t.StringType(), t.LongType(), valueContainsNull=False),
            pa.array([[("b", None)]], MAPS),
            "a[...]",
        ),
        (
            t.StructType([t.StructField("x", t.LongType(), nullable=False)]),
            pa.array([{"x": 1}, {"x": None}]),
            "",
        ),
        (
            t.ArrayType(t.ArrayType(t.LongType(), containsNull=False)),
            pa.array([[[1, None]]]),
            "a[][]",
        ),
    ],
)
def test_nulls_within(kind: t.DataType, array: pa.Array, path: str) -> None:
    """They are found however deep, and the way to them is told."""
    written, reason = column(kind, array)
    assert written == []
    assert reason.startswith(f"{path} is None, which its type does not allow" if path else "a: ")


def test_nulls_beside_a_slice_do_not_matter() -> None:
    """A batch may be a part of a larger one."""
    kind = t.MapType(t.StringType(), t.LongType(), valueContainsNull=False)
    maps = pa.array([[("a", None)], [("b", 1)]], MAPS)
    assert column(kind, maps.slice(1)) == ([[("b", 1)]], "")
    structs = pa.array([{"x": None}, {"x": 1}, None])
    inner = t.StructType([t.StructField("x", t.LongType(), nullable=False)])
    assert column(inner, structs.slice(1)) == ([{"x": 1}, None], "")


# Columns that nobody has given.


def test_the_first_batch_tells_the_columns() -> None:
    """Those that follow must have them too."""
    tables = LearnedTables(Tables)
    made = tables.of([batch(a=[1], b=["x"]), batch(b=["y"], a=[2]), batch(a=[3])])
    assert made.table.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert made.misfits == {2: "the batch has no column 'b'; the columns are a, b"}
    assert tables.schema == t.StructType().add("a", t.LongType()).add("b", t.StringType())
    assert tables.of([(4, "z")]).table.num_rows == 1


def test_moments_without_a_zone_stay_so() -> None:
    """Whatever the version of PySpark takes them for."""
    tables = LearnedTables(Tables)
    assert tables.of([batch(at=[NOON])]).table.to_pylist() == [{"at": NOON}]


def test_what_tells_no_columns_is_refused() -> None:
    """The others of its batch are written, with the columns of the first one that does."""
    tables = LearnedTables(Tables)
    times = pa.array([1], pa.time32("s"))
    made = tables.of([("a", 1), batch(a=times), batch(a=[2]), ("x",), batch(a=[3])])
    assert made.table.to_pylist() == [{"a": 2}, {"a": 3}]
    assert made.misfits.keys() == {0, 1, 3}
    assert made.misfits[0] == "expected a RecordBatch, whose columns are the sink's, and got tuple"
    assert "time32[s]" in made.misfits[1]


def test_nothing_is_written_before_columns_are_known() -> None:
    """And whoever needs them earlier is told the way out."""
    tables = LearnedTables(Tables)
    made = tables.of(["a"])
    assert (made.table.num_rows, list(made.misfits)) == (0, [0])
    with pytest.raises(InvalidTopology, match=r"columns of record batches are not known .*; give schema="):
        _ = tables.schema
