"""Random topologies on Spark itself; ``python -m tests.spark.engine.campaign`` has more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark.engine.campaign import Ran, compared, differences, in_process, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.untraced
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(20))
def test_a_random_topology_is_equal_on_spark(spark: SparkSession, seed: int) -> None:
    """It emits the same values, and gives up the same messages."""
    assert compared(seed, spark) == []


def test_the_topologies_are_not_all_small() -> None:
    """They have up to twelve bolts, several spouts, and failures."""
    drawn = [plan_of(seed) for seed in range(20)]
    assert drawn == [plan_of(seed) for seed in range(20)]
    assert max(len(plan.parts) for plan in drawn) >= 8
    assert {len(plan.sizes) for plan in drawn} == {1, 2, 3}
    assert len({part.kind for plan in drawn for part in plan.parts}) >= 12


def test_what_is_missing_or_too_much_is_a_difference() -> None:
    """Of emissions and of messages."""
    plan = plan_of(8)
    ran = in_process(plan)
    assert ran.seen
    assert [*differences(plan, ran, ran)] == []
    assert [*differences(plan, Ran(ran.seen[1:], ran.given_up, ran.messages), ran)]
    assert [*differences(plan, Ran([*ran.seen, ran.seen[0]], ran.given_up, ran.messages), ran)]
    assert [*differences(plan, Ran(ran.seen, ran.given_up, ran.messages - 1), ran)]
