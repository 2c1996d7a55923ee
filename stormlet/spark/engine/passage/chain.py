"""The chain of stages as one lazy DataFrame: exchange, sort, stage, exchange, sort, stage ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from stormlet.spark.engine.passage.arrow_rows import DDL
from stormlet.spark.engine.passage.stage import Stage
from stormlet.spark.engine.planning.numbering import ClusterPlan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_representatives: Final[dict[int, Sequence[int]]] = {}


def chained(
    first: DataFrame,
    cluster: ClusterPlan,
    pickled: bytes,
    seed: int,
    *,
    from_stage: int,
    by_root: bool = False,
) -> DataFrame:
    """Return the rows after the last stage. ``first`` has those that arrive at ``from_stage``."""
    rows = first
    for number in range(from_stage, len(cluster.layout.stages)):
        arriving = exchanged(rows, number, cluster.partitions[number])
        rows = arriving.mapInArrow(Stage(pickled, number, seed, by_root), DDL)
    return rows


def exchanged(rows: DataFrame, stage: int, partitions: int, first: int = 0) -> DataFrame:
    """Return the rows with those of a stage in the partitions that they are addressed to, in the order of their
    producers; the others are spread evenly. ``first`` is the first of these partitions in the stage."""
    from pyspark.sql import functions as f

    here = f.col("partition") - first
    elsewhere = f.pmod(f.col("producer") + f.col("partition"), f.lit(partitions))
    address = f.when(f.col("stage") == stage, here).otherwise(elsewhere).cast("int")
    return partitioned(rows, partitions, address).sortWithinPartitions("producer", "number")


def partitioned(rows: DataFrame, partitions: int, address: Column) -> DataFrame:
    """Return the rows, each in the partition of this number."""
    by_id: Callable[[int, Column], DataFrame] | None = getattr(rows, "repartitionById", None)
    if by_id is not None:  # from Spark 4.1 on
        return by_id(partitions, address)
    from pyspark.sql import functions as f

    chosen = representatives(rows.sparkSession, partitions)
    number = f.element_at(f.array(*(f.lit(each) for each in chosen)), address + 1)
    return rows.repartition(partitions, number)


def representatives(session: SparkSession, partitions: int) -> Sequence[int]:
    """Return for each partition the least number that Spark's hash sends there. Spark is asked once for each number of
    partitions, as that takes it two jobs."""
    if partitions not in _representatives:
        _representatives[partitions] = _least_numbers(session, partitions)
    return _representatives[partitions]


def _least_numbers(session: SparkSession, partitions: int) -> Sequence[int]:
    from pyspark.sql import functions as f

    found: dict[int, int] = {}
    most = 64
    while len(found) < partitions:
        most *= 4
        number = f.col("id").cast("int")
        place = f.pmod(f.hash(number), f.lit(partitions))
        least = session.range(most).groupBy(place.alias("place")).agg(f.min(number).alias("number"))
        found = {row["place"]: row["number"] for row in least.collect()}
    return [found[place] for place in range(partitions)]
