"""Sources that the driver reads: in memory if they are small, and else in files."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow.parquet import ParquetFile

from stormlet import Topology
from stormlet.spark import run_on_spark
from stormlet.spark.engine.passage import arrow_rows, sources
from stormlet.spark.engine.passage.arrow_rows import rows_of
from stormlet.spark.engine.passage.sources import in_segments, message_rows
from stormlet.spark.engine.planning.numbering import number
from stormlet.testing import complete
from tests.cast import ignore
from tests.spark.engine import flows
from tests.spark.engine.flows import Number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIB = 1 << 20


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> int:
    """Segments of a MiB, in batches of an eighth."""
    monkeypatch.setattr(arrow_rows, "BATCH_BYTES", MIB // 8)
    monkeypatch.setattr(sources, "SEGMENT", MIB)
    return MIB


def rows_from(source: Any) -> Iterator[Any]:
    """The rows of messages of this source."""
    topology = Topology("rows")
    topology.bolt("ignore", ignore, topology.spout("source", source, outputs=object).shuffle())
    description, configurations = topology.describe().configured(topology.describe().configuration, "run")
    cluster = number(description, configurations, {"source": 2})
    return message_rows(cluster, cluster.plan.description.spouts["source"])


def test_the_driver_holds_few_messages_of_a_large_source(tmp_path: Path, small_segments: int) -> None:
    """Twenty times as many bytes as a segment pass it, and three segments are never there at once."""
    pool, most = pa.default_memory_pool(), 0

    def numbers() -> Iterator[bytes]:
        nonlocal most
        for each in range(200_000):
            if each % 1000 == 0:
                most = max(most, pool.bytes_allocated() + tracemalloc.get_traced_memory()[0])
            yield b"%0100d" % each

    in_segments(rows_from([bytes(small_segments)] * 3), tmp_path / "first")  # which imports what it needs
    tracemalloc.start()
    try:
        before = pool.bytes_allocated() + tracemalloc.get_traced_memory()[0]
        assert in_segments(rows_from(numbers), tmp_path / "messages") is None
        assert tracemalloc.get_traced_memory()[1] < 3 * small_segments
    finally:
        tracemalloc.stop()
    assert most - before < 3 * small_segments
    assert len([*(tmp_path / "messages").iterdir()]) >= 20


def test_files_hold_all_rows_in_their_order(tmp_path: Path, small_segments: int) -> None:
    """None of them larger than a segment."""
    values = [b"%0100d" % each for each in range(40_000)]
    assert in_segments(rows_from(values), tmp_path / "messages") is None
    files = [ParquetFile(each) for each in sorted((tmp_path / "messages").iterdir())]
    assert len(files) > 3
    found = [row for file in files for batch in file.iter_batches() for row in rows_of(batch)]
    assert found == [*rows_from(values)]
    assert all(
        sum(len(row.payload) for row in rows_of(b)) < small_segments for f in files for b in f.iter_batches()
    )


def test_a_small_source_stays_in_memory(tmp_path: Path) -> None:
    """No file is made for it."""
    table = in_segments(rows_from(range(2500)), tmp_path / "messages")
    assert table is not None
    assert table.num_rows == 3
    assert not (tmp_path / "messages").exists()


def test_a_large_source_gives_what_it_gives_in_process(
    spark: SparkSession, small_segments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages are found again for dead letters, and its files are gone at the end."""
    files = list[Path]()
    write = sources.write
    monkeypatch.setattr(sources, "SEGMENT", small_segments // 8)
    monkeypatch.setattr(sources, "write", lambda batches, file: (files.append(file), write(batches, file)))

    def numbers() -> Iterator[Number]:
        yield from (Number(n * 10 + (7 if n % 10_000 == 5 else 0)) for n in range(30_000))

    topology, doubled = flows.doubles(numbers)
    result, there = run_on_spark(topology, spark, streams=[doubled], staging=tmp_path), complete(topology)
    assert len(files) > 1
    assert [(each.value, each.message_id) for each in result.dead_letters] == [
        (each.value, each.message_id) for each in there.dead_letters
    ]
    assert sorted(row["n"] for row in result.stream(doubled).collect()) == sorted(
        each.n for each in there[doubled]
    )
    assert [each.name for each in next(tmp_path.iterdir()).iterdir()] == ["rows"]
