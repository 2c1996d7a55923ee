"""The tests that a worker of pytest-xdist takes together."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xdist")

from tests.scheduling import FileByFile

NO_SCHEDULER: Any = None


@pytest.mark.parametrize("file", ["tests/spark/test_session.py", "tests/spark/source/test_plans.py"])
def test_all_that_needs_spark_has_one_worker(file: str) -> None:
    """The tests of the bridge share a session, in every folder, as each worker would start a JVM of its own."""
    assert FileByFile._split_scope(NO_SCHEDULER, f"{file}::test_one[a]") == "tests/spark/"


def test_other_tests_go_file_by_file() -> None:
    """The tests of a file share fixtures."""
    assert (
        FileByFile._split_scope(NO_SCHEDULER, "tests/core/test_ids.py::test_one[a::b]")
        == "tests/core/test_ids.py"
    )
