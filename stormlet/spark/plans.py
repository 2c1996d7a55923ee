"""What Spark's plans of a DataFrame say, as far as PySpark leads there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCAN = "FileSourceScanExec"
NARROW = frozenset({SCAN, "RangeExec", "ProjectExec", "FilterExec", "UnionExec", "GenerateExec"})
"""The operators after which a row is where it was in every run."""


def execution_of(frame: DataFrame) -> Any:
    """Spark's ``QueryExecution``."""
    return cast("Any", frame)._jdf.queryExecution()


def operators(frame: DataFrame) -> list[Any]:
    """The nodes of the physical plan, the last one to be executed first."""
    return list(nodes_of(execution_of(frame).sparkPlan()))


def scans_of(frame: DataFrame) -> list[Any]:
    """The operators that read files."""
    return [node for node in operators(frame) if kind_of(node) == SCAN]


def nodes_of(tree: Any) -> Iterator[Any]:
    """A plan or an expression, and all that it is made of."""
    yield tree
    children = tree.children()
    for number in range(children.size()):
        yield from nodes_of(children.apply(number))


def expressions_in(node: Any) -> Iterator[Any]:
    """The expressions of a plan's node, and those they are made of."""
    expressions = node.expressions()
    for number in range(expressions.size()):
        yield from nodes_of(expressions.apply(number))


def kind_of(node: Any) -> str:
    """The name of its class."""
    return str(node.getClass().getSimpleName())
