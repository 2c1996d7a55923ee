"""Batches by a session of Spark Connect, which has no JVM in this process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from stormlet.spark import Origin, SparkUnavailable
from stormlet.spark.session import check_java, check_packages
from tests.spark.engine.flows import Number

ROOT = Path(__file__).parents[3]
PACKAGES = ("grpc", "grpc_status", "google.rpc", "zstandard")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program has found. Where Spark Connect cannot start these tests are skipped, and fail in CI."""
    try:
        needs_connect()
    except SparkUnavailable as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("connected")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.spark.engine.connected", str(folder)]
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-5000:]
    results: dict[str, Any] = pickle.loads((folder / "found").read_bytes())
    return results


def needs_connect() -> None:
    """Raise :class:`SparkUnavailable` for what is missing."""
    check_packages()
    check_java()
    needed = [each for each in PACKAGES if each != "zstandard" or _is_of_pyspark(each)]
    missing = [each for each in needed if not _is_there(each)]
    if missing:
        raise SparkUnavailable(f"Spark Connect needs {missing[0]}; pip install 'pyspark[connect]'")


def _is_of_pyspark(package: str) -> bool:
    """True if PySpark asks for it; 4.0 does not compress."""
    return any(each.startswith(package) for each in requires("pyspark") or ())


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is its parent
        return False


def test_connect_a_word_count(found: dict[str, Any]) -> None:
    """The values are the same, the ledger adds up by root, and all outcomes are acked."""
    there, here, outcomes = found["words"]
    assert there == here
    assert outcomes == [("acked", 150)]


def test_connect_a_dataframe_is_read_where_it_lies(found: dict[str, Any]) -> None:
    """Messages have the places of their rows, behind an empty partition, too."""
    rows, letters = found["frame"]
    numbers = (*range(10), *range(20, 40))
    assert rows == [(n, 2 * n) for n in numbers if n % 10 != 7]
    places = [Origin(0, 7), Origin(2, 7), Origin(3, 7)]
    assert letters == [(Number(n), place, 1) for n, place in zip((7, 27, 37), places, strict=True)]


def test_connect_a_sink_is_written(found: dict[str, Any]) -> None:
    """By the server."""
    assert found["sink"] == [(n, 2 * n) for n in range(10) if n != 7]


def test_connect_a_sink_that_can_take_no_row_is_refused(found: dict[str, Any]) -> None:
    """By the server's own checks, before anything runs."""
    codec, columns, unknown, taken = found["refused"]
    assert codec.startswith("InvalidTopology: bolt 'write': parquet at ")
    assert "The codec zap is not available" in codec
    assert "The CSV datasource doesn't support the column `n`" in columns
    assert columns.endswith("; change format=, options= or the columns")
    assert "Failed to find the data source: parket" in unknown
    assert 'is there already, which mode="error" refuses' in taken


def test_connect_a_crash_is_one_sentence(found: dict[str, Any]) -> None:
    """The task, the method and the exception, as in a classic session."""
    said, written = found["crash"]
    assert said.startswith("SparkFailed: topology 'crash' crashed: finish of end[")
    assert "raised OSError('the disk is full')" in said
    assert "\n" not in said
    assert not written


def test_connect_an_error_of_sparks_own_is_one_line(found: dict[str, Any]) -> None:
    """Without the stack of the server's JVM."""
    assert found["broken"].startswith("SparkFailed: ")
    assert "no rows today" in found["broken"]
    assert "\n" not in found["broken"]


def test_connect_partitions_are_counted_exactly(found: dict[str, Any]) -> None:
    """Empty ones too, and those of several batches, of which some are not read."""
    assert found["partitions"] == [3, 3, 0, 2]


def test_connect_a_run_in_process_is_refused(found: dict[str, Any]) -> None:
    """The message has both ways out."""
    assert (
        "run the topology by run_on_spark, without checkpoint= and order_by=; or build" in found["in_process"]
    )


def test_connect_a_stream_is_refused(found: dict[str, Any]) -> None:
    """Its micro-batches never come to this process."""
    assert found["streaming"] == (
        "InvalidTopology: this DataFrame belongs to a Spark Connect session, where foreachBatch runs on the server; "
        "build the session with a master, such as SparkSession.builder.master(...)"
    )


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="each process has folders of its own there")
def test_connect_a_folder_that_the_server_does_not_see_is_refused(found: dict[str, Any]) -> None:
    """Before anything is written there."""
    said = found["unreached"]
    assert said.startswith(
        "InvalidConfiguration: the server of Spark Connect does not see the folder '/proc/self/fd/"
    )
    assert said.endswith("name one that both reach with staging= (--staging)")


def test_connect_settings_are_put_back(found: dict[str, Any]) -> None:
    """Those that were not set are unset again."""
    assert found["settings"] == []


def test_connect_packages_are_compared(found: dict[str, Any]) -> None:
    """Although the server is on this machine, its Python may be another."""
    assert found["one_machine"] is False
