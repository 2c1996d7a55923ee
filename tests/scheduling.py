"""Which tests a worker of pytest-xdist takes together, which begin first, and how many workers there are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

TOGETHER = ("tests/spark/engine/", "tests/spark/")
"""Folders whose files share a session of Spark, as each worker would start a JVM of its own each; the first counts."""
BY_KIND = "tests/connect/kafka/test_conformance.py"
"""A file whose parameters may go to several workers, each of which starts a broker."""
FIRST = (
    *TOGETHER,
    f"{BY_KIND}[kafka, classic groups",
    "tests/spark/engine/test_programs.py",
    "tests/spark/engine/test_kills.py",
    "tests/spark/engine/test_connect.py",
    "tests/connect/rabbitmq/test_conformance.py",
    "tests/connect/nats/test_conformance.py",
    "tests/connect/postgres/test_conformance.py",
    "tests/connect/postgres/test_changes_conformance.py",
    "tests/testing/chaos/test_lives.py",
    "tests/connect/redis/test_topology.py",
    "tests/connect/test_soak.py",
    "tests/testing/chaos/test_planted_bugs.py",
    f"{BY_KIND}[kafka, consumer groups",
    "tests/connect/kafka/test_kills.py",
    "tests/connect/kafka/test_exactly_once.py",
    "tests/law/test_N2_engine_errors.py",
    "tests/testing/chaos/test_simulating.py",
    "tests/connect/kafka/test_topology.py",
    "tests/connect/test_planted_bugs.py",
)
"""What takes minutes, the longest first: begun late, it would be waited for when all else is done. Files of Spark that
are named here start JVMs of their own, and need not wait for the others."""


class FileByFile(LoadScopeScheduling):
    """A file, as its tests share fixtures; and all files that share a session of Spark. (The marker ``xdist_group`` has
    no effect with pytest 9.2.)"""

    def _split_scope(self, nodeid: str) -> str:
        file, _, function = nodeid.partition("::")
        if file == BY_KIND:
            return f"{file}[{function.partition('[')[2].partition('-')[0]}"
        if file in FIRST:
            return file
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    def _assign_work_unit(self, node: WorkerController) -> None:
        for scope in FIRST:
            if scope in self.workqueue:
                self.workqueue.move_to_end(scope, last=False)
                break
        super()._assign_work_unit(node)


def count_workers() -> int:
    """The workers of ``-n auto``: two more than cores, as some of them wait for brokers and processes."""
    return 2 + (os.cpu_count() or 1)
