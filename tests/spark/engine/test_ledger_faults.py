"""The ledger of a run on Spark shows whatever Spark does to its rows."""

from __future__ import annotations

from random import Random

import pytest

from stormlet import Topology
from stormlet.spark.engine.account import differences
from tests.cast import refuse
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


def test_a_name_that_is_missing_or_another_is_seen() -> None:
    """Else a message that was given up would count as acked."""
    refused = Topology("refused")
    refused.bolt("refuse", refuse, refused.spout("source", range(5)).fields())
    run = twin(refused)
    names = [each.messages for each in run.given_up]
    partitions = run.cluster.partitions
    assert differences(run.lines, partitions, names) == []
    for wrong in (names[1:], [*names, names[0]], [*names[1:], names[1]], [(1,), *names[1:]]):
        assert len(differences(run.lines, partitions, wrong)) == 1
