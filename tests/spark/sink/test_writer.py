"""What the sink writes, with Spark."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import types as t

from stormlet import DeadLetter, InvalidTopology, StartFailed, Topology
from stormlet.spark import SparkFailed
from stormlet.spark.arrow.columns import Misfit
from stormlet.spark.sink.dataframe_sink import DataFrameSink
from stormlet.spark.sink.writer import Destination, SparkWriter
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.simulated_time, pytest.mark.usefixtures("spark")]


class Word(msgspec.Struct, frozen=True):
    word: str
    count: int


def words() -> Iterator[Word]:
    yield from (Word(f"word{number}", number) for number in range(5))


def writing(sink: DataFrameSink, values: Any = words, **options: Any) -> Topology:
    topology = Topology("writing", **options)
    topology.bolt("write", sink, topology.spout("words", values).shuffle())
    return topology


def counts(spark: SparkSession, path: Path) -> list[int]:
    return sorted(row["count"] for row in spark.read.parquet(str(path)).collect())


async def test_records_become_rows(spark: SparkSession, tmp_path: Path) -> None:
    """The columns are the fields of the record type, and each batch is one file."""
    await run_to_end(writing(DataFrameSink(tmp_path / "out", rows=3)))
    assert spark.read.parquet(str(tmp_path / "out")).dtypes == [("word", "string"), ("count", "bigint")]
    assert counts(spark, tmp_path / "out") == [0, 1, 2, 3, 4]
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 2


async def test_more_is_appended(spark: SparkSession, tmp_path: Path) -> None:
    """What an earlier run has written stays."""
    for _ in range(2):
        await run_to_end(writing(DataFrameSink(tmp_path / "out")))
    assert counts(spark, tmp_path / "out") == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


async def test_what_is_there_is_replaced_once(spark: SparkSession, tmp_path: Path) -> None:
    """Not by each batch; and it is replaced by nothing, if nothing comes, whose columns are known."""
    out = tmp_path / "out"
    for _ in range(2):
        await run_to_end(writing(DataFrameSink(out, mode="overwrite", rows=2)))
    assert counts(spark, out) == [0, 1, 2, 3, 4]
    await run_to_end(writing(DataFrameSink(out, mode="overwrite", schema=Word), []))
    assert counts(spark, out) == []


async def test_partitions_are_replaced_too(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the session says of overwriting partitions."""
    out = tmp_path / "out"
    sink = DataFrameSink(out, mode="overwrite", partition_by="word", schema=Word)
    await run_to_end(writing(sink))
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        await run_to_end(
            writing(
                sink,
                [Word("other", 7)],
            )
        )
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert [each.name for each in out.glob("word=*")] == ["word=other"]


async def test_the_start_is_refused_where_something_is(tmp_path: Path) -> None:
    """The second run of the same sink does not start."""
    sink = DataFrameSink(tmp_path / "out", mode="error")
    await run_to_end(writing(sink))
    with pytest.raises(StartFailed, match=r"beginning with parquet at .*out failed: .*PATH_ALREADY_EXISTS"):
        await run_to_end(writing(sink))


async def test_options_and_format(tmp_path: Path) -> None:
    """They are Spark's."""
    await run_to_end(writing(DataFrameSink(tmp_path / "out", format="csv", options={"sep": ";"})))
    (file,) = (tmp_path / "out").glob("*.csv")
    assert file.read_text("utf-8").splitlines()[1] == "word1;1"


async def test_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """It is made if it is not there, and appended to if it is."""
    try:
        for _ in range(2):
            await run_to_end(writing(DataFrameSink(table="words", options={"path": str(tmp_path)})))
        assert spark.table("words").count() == 10
    finally:
        spark.sql("DROP TABLE IF EXISTS words")


@pytest.mark.parametrize(
    "schema",
    [
        "word string, count bigint",
        t.StructType([t.StructField("word", t.StringType()), t.StructField("count", t.LongType())]),
        pa.schema([("word", pa.string()), ("count", pa.int64())]),
        Word,
    ],
    ids=["DDL", "StructType", "pyarrow", "record"],
)
async def test_a_given_schema(spark: SparkSession, tmp_path: Path, schema: object) -> None:
    """For streams of which nothing is known: here tuples."""
    await run_to_end(writing(DataFrameSink(tmp_path / "out", schema=schema), [("a", 1)]))
    assert [tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect()] == [("a", 1)]


async def test_some_columns_of_a_record(spark: SparkSession, tmp_path: Path) -> None:
    """Those that the schema names, as it types them."""
    await run_to_end(writing(DataFrameSink(tmp_path / "out", schema="count int")))
    assert spark.read.parquet(str(tmp_path / "out")).dtypes == [("count", "int")]


@pytest.mark.parametrize(
    ("arguments", "values", "message"),
    [
        ({}, [1], r"the columns are not known from the inputs \(object\); give schema="),
        (
            {"schema": "word strng"},
            words,
            r"schema='word strng' is no schema: .*Unsupported data type \"STRNG\"",
        ),
        ({"schema": 5}, words, "schema=5 is no schema"),
        ({"schema": "wrod string"}, words, "Word has no 'wrod' for the sink's columns"),
        ({"schema": "v variant"}, [1], "column v is a variant, which no Python value is written as"),
        ({"partition_by": "day"}, words, "partition_by: there is no column 'day', only word, count"),
        ({"partition_by": ["count", "count"]}, words, "partition_by names 'count' twice"),
        (
            {"partition_by": ["count", "word"]},
            words,
            "partition_by names all columns, and a file needs one more",
        ),
        (
            {"schema": "a int, A int"},
            [(1, 2)],
            "two columns are called 'A', as Spark reads names; rename one",
        ),
        (
            {"schema": pa.schema([("n", pa.uint64())])},
            [(1,)],
            "schema=: column 'n' is uint64, which Spark has no type for",
        ),
    ],
)
async def test_columns_that_cannot_be(
    tmp_path: Path, arguments: dict[str, Any], values: Any, message: str
) -> None:
    """The start is refused before anything is read or written."""
    with pytest.raises(StartFailed) as caught:
        await run_to_end(writing(DataFrameSink(tmp_path / "out", **arguments), values))
    cause = caught.value.__cause__
    assert isinstance(cause, InvalidTopology)
    assert re.search(message, str(cause))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("exactly_once", [False, True])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "parket"}, "Failed to find the data source: parket"),
        ({"options": {"compression": "zap"}}, "The codec zap is not available"),
        ({"options": {"maxRecordsPerFile": "many"}}, 'For input string: "many"'),
        ({"format": "csv", "schema": "a array<int>"}, "CSV datasource doesn't support the column `a`"),
        ({"format": "csv", "schema": "a int", "options": {"encoding": "utf-99"}}, "charset"),
        ({"format": "Text", "schema": "a string, b string"}, "supports only a single column"),
        ({"format": "binaryFile"}, "Write for the binary file data source"),
    ],
)
async def test_writes_that_cannot_be(
    tmp_path: Path, arguments: dict[str, Any], message: str, exactly_once: bool
) -> None:
    """What Spark would refuse with each write is refused at the start, by its words and the way out."""
    sink = DataFrameSink(tmp_path / "out", **{"schema": Word, **arguments}, exactly_once=exactly_once)
    options: Any = {"state": tmp_path / "state"} if exactly_once else {}
    with pytest.raises(StartFailed, match=r"write\[0\]") as caught:
        await run_to_end(writing(sink, [(1,)], **options), dead_letters=tmp_path / "letters")
    cause = caught.value.__cause__
    assert isinstance(cause, InvalidTopology)
    assert message in str(cause)
    assert re.search(r"at .*/out can take no row: .*; (change format=|give a format=)", str(cause))
    assert not (tmp_path / "out").exists()


async def test_a_write_that_cannot_be_replaces_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would remove what is there before it looks at the options."""
    await run_to_end(writing(DataFrameSink(tmp_path / "out")))
    sink = DataFrameSink(tmp_path / "out", mode="overwrite", options={"compression": "zap"})
    with pytest.raises(StartFailed):
        await run_to_end(writing(sink))
    assert counts(spark, tmp_path / "out") == [0, 1, 2, 3, 4]
    assert (tmp_path / "out" / "_SUCCESS").exists()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_trial_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the folder of temporary files is called."""
    for_trials = tmp_path / "häuf ig%20"
    for_trials.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(for_trials))
    await run_to_end(writing(DataFrameSink(tmp_path / "out")))
    assert counts(spark, tmp_path / "out") == [0, 1, 2, 3, 4]
    assert names_in(for_trials) == []
    assert names_in(tmp_path) == [for_trials.name, "out"]


async def test_a_format_that_is_no_file_is_not_tried(tmp_path: Path) -> None:
    """Spark only says that it knows it: what an empty write does to a database is its own affair."""
    writer = SparkWriter(Destination(str(tmp_path / "out"), None, "jdbc", "append"), Word)
    writer.open([], first=True)


@pytest.mark.parametrize(("case_sensitive", "is_taken"), [("true", True), ("TRUE", True), ("False", False)])
def test_names_are_the_same_as_spark_reads_them(case_sensitive: str, is_taken: bool) -> None:
    """Spark takes its own settings in any case, too."""
    writer = SparkWriter(Destination("out", None, "parquet", "append"), None)
    settings = {"spark.sql.caseSensitive": case_sensitive}
    writer._session = cast("SparkSession", SimpleNamespace(conf=settings))
    columns = t.StructType([t.StructField("a", t.IntegerType()), t.StructField("A", t.IntegerType())])
    if is_taken:
        assert writer._tables_of(columns).schema == columns
        return
    with pytest.raises(Misfit, match="two columns are called 'A'"):
        writer._tables_of(columns)


@pytest.mark.parametrize(
    "kind",
    [
        t.ArrayType(t.IntegerType()),
        t.MapType(t.StringType(), t.IntegerType()),
        t.StructType([t.StructField("b", t.IntegerType())]),
    ],
)
def test_folders_are_of_plain_columns(kind: t.DataType) -> None:
    """Spark refuses each write by another one."""
    writer = SparkWriter(Destination("out", None, "parquet", "append", {}, ("a",)), None)
    writer._session = cast("SparkSession", SimpleNamespace(conf={}))
    columns = t.StructType([t.StructField("a", kind), t.StructField("n", t.IntegerType())])
    with pytest.raises(Misfit, match=f"partition_by: column 'a' is of type {kind.typeName()}, "):
        writer._tables_of(columns)


async def test_a_failed_write(tmp_path: Path) -> None:
    """Every row of the batch becomes a dead letter that has Spark's error."""
    (tmp_path / "out").write_text("a file is no directory", "utf-8")
    letters: list[DeadLetter] = []
    topology = writing(DataFrameSink(tmp_path / "out"), max_attempts=1)
    await run_to_end(topology, dead_letters=letters.append)
    assert len(letters) == 5
    error = letters[0].failure.exception
    assert isinstance(error, SparkFailed)
    assert error.__cause__ is not None
    assert "writing 5 rows to parquet at" in str(error)
    assert "\n" not in str(error)


async def test_rows_that_do_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    """They are rejected by name, and the others are written."""
    letters: list[DeadLetter] = []
    values = [Word("a", 1), Word("b", "x"), Word("c", 3)]  # type: ignore[arg-type]
    await run_to_end(
        writing(DataFrameSink(tmp_path / "out", schema=Word), values), dead_letters=letters.append
    )
    assert [letter.failure.reason for letter in letters] == ["count: expected int, got str"]
    assert counts(spark, tmp_path / "out") == [1, 3]


@pytest.mark.parametrize("kind", ["string", "binary"])
async def test_a_value_that_names_the_folder_of_nulls(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """It is rejected: Spark would fail the write of all rows beside a null, and a reader finds a null."""
    taken: Any = "__HIVE_DEFAULT_PARTITION__"
    values = [(None, 1), (taken if kind == "string" else taken.encode(), 2), (None, 3)]
    letters: list[DeadLetter] = []
    sink = DataFrameSink(tmp_path / "out", partition_by="word", schema=f"word {kind}, count bigint")
    await run_to_end(writing(sink, values, max_attempts=1), dead_letters=letters.append)
    assert [each.failure.reason for each in letters] == [
        "word: '__HIVE_DEFAULT_PARTITION__' names the folder of rows without a value, for partition_by"
    ]
    assert counts(spark, tmp_path / "out") == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "values"),
    [({"schema": Word}, []), ({"schema": Word}, [5]), ({"schema": "word string, count bigint"}, [])],
)
async def test_without_rows_the_columns_are_there(
    spark: SparkSession, tmp_path: Path, arguments: dict[str, Any], values: list[Any]
) -> None:
    """As Spark writes a DataFrame without rows, once: be it that none came, or that none did fit."""
    for _ in range(2):
        await run_to_end(writing(DataFrameSink(tmp_path / "out", **arguments), values))
    written = spark.read.parquet(str(tmp_path / "out"))
    assert (written.dtypes, written.count()) == ([("word", "string"), ("count", "bigint")], 0)
    assert len([*(tmp_path / "out").glob("*.parquet")]) == 1


async def test_without_rows_a_table_is_there(spark: SparkSession, tmp_path: Path) -> None:
    """As Spark makes one of a DataFrame without rows."""
    try:
        for _ in range(2):
            sink = DataFrameSink(table="nothing", options={"path": str(tmp_path / "nothing")}, schema=Word)
            await run_to_end(writing(sink, []))
        assert spark.table("nothing").count() == 0
        assert len([*(tmp_path / "nothing").glob("*.parquet")]) == 1
    finally:
        spark.sql("DROP TABLE IF EXISTS nothing")


async def test_an_interrupted_writer_begins_no_write(tmp_path: Path) -> None:
    """Its rows belong to a topology that has ended."""
    writer = SparkWriter(Destination(str(tmp_path / "out"), None, "parquet", "append"), Word)
    writer.open([], first=True)
    writer.interrupt()
    with pytest.raises(SparkFailed, match="was interrupted"):
        writer.write([writer.convert([Word("a", 1)]).table])
    assert not (tmp_path / "out").exists()


async def test_tasks_take_turns(spark: SparkSession, tmp_path: Path) -> None:
    """Several tasks that write to one path at a time would remove each other's files."""
    sink = DataFrameSink(tmp_path / "out", rows=10, schema="count bigint")
    topology = Topology("writing", max_attempts=1)
    topology.bolt(
        "write", sink, topology.spout("counts", ((number,) for number in range(200))).shuffle(), parallelism=4
    )
    running = await run_to_end(topology)
    assert running.statistics().components["counts"].acked == 200
    assert counts(spark, tmp_path / "out") == list(range(200))


async def test_interrupting_does_not_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has become of the JVM: what interrupts a write is on its way out."""

    class Gone:
        def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 - Spark's own
            raise ConnectionRefusedError(tag)

    writer = SparkWriter(Destination(str(tmp_path / "out"), None, "parquet", "append"), Word)
    writer.open([], first=True)
    session = SimpleNamespace(sparkContext=Gone())
    monkeypatch.setattr(writer, "_session", session)
    writer.interrupt()
    with pytest.raises(SparkFailed, match="was interrupted"):
        writer.write([writer.convert([Word("a", 1)]).table])


def test_what_is_replaced_looks_whole_no_longer(spark: SparkSession, tmp_path: Path) -> None:
    """Spark removes one file after another, and a process that is killed meanwhile leaves some of them."""
    destination = Destination(str(tmp_path / "out"), None, "parquet", "overwrite")
    destination.write(spark.range(3).toDF("id"))
    assert (tmp_path / "out" / "_SUCCESS").exists()
    seen: list[str] = []

    class Interrupted:
        """Rows that Spark would now begin to write."""

        def __init__(self) -> None:
            self.sparkSession = spark

        @property
        def write(self) -> None:
            seen.extend(path.name for path in (tmp_path / "out").iterdir())
            raise KeyboardInterrupt

    rows: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        destination.write(rows)
    assert seen
    assert "_SUCCESS" not in seen
