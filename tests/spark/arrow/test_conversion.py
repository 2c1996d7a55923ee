"""What Spark's values become, the same by both ways, and what is refused before any job runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import pytest

from stormlet import InvalidTopology
from stormlet.errors import SparkFailed
from stormlet.spark.arrow.conversion import conversion
from stormlet.spark.arrow.refiners import Refining, Transport
from stormlet.spark.frames import zone_of_session
from stormlet.spark.source.reading import values_of_batches, values_of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEW_YORK = ZoneInfo("America/New_York")

VALUES: Mapping[str, tuple[str, object]] = {
    "boolean": ("true", True),
    "tinyint": ("7Y", 7),
    "smallint": ("7S", 7),
    "int": ("7", 7),
    "bigint": ("9007199254740993L", 2**53 + 1),
    "float": ("0.5F", 0.5),
    "double": ("0.1D", 0.1),
    "decimal": ("1.20BD", Decimal("1.20")),
    "string": ("'häß'", "häß"),
    "char": ("cast('a' as char(1))", "a"),
    "binary": ("X'00FF'", b"\x00\xff"),
    "date": ("DATE'0001-01-01'", date(1, 1, 1)),
    "late date": ("DATE'9999-12-31'", date(9999, 12, 31)),
    "timestamp": (
        "TIMESTAMP'2026-07-01 12:00:00.000001'",
        datetime(2026, 7, 1, 12, 0, 0, 1, tzinfo=NEW_YORK),
    ),
    "timestamp in an hour that comes twice": (
        "TIMESTAMP'2026-11-01 06:30:00Z'",
        datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=1),
    ),
    "timestamp before 1970": ("TIMESTAMP'1901-01-01 00:00:00Z'", datetime(1901, 1, 1, tzinfo=UTC)),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2026-07-01 12:00:00.5'", datetime(2026, 7, 1, 12, 0, 0, 500000)),
    "interval": ("INTERVAL '1 02:00:00.000003' DAY TO SECOND", timedelta(days=1, hours=2, microseconds=3)),
    "void": ("null", None),
    "null": ("cast(null as timestamp)", None),
    "array": ("array(1, null)", [1, None]),
    "array of timestamps": (
        "array(TIMESTAMP'2026-01-01 00:00:00')",
        [datetime(2026, 1, 1, tzinfo=NEW_YORK)],
    ),
    "map": ("map('a', 1, 'b', null)", {"a": 1, "b": None}),
    "map of arrays of binaries": ("map(1, array(X'01'))", {1: [b"\x01"]}),
    "empty map": ("cast(map() as map<string,int>)", {}),
}


def read(
    frame: DataFrame,
    transport: Transport,
    *,
    as_: type | None = None,
    columns: Sequence[str] | None = None,
) -> list[Any]:
    """All values of a DataFrame."""
    plan = conversion(frame.schema, Refining(zone_of_session(frame), transport), record=as_, columns=columns)
    reads = (values_of_rows if transport == "rows" else values_of_batches)(frame, plan)
    return [value for chunk in reads({}) for value in chunk.values]


@pytest.fixture(params=["arrow", "rows"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Both ways, one after the other."""
    return request.param


def test_every_type(spark: SparkSession, transport: Transport) -> None:
    """Each type of the table gives the same Python value of the same class, by Arrow and by plain rows."""
    frame = spark.sql("SELECT " + ", ".join(f"{sql} AS `{name}`" for name, (sql, _) in VALUES.items()))
    (row,) = read(frame, transport)
    expected = tuple(value for _, value in VALUES.values())
    assert dict(zip(VALUES, row, strict=True)) == dict(zip(VALUES, expected, strict=True))
    assert [type(value) for value in row] == [type(value) for value in expected]


def test_timestamps_are_in_the_zone_of_the_session(spark: SparkSession, transport: Transport) -> None:
    """A timestamp is aware, and its zone is the session's, within structs too; an hour that comes twice is
    told apart."""
    sql = "SELECT TIMESTAMP'2026-11-01 06:30:00Z' AS at, named_struct('at', TIMESTAMP'2026-11-01 05:30:00Z') AS s"
    ((at, struct),) = read(spark.sql(sql), transport)
    assert (at.tzinfo, at.fold, struct.at.tzinfo, struct.at.fold) == (NEW_YORK, 1, NEW_YORK, 0)


def test_a_zone_that_only_spark_knows(spark: SparkSession, transport: Transport) -> None:
    """Zones by their offset work, though pyarrow does not know their names."""
    frame = spark.sql(
        "SELECT TIMESTAMP'2026-01-01 00:00:00Z' AS at, array(TIMESTAMP'2026-01-01 00:00:00Z') AS all"
    )
    spark.conf.set("spark.sql.session.timeZone", "GMT+08:00")
    try:
        ((at, every),) = read(frame, transport)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    assert at == every[0] == datetime(2026, 1, 1, tzinfo=UTC)
    assert at.utcoffset() == every[0].utcoffset() == timedelta(hours=8)


def test_time_of_day(spark: SparkSession, transport: Transport) -> None:
    """A time of day is a time, where this version of Spark has the type."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        frame = spark.sql("SELECT TIME'12:34:56.789012' AS at")
    except Exception as error:
        pytest.skip(f"no type TIME: {error}")
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")
    assert read(frame, transport) == [(time(12, 34, 56, 789012),)]


def test_structs_are_records(spark: SparkSession, transport: Transport) -> None:
    """A struct has its fields as attributes, at any depth, and equals one with the same fields' values."""
    sql = """
        SELECT named_struct('a', 1, 'in', named_struct('class', 'x')) AS outer,
               array(named_struct('k', 1), null) AS list,
               map(named_struct('k', 1), named_struct('v', 2)) AS mapping
    """
    ((outer, several, mapping),) = read(spark.sql(sql), transport)
    assert (outer.a, getattr(getattr(outer, "in"), "class")) == (1, "x")
    assert (several[0].k, several[1]) == (1, None)
    ((key, value),) = mapping.items()
    assert (key.k, value.v) == (1, 2)
    assert type(outer).__name__ == "outer"


class City(msgspec.Struct, frozen=True):
    name: str
    people: int | None


@dataclass(frozen=True)
class Person:
    city: City
    past: Sequence[City]
    age: float
    marks: dict[str, list[int]]


class Swapped(NamedTuple):
    b: int
    a: str


PEOPLE = """
    SELECT 'unread' AS x, 30 AS age, map('math', array(1, 2)) AS marks,
           named_struct('people', 5, 'unread', 1, 'name', 'Rome') AS city,
           array(named_struct('people', cast(null as int), 'unread', 1, 'name', 'Pisa')) AS past
"""


def test_records_within_records(spark: SparkSession, transport: Transport) -> None:
    """Fields are found by name at every depth, whatever their order, and an int becomes the float it is to be."""
    (person,) = read(spark.sql(PEOPLE), transport, as_=Person)
    assert person == Person(City("Rome", 5), [City("Pisa", None)], 30.0, {"math": [1, 2]})
    assert type(person.age) is float


def test_a_record_takes_its_columns_by_name(spark: SparkSession, transport: Transport) -> None:
    """The order of the columns does not matter."""
    assert read(spark.sql("SELECT 'one' AS a, 1 AS b"), transport, as_=Swapped) == [Swapped(1, "one")]


def test_columns_by_name(spark: SparkSession, transport: Transport) -> None:
    """``columns`` chooses and orders; names may hold anything, and those not chosen may occur twice."""
    frame = spark.sql("SELECT 1 AS `a.b`, 2 AS x, 3 AS x, 4 AS `with ``tick`")
    assert read(frame, transport, columns=["with `tick", "a.b"]) == [(4, 1)]


def test_only_what_is_read_is_scanned(
    spark: SparkSession, transport: Transport, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The scan of a file reads no column that nobody asked for."""
    from stormlet.spark.source.reading import pruned

    path = str(tmp_path_factory.mktemp("scan") / "wide")
    spark.sql("SELECT 1 AS a, 2 AS b, 3 AS c").write.parquet(path)
    frame = spark.read.parquet(path)
    plan = conversion(frame.schema, Refining(NEW_YORK, transport), record=None, columns=["b"])
    explained = pruned(frame, plan)._jdf.queryExecution().toString()
    assert "ReadSchema: struct<b:int>" in explained


class Strict(msgspec.Struct):
    at: int


class StrictInside(msgspec.Struct):
    at: list[int]


@pytest.mark.parametrize(
    ("record", "sql", "path"),
    [(Strict, "if(id = 1500, null, id)", "at"), (StrictInside, "array(if(id = 1500, null, id))", "at[]")],
)
def test_a_null_that_will_not_do_is_told(
    spark: SparkSession, transport: Transport, record: type, sql: str, path: str
) -> None:
    """A null in a field without None ends the reading, and says in which rows and column it is."""
    frame = spark.range(0, 2000, 1, 1).selectExpr(f"{sql} AS at")
    with pytest.raises(SparkFailed, match=r"rows \d+ to 1999 of partition 0 cannot be converted") as caught:
        read(frame, transport, as_=record)
    assert f"column {path!r} is null; declare it as X | None" in str(caught.value)


REFUSED = {
    "month": "INTERVAL '1' MONTH",
    "nested": "named_struct('deep', array(INTERVAL '1' MONTH))",
    "calendar": "make_interval(1, 2, 3)",
}


@pytest.mark.parametrize(("name", "sql"), REFUSED.items())
def test_types_without_a_python_form_are_refused(
    spark: SparkSession, transport: Transport, name: str, sql: str
) -> None:
    """A type outside the table is refused by name, with the column and the way out, before any job."""
    path = "nested.deep[]" if name == "nested" else name
    with pytest.raises(InvalidTopology) as caught:
        read(spark.sql(f"SELECT {sql} AS {name}"), transport)
    assert f"column {path!r}: interval" in str(caught.value)
    assert "has no Python form; cast it, or leave it out with columns=" in str(caught.value)


def test_types_without_an_arrow_form_come_as_rows(spark: SparkSession) -> None:
    """A variant is refused by Arrow, which names the other way, and comes as PySpark has it by that one."""
    frame = spark.sql("SELECT parse_json('{\"a\": 1}') AS v")
    with pytest.raises(InvalidTopology, match=r"column 'v': variant has no Arrow form; .*transport=\"rows\""):
        read(frame, "arrow")
    ((value,),) = read(frame, "rows")
    assert value.toPython() == {"a": 1}


@pytest.mark.parametrize(
    ("sql", "options", "said"),
    [
        (
            "SELECT 1 AS a",
            {"columns": ["b"]},
            "columns= wants a column 'b', which the DataFrame lacks; it has a",
        ),
        ("SELECT 1 AS a", {"columns": []}, "no columns are left to read"),
        ("SELECT 1 AS a", {"columns": ["a", "a"]}, "columns=: two fields are called 'a'"),
        ("SELECT 1 AS a, 2 AS a", {}, "the DataFrame: two fields are called 'a'"),
        ("SELECT 1 AS a, 2 AS a", {"columns": ["a"]}, "the DataFrame has 2 columns called 'a'; rename one"),
        ("SELECT 1 AS a", {"as_": Strict}, "as_=Strict wants a column 'at', which the DataFrame lacks"),
        ("SELECT 'x' AS at", {"as_": Strict}, "column 'at': string does not fit int; it gives str"),
        ("SELECT 1.5D AS at", {"as_": Strict}, "column 'at': double does not fit int; it gives float"),
        ("SELECT array('x') AS at", {"as_": StrictInside}, "column 'at[]': string does not fit int"),
        ("SELECT 1 AS at", {"as_": StrictInside}, "column 'at': int does not fit list[int]; it gives int"),
        (
            "SELECT map(array(1), 1) AS m",
            {},
            "column 'm': a map with array<int> in its keys has no Python form",
        ),
        ("SELECT named_struct('a b', 1) AS s", {}, "column 's': the struct's field 'a b' is no Python name"),
        ("SELECT named_struct('a', 1, 'a', 2) AS s", {}, "column 's': two fields are called 'a'"),
    ],
)
def test_what_does_not_fit_is_refused(
    spark: SparkSession, transport: Transport, sql: str, options: dict[str, Any], said: str
) -> None:
    """Each misfit of columns, record and schema has one clear message, before anything runs."""
    with pytest.raises(InvalidTopology) as caught:
        read(spark.sql(sql), transport, **options)
    assert said in str(caught.value)


class Choice(msgspec.Struct):
    at: int | City | None


class WrongCity(msgspec.Struct):
    city: Strict
    past: list[City]


def test_the_choice_of_a_union_that_fits_is_taken(spark: SparkSession, transport: Transport) -> None:
    """Of several types in an annotation, the one that fits the column is used."""
    sql = "SELECT named_struct('name', 'Rome', 'people', 5) AS at"
    assert read(spark.sql(sql), transport, as_=Choice) == [Choice(City("Rome", 5))]


def test_a_misfit_within_a_record_names_the_field(spark: SparkSession, transport: Transport) -> None:
    """A nested record that wants a field the struct lacks is told with that field."""
    with pytest.raises(InvalidTopology, match=r"column 'city': there is no field 'at' in struct<"):
        read(spark.sql(PEOPLE), transport, as_=WrongCity)
