"""A DataFrame that feeds state: the position of its source is kept with each epoch, and another run goes on there."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    InvalidTopology,
    Reject,
    SqliteTable,
    StartFailed,
    Topology,
    Tuple,
    Value,
)
from stormlet.spark import DataFrameSpout
from tests.helpers import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.asyncio

ROWS = 3000


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3000 rows in three files, read as two or three partitions."""
    path = tmp_path_factory.mktemp("positions") / "rows"
    spark.range(0, ROWS, 1, 3).write.parquet(str(path))
    return path


@pytest.fixture
def frame(spark: SparkSession, files: Path) -> Iterator[DataFrame]:
    """The rows of the files, in record batches of 50."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    yield spark.read.parquet(str(files))
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


class Left(Exception):
    """How these tests leave a run."""


class Numbers(BasicBolt[Any, int]):
    """The numbers of a row or a record batch; one in a thousand is rejected. From the ``most``-th on, the run is left
    as a kill leaves it."""

    def __init__(self, most: int, enough: asyncio.Event) -> None:
        self.left = most
        self.enough = enough

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        numbers = tup.value.column(0).to_pylist() if hasattr(tup.value, "column") else [tup.value[0]]
        if numbers == [1013]:
            raise Reject("unlucky")
        for number in numbers:
            out.emit(number)
        self.left -= len(numbers)
        if self.left <= 0:
            self.enough.set()


async def run(frame: DataFrame, state: Path, most: int = ROWS * 2, **options: Any) -> None:
    """Write the numbers to a table of the state until so many were executed."""
    enough = asyncio.Event()
    size = 5 if "batches" in options else 100
    topology = Topology("positions", state=state, epoch_messages=size, max_spout_pending=size)
    rows = topology.spout("rows", DataFrameSpout(frame, **options))
    numbers = topology.bolt("numbers", lambda: Numbers(most, enough), rows.shuffle(), outputs=int)
    topology.bolt("write", SqliteTable("numbers", int), numbers.global_())
    with suppress(Left):
        async with topology.run(dead_letters=lambda _: None) as running:
            waits = [asyncio.ensure_future(each) for each in (enough.wait(), running.finished())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            waits[0].cancel()
            if enough.is_set():
                raise Left


def numbers_in(state: Path) -> list[int]:
    with closing(sqlite3.connect(state)) as file:
        return sorted(value for (value,) in file.execute("SELECT value FROM numbers"))


@pytest.mark.parametrize(
    "options", [{}, {"batches": True}, {"order_by": "id"}, {"order_by": "id", "batches": True}]
)
async def test_runs_that_are_left_bring_each_row_once(
    frame: DataFrame, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Row by row, in whole record batches and in the order of a key; from the second row on, and to the end."""
    state = tmp_path / "rows.state"
    for most in (2, 700, 900):
        await run(frame, state, most, **options)
    assert len(numbers_in(state)) < ROWS * 0.9
    await run(frame, state, **options)
    lucky = [number for number in range(ROWS) if number != 1013 or "batches" in options]
    assert numbers_in(state) == lucky
    await run(frame, state, **options)
    assert numbers_in(state) == lucky


async def test_record_batches_of_another_size(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    """The position counts rows, not batches."""
    await run(frame, tmp_path / "s", 1000, batches=True)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "70")
    await run(frame, tmp_path / "s", batches=True)
    assert numbers_in(tmp_path / "s") == list(range(ROWS))


async def test_another_dataframe_fails_the_start(frame: DataFrame, tmp_path: Path) -> None:
    """What differs is named."""
    await run(frame, tmp_path / "s", 500)
    with pytest.raises(StartFailed) as failed:
        await run(frame.where("id > 7"), tmp_path / "s")
    assert "the state has the position of another DataFrame, in its plan; read" in str(failed.value.__cause__)


async def test_rows_that_move_fail_the_start(frame: DataFrame, tmp_path: Path) -> None:
    """A shuffle gives them in another order each time."""
    with pytest.raises(StartFailed) as failed:
        await run(frame.repartition(2), tmp_path / "s")
    assert isinstance(failed.value.__cause__, InvalidTopology)
    assert "state= needs rows that keep their places, and this DataFrame's plan has ShuffleExchange" in str(
        failed.value.__cause__
    )


async def test_the_position_of_another_source_fails_the_start(frame: DataFrame, tmp_path: Path) -> None:
    """A DataFrame in the place of another kind of spout."""
    from stormlet import Spout, SpoutCollector
    from stormlet.errors import EndOfStream

    class One(Spout[int]):
        resumable = True
        done = False

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if self.done:
                raise EndOfStream
            self.done = True
            out.emit(7, message_id="seven")

    topology = Topology("positions", state=tmp_path / "s")
    topology.bolt("nothing", lambda _: None, topology.spout("rows", One).shuffle())
    await run_to_end(topology)
    with pytest.raises(StartFailed) as failed:
        await run(frame, tmp_path / "s")
    assert "the state has the position of another source" in str(failed.value.__cause__)


async def test_a_checkpoint_beside_the_state_is_refused(frame: DataFrame, tmp_path: Path) -> None:
    """Both would know how far the source has come."""
    with pytest.raises(InvalidTopology, match="spout 'rows' has a checkpoint of its own"):
        await run(frame, tmp_path / "s", checkpoint=tmp_path / "c")


async def test_without_state_any_dataframe_counts(frame: DataFrame) -> None:
    """Epochs in memory ask nothing of the source."""
    from stormlet import KeyedBolt

    class Count(KeyedBolt[int, int, int]):
        total = Value(int, 0)

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.total += 1
            out.emit(self.total)

    topology, totals = Topology("volatile"), list[int]()
    rows = topology.spout("rows", DataFrameSpout(frame.repartition(2)))
    thirds = topology.bolt("thirds", lambda row: row[0] % 3, rows.shuffle(), outputs=int)
    topology.bolt("note", totals.append, topology.bolt("count", Count, thirds.fields()).global_())
    await run_to_end(topology)
    assert len(totals) == ROWS
    assert max(totals) == ROWS // 3
