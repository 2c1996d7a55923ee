"""What a source must know of a DataFrame before it reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stormlet.spark.source.plans import has_fixed_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "query", ["SELECT id FROM range(9) WHERE id > 3", "SELECT explode(array(1, 2)) AS a"]
)
def test_a_scan_keeps_its_order(spark: SparkSession, query: str) -> None:
    """What needs no exchange comes again as it was, so that reading can go on after a loss."""
    assert has_fixed_order(spark.sql(query))


@pytest.mark.parametrize(
    "query", ["SELECT id % 3, count(*) FROM range(9) GROUP BY 1", "SELECT /*+ REPARTITION(3) */ 1"]
)
def test_an_exchange_does_not(spark: SparkSession, query: str) -> None:
    """Rows that were exchanged may come in another order another time."""
    assert not has_fixed_order(spark.sql(query))
