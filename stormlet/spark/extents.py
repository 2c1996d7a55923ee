"""How much there is in a DataFrame, where that can be told without reading it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormlet.spark.plans import NARROW, SCAN, execution_of, kind_of, operators

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNTED = frozenset({SCAN, "RangeExec", "ProjectExec", "UnionExec"})
"""The operators that neither leave out rows nor make more of them."""
FORMATS = frozenset({"ParquetFileFormat", "OrcFileFormat"})
"""Formats whose files say how many rows they have."""

MOST_PARTITIONS = 1000
"""In more of them even the ends of files take long, and Spark would do that before it reads on."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is; None where that is not known."""

    rows: int | None = None
    partitions: int | None = None


def extent_of(frame: DataFrame) -> Extent:
    """Asks Spark, which reads no more than the ends of files. It blocks."""
    nodes = operators(frame)
    kinds = set(map(kind_of, nodes))
    if not kinds <= NARROW:
        return Extent()
    partitions = execution_of(frame).toRdd().getNumPartitions()
    counted = kinds <= COUNTED and all(_tells(node) for node in nodes if kind_of(node) == SCAN)
    return Extent(frame.count() if counted and partitions <= MOST_PARTITIONS else None, partitions)


def _tells(scan: Any) -> bool:
    return kind_of(scan.relation().fileFormat()) in FORMATS
