"""The ledger of a run on Spark shows whatever Spark does to its rows."""

from __future__ import annotations

from random import Random

import pytest

from stormlet.spark.engine.account import differences
from tests.spark.engine.faults import WAYS, faulty, topology
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


def test_a_line_that_is_missing_or_comes_twice_is_named() -> None:
    """Each task leaves one."""
    run = twin(topology(Random(0)))
    partitions = run.cluster.partitions
    assert differences(run.lines[1:], partitions)[0].startswith("1 of ")
    assert differences([*run.lines, run.lines[0]], partitions)[0].startswith("1 lines")
