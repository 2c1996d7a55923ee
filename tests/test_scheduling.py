"""The tests that a worker of pytest-xdist takes together, and those that begin first."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xdist")

from tests.scheduling import BY_KIND, FIRST, FileByFile

NO_SCHEDULER: Any = None


@pytest.mark.parametrize(
    ("file", "scope"),
    [
        ("tests/spark/test_session.py", "tests/spark/"),
        ("tests/spark/source/test_plans.py", "tests/spark/"),
        ("tests/spark/engine/test_batch.py", "tests/spark/engine/"),
        ("tests/spark/engine/test_kills.py", "tests/spark/engine/test_kills.py"),
    ],
)
def test_all_that_shares_a_session_of_spark_has_one_worker(file: str, scope: str) -> None:
    """In every folder, as each worker would start a JVM of its own; unless the tests of a file start some anyway."""
    assert FileByFile._split_scope(NO_SCHEDULER, f"{file}::test_one[a]") == scope


def test_other_tests_go_file_by_file() -> None:
    """The tests of a file share fixtures."""
    assert (
        FileByFile._split_scope(NO_SCHEDULER, "tests/core/test_ids.py::test_one[a::b]")
        == "tests/core/test_ids.py"
    )


def test_the_longest_file_has_a_worker_for_each_kind() -> None:
    """Its cases share nothing but a broker."""
    scopes = {
        FileByFile._split_scope(NO_SCHEDULER, f"{BY_KIND}::test_conformance[kafka, {kind} groups-{case}]")
        for kind in ("classic", "consumer")
        for case in ("01", "02")
    }
    assert scopes == {f"{BY_KIND}[kafka, {kind} groups" for kind in ("classic", "consumer")}
    assert scopes <= set(FIRST)


class Worker:
    """Notes the tests that it is given."""

    def __init__(self, tests: list[str]) -> None:
        self.tests = tests
        self.given = list[str]()

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.given += [self.tests[index] for index in indexes]


def test_what_takes_longest_begins_first() -> None:
    """And then the others, as they come."""
    worker = Worker(["a", "b", FIRST[2], FIRST[0]])
    scheduler: Any = object.__new__(FileByFile)
    scheduler.workqueue = OrderedDict((scope, {scope: False}) for scope in worker.tests)
    scheduler.assigned_work, scheduler.registered_collections = {}, {worker: worker.tests}
    for _ in worker.tests:
        scheduler._assign_work_unit(worker)
    assert worker.given == [FIRST[0], FIRST[2], "a", "b"]


def test_what_begins_first_is_there() -> None:
    """A file that was renamed is not forgotten here."""
    root = Path(__file__).parents[1]
    assert [scope for scope in FIRST if not (root / scope.partition("[")[0]).exists()] == []
