"""A stage as Spark runs it, without Spark."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from stormlet import BasicBolt, Collector, Topology, TopologyCrashed, Tuple
from stormlet.model.components import TaskContext
from stormlet.spark import SparkFailed
from stormlet.spark.engine.partition.rows import Kind, Row
from stormlet.spark.engine.passage.code import pickled
from stormlet.spark.engine.passage.driver import Driver
from stormlet.spark.engine.passage.stage import Work
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place, number


class ExitsWhenMade(BasicBolt[int, None]):
    """Ends the process that makes it."""

    def __init__(self) -> None:
        sys.exit(3)

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Never called."""


class ExitsWhenPrepared(BasicBolt[int, None]):
    """Ends the process that prepares it."""

    def prepare(self, context: TaskContext) -> None:
        """End the process."""
        sys.exit(3)

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Never called."""


class ExitsInFinish(BasicBolt[int, None]):
    """Ends the process when all is done."""

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Take it."""

    def finish(self, out: Collector[None]) -> None:
        """End the process."""
        sys.exit(3)


def exits(value: int) -> None:
    sys.exit(3)


def planned(logic: Callable[..., object], grouping: str, **options: Any) -> ClusterPlan:
    """A spout and a bolt."""
    topology: Any = Topology("ending")
    topology.bolt("ends", logic, getattr(topology.spout("numbers", [1]), grouping)(), **options)
    described = topology.describe()
    description, configurations = described.configured(described.configuration, "a test")
    return number(description, configurations, {"numbers": 1})


def emitted(cluster: ClusterPlan) -> list[Row]:
    """The rows of stage 0, whose spout emits one number."""
    work = Work(pickled(cluster), Place(0, 0), 1, by_root=False, again=None)
    return list(work.emitted([[1]]))


@pytest.mark.parametrize(
    ("logic", "what"),
    [
        (exits, "crashed: execute of ends[0]"),
        (ExitsWhenMade, "did not start: the constructor of ends"),
        (ExitsWhenPrepared, "crashed: prepare of ends[0]"),
        (ExitsInFinish, "crashed: finish of ends[0]"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"executor": "thread"}, {"concurrency": 3}])
def test_a_bolt_that_exits_is_named(logic: Any, what: str, options: dict[str, Any]) -> None:
    """Whatever of it exits, and wherever it runs: the worker of Spark's would end without a word of whose it was."""
    with pytest.raises(
        SparkFailed, match=rf"topology 'ending' {re.escape(what)} raised SystemExit\(3\) at .*test_stage"
    ):
        emitted(planned(logic, "shuffle", **options))


def test_a_bolt_that_exits_in_the_driver_is_named() -> None:
    """It is a crash as on an executor, and ends no program."""
    cluster = planned(exits, "global_")
    chunks = [row for row in emitted(cluster) if row.place == cluster.driver and row.kind == Kind.CHUNK]
    with pytest.raises(TopologyCrashed, match=r"execute of ends\[0\] raised SystemExit\(3\)"):
        Driver(cluster, 1, (), by_root=False).executed((), iter(chunks))
