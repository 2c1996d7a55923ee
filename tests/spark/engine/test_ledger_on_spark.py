"""The ledger by root on Spark, and the check of what the driver's bolts have settled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import astuple, replace

from stormlet import DeadLetter, InvalidConfiguration, Stream, Topology
from stormlet.errors import SparkFailed
from stormlet.spark import DataFrameSink, DataFrameSpout, run_on_spark
from stormlet.spark.engine.partition.account import Line
from stormlet.spark.engine.partition.partition import Partition, root_of
from stormlet.spark.engine.partition.rows import Kind, Row, packed
from stormlet.spark.engine.passage import chain
from stormlet.spark.engine.passage.arrow_rows import DDL
from stormlet.spark.engine.passage.chain import exchanged
from stormlet.spark.engine.passage.ledger import Ledger, open_roots
from stormlet.spark.engine.passage.staging import Kept
from stormlet.spark.engine.planning.numbering import Place
from stormlet.testing import complete
from tests.spark.engine import flows
from tests.spark.engine.flows import Double, Number
from tests.spark.engine.twin import twin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBERS = [Number(n) for n in range(3000)]


def lose_second_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the second chunk of each spout task lost before the second stage."""

    def lossy(rows: DataFrame, stage: int, partitions: int) -> DataFrame:
        lost = (rows["kind"] == int(Kind.CHUNK)) & (rows["number"] == 2)
        return exchanged(rows.where(~lost) if stage == 1 else rows, stage, partitions)

    monkeypatch.setattr(chain, "exchanged", lossy)


def passed(source: object) -> tuple[Topology, Stream[Double]]:
    """Numbers by one exchange, to one task."""
    topology = Topology("passed")
    numbers = topology.spout("numbers", source, outputs=Number)  # type: ignore[call-overload]
    return topology, topology.bolt("times", flows.times, numbers.fields("n"))


def said(topology: Topology, spark: SparkSession) -> str:
    """The error of a run with the ledger by root, up to its first sentence."""
    with pytest.raises(SparkFailed) as raised:
        run_on_spark(topology, spark, ledger="roots")
    return str(raised.value).split(". ")[0].split("; ")[-1]


@pytest.mark.parametrize("flow", [flows.fails, flows.joined])
def test_by_root_a_run_gives_the_same(spark: SparkSession, flow: Any) -> None:
    """It adds up, and has the same outcomes."""
    numbers = [Number(n) for n in range(10)]
    result = run_on_spark(flow(numbers), spark, ledger="roots")
    assert result.acked == len(complete(flow(numbers)).acked)


def test_by_root_sinks_and_driver_add_up(spark: SparkSession, tmp_path: Path) -> None:
    """What has come to its end counts as settled, for each message."""
    topology, numbers = flows.doubles([Number(n) for n in range(20)])
    topology.bolt("write", DataFrameSink(tmp_path / "out"), numbers.shuffle())
    topology.bolt("keep", flows.Keep, numbers.global_())
    flows.Keep.kept = []
    result = run_on_spark(topology, spark, ledger="roots", streams=[numbers])
    assert len(flows.Keep.kept) == result.stream(numbers).count() == 18


def test_by_root_the_messages_of_a_lost_chunk_are_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first few of them by spout and number; and no sink is written."""
    lose_second_chunks(monkeypatch)
    topology, numbers = passed(NUMBERS)
    topology.bolt("write", DataFrameSink(tmp_path / "out"), numbers.shuffle())
    first = ", ".join(f"message {number} of 'numbers'" for number in range(2000, 2005))
    assert said(topology, spark) == f"1,000 messages are open: the first {first}"
    assert not (tmp_path / "out").exists()


def test_without_it_the_error_says_how_to_find_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the checksum knows no message."""
    lose_second_chunks(monkeypatch)
    with pytest.raises(SparkFailed, match='ledger="roots" names the messages that are open'):
        run_on_spark(passed(NUMBERS)[0], spark)


def test_rows_of_a_dataframe_are_named_by_their_places(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partition and row, from 0."""
    lose_second_chunks(monkeypatch)
    frame = spark.range(0, 2002, 1, 2).withColumnRenamed("id", "n")
    topology, _ = passed(DataFrameSpout(frame, as_=Number))
    assert said(topology, spark) == (
        "2 messages are open: row 1000 of partition 0 of 'numbers', row 1000 of partition 1 of 'numbers'"
    )


def test_by_root_the_messages_of_a_lost_total_are_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names a group of them."""
    lose_second_chunks(monkeypatch)
    topology = Topology("merged")
    frame = spark.range(0, 100, 1, 1).withColumnRenamed("id", "n")
    numbers = topology.spout("numbers", DataFrameSpout(frame, as_=Number))
    parities = topology.bolt("parities", flows.parity, numbers.shuffle(), outputs=flows.Total)
    topology.bolt("add", flows.Add, parities.fields("word"), parallelism=2)
    first = ", ".join(f"row {row} of partition 0 of 'numbers'" for row in range(0, 10, 2))
    second = ", ".join(f"row {row} of partition 0 of 'numbers'" for row in range(1, 10, 2))
    of_it = said(topology, spark)
    assert of_it in [f"50 messages are open: the first {each}" for each in (first, second)]


def test_what_belongs_to_no_message_is_said(spark: SparkSession, tmp_path: Path) -> None:
    """And what no spout can have emitted, of a root that was altered."""
    topology, _ = passed(NUMBERS)
    cluster = twin(topology).cluster
    task = cluster.plan.tasks["numbers"][0].task
    roots = [0, root_of(task, 4), root_of(9_999, 1)]
    entries = packed(roots), packed([5, 6, 7])
    row = Row(int(Kind.LEDGER), 2, 0, number=1, size=3, roots=entries[0], words=entries[1])
    rows = spark.createDataFrame([astuple(row)], DDL)
    rows.write.parquet(place := f"{tmp_path}/rows")
    kept = Kept(spark, place)
    assert sorted(each["root"] for each in open_roots(kept.frame, Place(2, 0)).collect()) == roots
    line = Line(Place(0, 0), 0, 0, 0, 0)
    with pytest.raises(SparkFailed) as raised:
        Ledger(cluster, []).check([line], 0, kept)
    assert "tuples that belong to no message are open" in str(raised.value)
    assert "2 messages are open: message 3 of 'numbers', one that no spout has emitted" in str(raised.value)


@pytest.mark.parametrize("lost", [True, False])
def test_what_the_driver_loses_is_noticed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, lost: bool
) -> None:
    """Before a dead letter is handed over, or a sink is written."""
    execute = Partition.execute
    seen = list[Row]()

    async def careless(self: Partition, row: Row) -> Sequence[Row]:
        seen.append(row)
        if len(seen) == 2:
            return [] if lost else await execute(self, replace(row, words=packed([1]) + row.words[8:]))
        return await execute(self, row)

    monkeypatch.setattr(Partition, "execute", careless)
    topology, numbers = flows.doubles([Number(n) for n in range(20)])
    topology.bolt("keep", flows.Keep, numbers.global_())
    topology.bolt("write", DataFrameSink(tmp_path / "out"), numbers.shuffle())
    flows.Keep.kept, letters = [], list[DeadLetter]()
    wanted = rf"in the driver have settled {{}} tuples, and {'18' if lost else 'others'} were sent to them"
    with pytest.raises(SparkFailed, match=wanted.format(r"\d+")):
        run_on_spark(topology, spark, dead_letters=letters.append)
    assert letters == []
    assert not (tmp_path / "out").exists()


def test_a_ledger_that_there_is_not() -> None:
    """Refused before Spark starts."""
    topology, _ = flows.doubles([Number(1)])
    with pytest.raises(InvalidConfiguration, match=r"doubles.*ledger must be .* not 'root'"):
        run_on_spark(topology, ledger="root")  # type: ignore[arg-type]
