"""The ledger of a run on Spark shows whatever Spark does to its rows."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stormlet.errors import TopologyCrashed
from stormlet.spark.engine.partition.account import differences
from tests.spark.engine.faults import WAYS, OneFault, faulty, topology
from tests.spark.engine.random_topologies import CALM, WILD, Plan, plans
from tests.spark.engine.twin import twin

CHANCES = 8


@pytest.mark.parametrize("seed", range(3))
def test_a_run_without_a_fault_adds_up(seed: int) -> None:
    """Though a bolt of chance is in it."""
    assert twin(topology(Random(seed)), seed=seed).differences == []


@pytest.mark.parametrize("kind", WAYS)
def test_every_fault_is_named(kind: str) -> None:
    """Each of some runs has one fault."""
    runs = [run for seed in range(CHANCES) if (run := faulty(kind, seed)) is not None]
    assert len(runs) >= CHANCES // 2
    assert all(run.differences for run in runs)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans([*CALM, *WILD]), st.sampled_from(sorted(WAYS)), st.integers(0, 999))
def test_a_fault_in_any_topology_is_named(plan: Plan, kind: str, seed: int) -> None:
    """By the ledger; unless a bolt cannot even deal with a value that was altered."""
    fault = OneFault(kind, Random(seed))
    try:
        run = twin(plan.topology(), spouts=plan.spouts, seed=plan.seed, fault=fault)
    except TopologyCrashed:
        assert kind == "alter"
        return
    assert bool(run.differences) is fault.done


def test_a_line_that_is_missing_or_comes_twice_is_named() -> None:
    """Each task leaves one."""
    run = twin(topology(Random(0)))
    partitions = run.cluster.partitions
    assert differences(run.lines[1:], partitions)[0].startswith("1 of ")
    assert differences([*run.lines, run.lines[0]], partitions)[0].startswith("1 lines")
