"""Topologies as batches on Spark."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from stormlet import InvalidConfiguration, InvalidTopology, Topology
from stormlet.errors import SparkFailed, TopologyCrashed
from stormlet.spark import DataFrameSink, DataFrameSpout, Origin, run_on_spark
from stormlet.spark.engine.passage import passage, sources
from stormlet.spark.engine.passage.chain import representatives
from stormlet.spark.engine.passage.conduct import SETTINGS
from stormlet.spark.engine.passage.reports import Ends, ends_of
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.numbering import Place
from stormlet.testing import complete
from tests.spark.engine import flows
from tests.spark.engine.flows import Double, Number, Total

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = ["the sun was shining on the sea", "shining with all his might", "and this was odd"] * 50


def totals(rows: list[Any]) -> list[Total]:
    return sorted((Total(*row) for row in rows), key=lambda each: each.word)


def test_a_word_count_is_that_of_this_process(spark: SparkSession) -> None:
    """The stream has the values that were emitted in process, and every message is acked."""
    topology, counts = flows.word_count(LINES)
    result = run_on_spark(topology, spark, streams=[counts])
    there = complete(topology)
    assert totals(result.stream(counts).collect()) == sorted(there[counts], key=lambda each: each.word)
    assert (result.acked, result.messages, result.dead_letters) == (150, 150, [])


def test_the_counts_are_those_of_this_process(spark: SparkSession) -> None:
    """Emitted, executed and acked of each component are summed up over all partitions."""
    topology, _ = flows.word_count(LINES)
    result, there = run_on_spark(topology, spark, streams=["count"]), complete(topology)
    assert set(result.statistics.components) == {"lines", "split", "count"}
    for id in ("lines", "split", "count"):
        here, wanted = result.statistics.components[id], there.statistics.components[id]
        assert (here.emitted, here.executed, here.acked) == (wanted.emitted, wanted.executed, wanted.acked)


def test_a_dataframe_is_read_by_spark(spark: SparkSession) -> None:
    """Each row is a message with the place of the row as its origin."""
    frame = spark.range(0, 100, 1, 4).withColumnRenamed("id", "n")
    topology, numbers = flows.doubles(DataFrameSpout(frame, as_=Number))
    result = run_on_spark(topology, spark, streams=[numbers])
    assert sorted(row["n"] for row in result.stream(numbers).collect()) == [
        n for n in range(100) if n % 10 != 7
    ]
    assert [(each.value, each.origin) for each in result.dead_letters][:3] == [
        (Number(7), Origin(0, 7)),
        (Number(17), Origin(0, 17)),
        (Number(27), Origin(1, 2)),
    ]


def test_dead_letters_are_those_of_this_process(spark: SparkSession) -> None:
    """Value, message id, attempts and reason, also where the exception cannot be pickled."""
    topology, _ = flows.doubles([Number(n) for n in range(20)], logic=flows.unlucky)
    here, there = run_on_spark(topology, spark).dead_letters, complete(topology).dead_letters
    assert [(each.value, each.message_id, each.attempts) for each in here] == [
        (each.value, each.message_id, each.attempts) for each in there
    ]
    assert [str(each.failure.exception) for each in here] == ["Wrong('4 is not 5')"]


def test_letters_go_to_a_file(spark: SparkSession, tmp_path: Path) -> None:
    """One line for each."""
    topology, _ = flows.doubles([Number(n) for n in range(20)])
    run_on_spark(topology, spark, dead_letters=tmp_path / "letters.jsonl")
    assert len((tmp_path / "letters.jsonl").read_text().splitlines()) == 2


def test_several_sources_of_both_kinds(spark: SparkSession) -> None:
    """Lists and DataFrames meet in one bolt, each in partitions of its own."""
    topology = Topology("both")
    frames = [spark.range(start, start + 10, 1, 3).withColumnRenamed("id", "n") for start in (100, 200)]
    spouts = [
        topology.spout("list", [Number(n) for n in range(10)], outputs=Number),
        *(topology.spout(f"frame{at}", DataFrameSpout(each, as_=Number)) for at, each in enumerate(frames)),
    ]
    doubled = topology.bolt("double", flows.double, *(each.shuffle() for each in spouts))
    result = run_on_spark(topology, spark, streams=[doubled])
    wanted = [n for n in (*range(10), *range(100, 110), *range(200, 210)) if n % 10 != 7]
    assert sorted(row["n"] for row in result.stream("double").collect()) == wanted
    assert len(result.dead_letters) == 3


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_list_may_follow_a_dataframe(spark: SparkSession, partitions: int) -> None:
    """Whatever the number of its partitions; letters are those of both."""
    topology = Topology("both")
    frame = spark.range(0, 9, 1, partitions).withColumnRenamed("id", "n")
    numbers = topology.spout("frame", DataFrameSpout(frame, as_=Number))
    others = topology.spout("list", [Number(n) for n in range(10, 19)], outputs=Number)
    topology.bolt("double", flows.double, numbers.fields("n"), others.fields("n"), parallelism=2)
    result = run_on_spark(topology, spark)
    assert (result.acked, [each.value for each in result.dead_letters]) == (16, [Number(7), Number(17)])


def test_a_union_is_counted_as_it_is_read(spark: SparkSession) -> None:
    """Its children keep partitions of their own, which Spark otherwise merges if they are alike."""
    one, other = (spark.range(20).withColumnRenamed("id", "n").repartition(3, "n") for _ in range(2))
    topology, doubled = flows.doubles(DataFrameSpout(one.unionAll(other), as_=Number))
    result = run_on_spark(topology, spark, streams=[doubled])
    assert (result.messages, result.stream(doubled).count()) == (40, 36)


def test_partitions_that_were_not_counted_are_noticed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows belong to no task, and must not be left out in silence."""
    frame = spark.range(0, 9, 1, 3).withColumnRenamed("id", "n")
    topology, _ = flows.doubles(DataFrameSpout(frame, as_=Number))
    monkeypatch.setattr(sources, "partitions_of", lambda _: 2)
    with pytest.raises(SparkFailed, match=r"^partition 2 was not there when the partitions of its DataFrame"):
        run_on_spark(topology, spark)


@pytest.mark.parametrize("empty", ["list", "frame", "both"])
def test_a_source_without_values_ends_at_once(spark: SparkSession, empty: str) -> None:
    """Bolts finish all the same, also beside a source that has values."""
    topology = Topology("nothing")
    frame = spark.range(0 if empty != "list" else 4).withColumnRenamed("id", "n")
    numbers = topology.spout("frame", DataFrameSpout(frame, as_=Number))
    more = topology.spout("list", [Number(n) for n in range(5 if empty == "frame" else 0)], outputs=Number)
    count = topology.bolt("ends", flows.Ends, numbers.fields("n"), more.fields("n"), parallelism=2)
    result = run_on_spark(topology, spark, streams=[count])
    assert (result.messages, result.acked) == ({"list": 4, "frame": 5, "both": 0}[empty],) * 2
    assert result.stream(count).count() == 2


def test_bolts_behind_global_run_in_the_driver(spark: SparkSession) -> None:
    """They are executed in this process."""
    topology, numbers = flows.doubles([Number(n) for n in range(5)])
    topology.bolt("keep", flows.Keep, numbers.global_())
    flows.Keep.kept = []
    run_on_spark(topology, spark)
    assert Counter(flows.Keep.kept) == Counter(Double(n, 2 * n) for n in range(5))


def test_a_sink_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that fit, and no others; those are dead letters."""
    topology, numbers = flows.doubles([Number(n) for n in (1, 2, 2**70)])
    topology.bolt("write", DataFrameSink(tmp_path / "out"), numbers.shuffle())
    result = run_on_spark(topology, spark)
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "out")).collect())) == [(1, 2), (2, 4)]
    assert [each.value for each in result.dead_letters] == [Number(2**70)]


def test_sinks_before_one_that_fails_are_written(spark: SparkSession, tmp_path: Path) -> None:
    """They are written one after another, and nothing takes a write back."""
    topology, numbers = flows.doubles([Number(1)])
    (tmp_path / "file").write_text("in the way of a folder")
    for name in ("first", "file/second", "third"):
        topology.bolt(name.split("/")[-1], DataFrameSink(tmp_path / name), numbers.shuffle())
    wanted = "sink 'second' cannot be written: .*; 'first' was written before it"
    with pytest.raises(SparkFailed, match=wanted):
        run_on_spark(topology, spark)
    assert spark.read.parquet(str(tmp_path / "first")).count() == 1
    assert not (tmp_path / "third").exists()


def test_a_sink_that_can_take_no_row_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Before anything is read or run, by its name."""
    topology, numbers = flows.doubles([Number(1)])
    flows.Keep.kept = []
    topology.bolt("keep", flows.Keep, numbers.global_())
    topology.bolt("write", DataFrameSink(tmp_path / "out", options={"compression": "zap"}), numbers.shuffle())
    wanted = (
        "bolt 'write': parquet at .*/out can take no row: .* codec zap is not available.*; change format="
    )
    with pytest.raises(InvalidTopology, match=wanted):
        run_on_spark(topology, spark)
    assert not flows.Keep.kept
    assert not (tmp_path / "out").exists()


def test_a_sink_whose_place_is_taken_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """With ``mode="error"``, before anything is run."""
    (tmp_path / "out").mkdir()  # be it empty
    topology, numbers = flows.doubles([Number(1)])
    flows.Keep.kept = []
    topology.bolt("keep", flows.Keep, numbers.global_())
    topology.bolt("write", DataFrameSink(tmp_path / "out", mode="error"), numbers.shuffle())
    with pytest.raises(
        InvalidTopology, match=r"bolt 'write': parquet at .*/out is there already, which mode="
    ):
        run_on_spark(topology, spark)
    assert not flows.Keep.kept


def test_what_is_no_session_is_refused() -> None:
    """By its name, and with the way out."""
    topology, _ = flows.doubles([Number(1)])
    session: Any = "local[2]"
    with pytest.raises(
        InvalidConfiguration, match=r"spark must be a SparkSession, not 'local\[2\]'; leave it out"
    ):
        run_on_spark(topology, session)


def test_a_crash_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The error names the task, the method and what it raised, without Java."""
    topology, numbers = flows.doubles([Number(n) for n in range(5)])
    topology.bolt("write", DataFrameSink(tmp_path / "out"), numbers.shuffle())
    topology.bolt("unfinished", flows.Unfinished, numbers.fields("n"))
    with pytest.raises(SparkFailed) as raised:
        run_on_spark(topology, spark)
    wanted = "topology 'doubles' crashed: finish of unfinished[0] raised OSError('the disk is full')"
    assert str(raised.value).startswith(wanted)
    assert not (tmp_path / "out").exists()


def test_a_ledger_that_does_not_add_up_writes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says how, and what to do."""

    def without_one(kept: Kept, end: Place, in_driver: Iterable[int], *, by_root: bool) -> Ends:
        ends = ends_of(kept, end, in_driver, by_root=by_root)
        return replace(ends, reports=ends.reports[1:])

    monkeypatch.setattr(passage, "ends_of", without_one)
    topology, numbers = flows.doubles([Number(n) for n in range(5)])
    topology.bolt("write", DataFrameSink(tmp_path / "out"), numbers.shuffle())
    with pytest.raises(
        SparkFailed, match=r"the ledger of topology 'doubles' does not add up: .*left no line"
    ):
        run_on_spark(topology, spark)
    assert not (tmp_path / "out").exists()


def test_rows_that_are_not_found_are_told_with_the_way_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Executors on other machines write into folders of their own."""

    def of_nothing(kept: Kept, end: Place, in_driver: Iterable[int], *, by_root: bool) -> Ends:
        return ends_of(Kept(spark, str(tmp_path)), end, in_driver, by_root=by_root)

    monkeypatch.setattr(passage, "ends_of", of_nothing)
    topology, _ = flows.doubles([Number(1)])
    with pytest.raises(SparkFailed, match=r"nothing is found in .*staging="):
        run_on_spark(topology, spark)


def test_the_folder_goes_with_the_result(spark: SparkSession, tmp_path: Path) -> None:
    """As long as somebody has the result, its streams can be read."""
    topology, numbers = flows.doubles([Number(1)])
    result = run_on_spark(topology, spark, streams=[numbers], staging=tmp_path)
    assert result.stream(numbers).count() == 1
    assert len([*tmp_path.iterdir()]) == 1
    del result
    gc.collect()
    assert [*tmp_path.iterdir()] == []


def test_what_is_held_for_ever_is_given_up(spark: SparkSession) -> None:
    """Nothing would ever settle it, so it fails at the end, and its letter says who has it."""
    topology = Topology("held", message_timeout=0.5)
    numbers = topology.spout("numbers", [Number(1)], outputs=Number)
    topology.bolt("holds", flows.Holds, numbers.fields("n"))
    (letter,) = run_on_spark(topology, spark).dead_letters
    assert letter.failure.holders == ("holds",)


def test_refused_before_spark_starts() -> None:
    """A topology that cannot run on Spark needs no session to be refused."""
    topology = Topology("fed")
    topology.bolt("double", flows.double, topology.spout("numbers", outputs=Number).shuffle())
    with pytest.raises(InvalidTopology, match="spout 'numbers' has no source"):
        run_on_spark(topology)


@pytest.mark.parametrize("option", [{"files": ["missing.py"]}, {"staging": "missing"}])
def test_paths_that_are_not_there_are_refused_before_spark_starts(option: Any) -> None:
    """They are named."""
    topology, _ = flows.doubles([Number(1)])
    with pytest.raises(
        InvalidConfiguration, match=r"run_on_spark of topology 'doubles': there is no .*'missing"
    ):
        run_on_spark(topology, **option)


def raising() -> Iterator[Number]:
    """Yield one number, then raise."""
    yield Number(1)
    raise ZeroDivisionError("no more")


def test_a_source_that_raises_is_named_as_in_process(spark: SparkSession) -> None:
    """Not by the driver's stack alone."""
    topology, _ = flows.doubles(raising)
    with pytest.raises(TopologyCrashed) as caught:
        run_on_spark(topology, spark)
    assert str(caught.value) == (
        "topology 'doubles' crashed: next_tuple of numbers[0] raised ZeroDivisionError('no more')"
    )


def test_a_value_of_a_source_that_cannot_travel_is_named(spark: SparkSession) -> None:
    """Of thousands the one."""
    topology, _ = flows.doubles([*(Number(n) for n in range(2000)), threading.Lock()])
    with pytest.raises(TopologyCrashed, match=r"the emit of numbers\[0\].*lock.*: give records"):
        run_on_spark(topology, spark)


def test_an_iterator_that_is_used_up_is_refused(spark: SparkSession) -> None:
    """A second run would have no messages, and say nothing."""
    topology, _ = flows.doubles(iter([Number(1)]))
    assert run_on_spark(topology, spark).messages == 1
    with pytest.raises(InvalidTopology, match="its iterator was used by an earlier run"):
        run_on_spark(topology, spark)


def test_what_cannot_travel_is_named(spark: SparkSession) -> None:
    """A lock belongs to one process."""
    topology, _ = flows.doubles([Number(1)], logic=partial(flows.with_lock, threading.Lock()))
    with pytest.raises(InvalidTopology, match=r"on Spark, 'double' cannot travel .*lock.*prepare"):
        run_on_spark(topology, spark)


def test_a_stream_that_there_is_not(spark: SparkSession) -> None:
    """It is named."""
    topology, _ = flows.doubles([Number(1)])
    with pytest.raises(InvalidTopology, match="topology 'doubles' has no stream 'default' of 'treble'"):
        run_on_spark(topology, spark, streams=["treble"])
    with pytest.raises(KeyError, match="no stream 'double' is kept"):
        run_on_spark(topology, spark).stream("double")


def test_the_session_is_left_as_it_was(spark: SparkSession) -> None:
    """Its settings, its tags and its cache."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    topology, _ = flows.doubles([Number(1)])
    run_on_spark(topology, spark)
    assert {name: spark.conf.get(name, None) for name in SETTINGS} == before
    assert not spark.getTags()
    assert not spark.sparkContext._jsc.getPersistentRDDs()  # type: ignore[union-attr]


def test_a_batch_runs_where_a_loop_runs(spark: SparkSession) -> None:
    """As in the cell of a notebook; its bolts in the driver have a loop of their own."""
    topology, numbers = flows.doubles([Number(n) for n in range(5)])
    topology.bolt("keep", flows.Keep, numbers.global_())
    flows.Keep.kept = []

    async def cell() -> int:
        return run_on_spark(topology, spark).acked

    assert asyncio.run(cell()) == 5


def test_a_dataframe_that_cannot_be_read_is_told_as_an_error_of_ours(spark: SparkSession) -> None:
    """Spark begins to read where it counts the partitions of what was shuffled."""
    raising = spark.range(2).selectExpr("raise_error('no such order') AS n").groupBy("n").count()
    topology = Topology("orders")
    orders = topology.spout("orders", DataFrameSpout(raising))
    topology.bolt("sum", flows.double, orders.shuffle())
    with pytest.raises(SparkFailed, match="no such order"):
        run_on_spark(topology, spark)


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_representatives_reach_each_partition(spark: SparkSession, partitions: int) -> None:
    """For Spark 4.0, which cannot be told a partition's number."""
    from pyspark.sql import functions as f

    chosen = representatives(spark, partitions)
    frame = spark.createDataFrame([(each,) for each in chosen], "number int")
    placed = frame.repartition(partitions, "number").select("number", f.spark_partition_id())
    assert {row[0]: row[1] for row in placed.collect()} == {each: at for at, each in enumerate(chosen)}


def test_representatives_are_asked_for_once(spark: SparkSession) -> None:
    """Each exchange of each passage needs them, and Spark has two jobs for them."""
    chosen = representatives(spark, 5)
    spark.sparkContext.setJobGroup("again", "")
    try:
        assert representatives(spark, 5) == chosen
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("again")
