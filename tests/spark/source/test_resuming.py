"""A source with a checkpoint: what comes again after its process died, and what does not."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from stormlet import InvalidTopology, Reject, StartFailed, Topology
from stormlet.spark import DataFrameSpout
from stormlet.spark.source import reader
from stormlet.spark.source.checkpoint import CheckpointFile
from stormlet.spark.source.plans import check_resumable, fingerprint_of
from tests.helpers import run_to_end
from tests.spark.kill_rows import Rows, run_with_kills

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3000 rows in three files, read as two or three partitions."""
    path = tmp_path_factory.mktemp("resuming") / "rows"
    spark.range(0, 3000, 1, 3).write.parquet(str(path))
    return path


@pytest.fixture
def frame(spark: SparkSession, files: Path) -> DataFrame:
    """The rows of the files."""
    return spark.read.parquet(str(files))


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints come fast here."""
    monkeypatch.setattr(reader, "SAVE_EVERY", 0.01)


class Stopped(Exception):
    """How these tests leave a run."""


async def run(frame: DataFrame, checkpoint: Path, most: int | None = None, **options: Any) -> list[int]:
    """The rows that are done in a run, to its end or until so many are done; one in a hundred is rejected."""
    done: list[int] = []
    enough = asyncio.Event()

    async def note(row: Any) -> None:
        numbers = row.column(0).to_pylist() if "batches" in options else [row[0]]
        if numbers[0] % 100 == 13:
            raise Reject("unlucky")
        await asyncio.sleep(0.0001)
        done.extend(numbers)
        if most is not None and len(done) >= most:
            enough.set()

    topology = Topology("resuming", max_spout_pending=10)
    rows = topology.spout("rows", DataFrameSpout(frame, checkpoint=checkpoint, **options))
    topology.bolt("note", note, rows.shuffle())
    with suppress(Stopped):
        async with topology.run(dead_letters=checkpoint.with_suffix(".jsonl")) as running:
            if most is None:
                await running.finished()
            else:
                await enough.wait()
                raise Stopped
    return done


def lucky() -> set[int]:
    return {number for number in range(3000) if number % 100 != 13}


@pytest.mark.asyncio
async def test_a_second_run_has_nothing_to_do(frame: DataFrame, tmp_path: Path) -> None:
    """After a run to the end, everything is done, dead letters included."""
    checkpoint = tmp_path / "c"
    assert sorted(await run(frame, checkpoint)) == sorted(lucky())
    assert await run(frame, checkpoint) == []
    letters = checkpoint.with_suffix(".jsonl").read_text().splitlines()
    assert len(letters) == 30


@pytest.mark.asyncio
@pytest.mark.parametrize("batches", [False, True])
async def test_a_run_goes_on_where_the_last_one_stopped(
    frame: DataFrame, tmp_path: Path, batches: bool
) -> None:
    """Of runs that are left one after another each goes on; nothing is lost, and little comes again."""
    checkpoint, options = tmp_path / "c", {"batches": True} if batches else {}
    frame.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    try:
        runs = [await run(frame, checkpoint, 800, **options) for _ in range(3)]
        runs.append(await run(frame, checkpoint, **options))
    finally:
        frame.sparkSession.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert {row for one in runs for row in one} == (set(range(3000)) if batches else lucky())
    assert all(len(one) >= 800 for one in runs[:3])
    assert sum(map(len, runs)) <= 3000 + 3 * 10 * (50 if batches else 1)


@pytest.mark.asyncio
async def test_a_checkpoint_of_any_moment_loses_nothing(
    frame: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that starts from what the file held at some moment of another run does all that was not done then."""
    kept: list[Path] = []
    done: list[int] = []
    done_then: list[set[int]] = []
    save = CheckpointFile.save

    def keep(file: Any, checkpoint: Any) -> None:
        done_then.append(set(done))
        save(file, checkpoint)
        kept.append(shutil.copy(tmp_path / "c", tmp_path / f"c{len(kept)}"))

    monkeypatch.setattr(CheckpointFile, "save", keep)
    topology = Topology("moments", max_spout_pending=20)
    rows = topology.spout("rows", DataFrameSpout(frame, checkpoint=tmp_path / "c"))

    async def note(row: tuple[int]) -> None:
        await asyncio.sleep(0.0001)
        done.append(row[0])

    topology.bolt("note", note, rows.shuffle())
    await run_to_end(topology, dead_letters=lambda letter: None)
    monkeypatch.setattr(CheckpointFile, "save", save)
    assert len(kept) > 2
    for moment in {0, len(kept) // 2, len(kept) - 1}:
        again = set(await run(frame, Path(kept[moment])))
        assert again | done_then[moment] >= lucky()


@pytest.mark.untraced
def test_sigkill_loses_nothing(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    """Killed at some moment and started again, the run does every row at least once, or has its dead letter, and does
    none again that was done long before. ``python -m tests.spark.kill_rows`` does it often, and by key, too."""
    shutil.copytree(files, tmp_path / "rows")
    rows = run_with_kills(tmp_path, Random(1), 1)
    assert list(rows.faults()) == []
    assert len(rows.killed) == 1


def test_the_harness_sees_what_is_lost_and_what_comes_again() -> None:
    """Or it would prove nothing."""
    done, letters = [(row, 10.0 + row / 1000) for row in sorted(lucky())], set(range(3000)) - lucky()
    saves = [(10.0 + tenth / 10, 10.0 + tenth / 10) for tenth in range(31)]
    assert list(Rows(done, [], saves, letters).faults()) == []
    assert list(Rows(done[1:], [], saves, letters).faults()) == ["1 rows lost, such as 0"]
    assert list(Rows(done, [], saves, set()).faults()) == ["dead letters: []"]
    assert list(Rows([*done, (2980, 20.0)], [13.05], saves, letters).faults()) == []
    assert list(Rows([*done, (2900, 20.0)], [13.05], saves, letters).faults()) == [
        "row 2900 came again, 98 rows after which a checkpoint was written"
    ]
    assert list(Rows([*done, (2900, 20.0)], [13.05], [*saves[:-1], (13.0, 13.1)], letters).faults()) == []
    rarely = saves[:7] + saves[10:]
    assert list(Rows(done, [], rarely, letters).faults()) == ["396 rows without a checkpoint"]
    assert list(Rows(done, [10.7], rarely, letters).faults()) == []


# What is refused.


@pytest.mark.asyncio
@pytest.mark.parametrize("epoch_rows", [None, 10])
async def test_dead_letters_need_a_place(frame: DataFrame, tmp_path: Path, epoch_rows: int | None) -> None:
    """Dead letters that die with the process would be lost, so the start is refused without a sink."""
    topology = Topology("letters")
    topology.spout("rows", DataFrameSpout(frame, checkpoint=tmp_path / "c", epoch_rows=epoch_rows))
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology)
    assert "run with dead_letters=" in str(caught.value.__cause__)


@pytest.mark.asyncio
async def test_two_spouts_with_one_checkpoint_are_refused(frame: DataFrame, tmp_path: Path) -> None:
    """They would overwrite each other's; when the start has failed, the file is free again."""
    topology = Topology("two")
    source = DataFrameSpout(frame, checkpoint=tmp_path / "c")
    topology.spout("rows", source)
    topology.spout("more", source)
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology, dead_letters=lambda letter: None)
    assert "c is the checkpoint of another source of this process; give each" in str(caught.value.__cause__)
    assert len(await run(frame, tmp_path / "c")) == len(lucky())


@pytest.mark.asyncio
async def test_ackers_are_needed(frame: DataFrame, tmp_path: Path) -> None:
    """Without ackers every row would count as done at once (law L9)."""
    topology = Topology("ackers", ackers=0)
    topology.spout("rows", DataFrameSpout(frame, checkpoint=tmp_path / "c"))
    with pytest.raises(InvalidTopology, match="lives by acks and cannot run with ackers=0"):
        await run_to_end(topology, dead_letters=lambda letter: None)


@pytest.mark.asyncio
async def test_other_files_are_refused(
    spark: SparkSession, frame: DataFrame, files: Path, tmp_path: Path
) -> None:
    """The same plan over a copy of the files is another DataFrame."""
    await run(frame, tmp_path / "c")
    shutil.copytree(files, tmp_path / "copy")
    topology = Topology("other")
    topology.spout(
        "rows", DataFrameSpout(spark.read.parquet(str(tmp_path / "copy")), checkpoint=tmp_path / "c")
    )
    with pytest.raises(StartFailed) as caught:
        await run_to_end(topology, dead_letters=lambda letter: None)
    assert "is the checkpoint of another DataFrame, in its files; read" in str(caught.value.__cause__)


def frames_that_move(frame: DataFrame) -> Iterator[tuple[DataFrame, str]]:
    yield frame.groupBy("id").count(), "HashAggregate"
    yield frame.repartition(3), "ShuffleExchange"
    yield frame.orderBy("id"), "Sort"
    yield frame.sparkSession.createDataFrame([(1,)], "id int"), "RDDScan"
    yield frame.mapInArrow(lambda batches: batches, "id long"), "MapInArrow"


def test_rows_that_move_are_refused(frame: DataFrame, tmp_path: Path) -> None:
    """A DataFrame whose rows may be elsewhere in another run is refused, with the operator that moves them."""
    for moving, operator in frames_that_move(frame):
        said = f"needs rows that keep their places, .* has {operator}; give order_by="
        with pytest.raises(InvalidTopology, match=said):
            DataFrameSpout(moving, checkpoint=tmp_path / "c")
    with pytest.raises(InvalidTopology, match=r"needs the same rows in every run"):
        DataFrameSpout(frame.where("rand() < 0.5"), checkpoint=tmp_path / "c")


def test_the_fingerprint_tells_frames_apart(spark: SparkSession, frame: DataFrame, files: Path) -> None:
    """The same reading has the same fingerprint; another filter, column or file has another one."""
    again = spark.read.parquet(str(files))
    first = fingerprint_of(frame.where("id > 3"), ["id"])
    assert fingerprint_of(again.where("id > 3"), ["id"]) == first
    assert fingerprint_of(again.where("id > 4"), ["id"]).plan != first.plan
    assert fingerprint_of(again.union(again), ["id"]).files != first.files
    wide = [
        frame.selectExpr(*(f"id + {n if n < 40 else n + last} AS c{n}" for n in range(41))) for last in (0, 1)
    ]
    assert len({fingerprint_of(each, ["c0"]).plan for each in wide}) == 2
    check_resumable(again.selectExpr("id", "explode(array(1, id))").union(again.selectExpr("id", "id")))
