"""What runs on the executors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from stormlet.spark.source.reading import ALL, PACKED, packer, unpacked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_STORMLET = """
import sys
sys.modules["stormlet"] = None  # an import of it raises
import pickle
import pyarrow as pa
from pyspark import TaskContext
from types import SimpleNamespace
TaskContext.get = lambda: SimpleNamespace(partitionId=lambda: 2)
pack = pickle.load(sys.stdin.buffer)
(packed,) = pack(iter([pa.RecordBatch.from_pydict({"n": [1, 2, 3]})]))
print(packed.column("rows").to_pylist())
"""


def test_executors_need_no_stormlet() -> None:
    """The function is sent by value, and runs where stormlet cannot be imported."""
    from pyspark import cloudpickle

    sent = cloudpickle.dumps(packer({2: 1}))
    done = subprocess.run([sys.executable, "-c", NO_STORMLET], input=sent, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"[2]\n"


@pytest.fixture
def in_partition_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this were the task of partition 2."""
    task = SimpleNamespace(partitionId=lambda: 2)
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: task)


def batches() -> Iterator[pa.RecordBatch]:
    """Ten numbers in batches of four."""
    for first in (0, 4, 8):
        yield pa.RecordBatch.from_pydict({"n": list(range(first, min(first + 4, 10)))})


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        ({}, [(0, [0, 1, 2, 3]), (4, [4, 5, 6, 7]), (8, [8, 9])]),
        ({1: 5}, [(0, [0, 1, 2, 3]), (4, [4, 5, 6, 7]), (8, [8, 9])]),
        ({2: 3}, [(3, [3]), (4, [4, 5, 6, 7]), (8, [8, 9])]),
        ({2: 4}, [(4, [4, 5, 6, 7]), (8, [8, 9])]),
        ({2: 9}, [(9, [9])]),
        ({2: 10}, []),
        ({2: 99}, []),
        ({2: ALL}, []),
    ],
)
@pytest.mark.usefixtures("in_partition_2")
def test_what_is_done_is_left_out(done: dict[int, int], expected: list[tuple[int, list[int]]]) -> None:
    """Of each partition the rows that are done are left out, and the others keep their places."""
    packed = [row for batch in packer(done)(batches()) for row in batch.to_pylist()]
    assert {row["partition"] for row in packed} <= {2}
    unpacks = [(row["first_row"], unpacked(row["batch"])) for row in packed]
    assert [(first, batch.column("n").to_pylist()) for first, batch in unpacks] == expected
    assert [row["rows"] for row in packed] == [len(numbers) for _, numbers in expected]


@pytest.mark.usefixtures("in_partition_2")
def test_a_partition_that_is_all_done_is_not_read() -> None:
    """Nothing is asked of a partition of which nothing is wanted."""

    def never() -> Iterator[pa.RecordBatch]:
        pytest.fail("it was read")
        yield

    assert list(packer({2: ALL})(never())) == []


def test_a_slice_brings_its_own_rows_alone(spark: SparkSession) -> None:
    """On real executors, partitions that are done in part or whole give what is left of them, in order."""
    frame = spark.range(0, 4000, 1, 4)
    rows = frame.mapInArrow(packer({0: ALL, 1: 1000, 2: 999}), PACKED).collect()
    found = {(row.partition, row.first_row): unpacked(row.batch).column("id").to_pylist() for row in rows}
    assert found == {(2, 999): [2999], (3, 0): list(range(3000, 4000))}
