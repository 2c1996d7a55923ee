"""The ledger of a run on Spark shows whatever Spark does to its rows."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stormlet.errors import TopologyCrashed
from stormlet.spark.engine.partition.account import differences
from stormlet.spark.engine.partition.roots import NOBODY, AccountByRoot, Entries
from stormlet.spark.engine.partition.rows import Kind, packed, unpacked
from stormlet.spark.engine.planning.numbering import Place
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
    assert run.open == fault.hit


@pytest.mark.parametrize("kind", WAYS)
def test_by_root_the_messages_of_what_was_changed_are_named(kind: str) -> None:
    """All of them, and no others."""
    for seed in range(CHANCES):
        fault = OneFault(kind, Random(f"{kind}/{seed}"))
        run = twin(topology(Random(seed)), spouts=2, seed=seed, fault=fault)
        assert run.open == fault.hit
        assert bool(fault.hit) is fault.done


def test_tuples_of_several_messages_and_of_none_have_their_entries() -> None:
    """One for each message of each tuple, and one in the name of nobody."""
    entries = Entries()
    entries.add(packed([11, 12, 13]), [7, 8, 9], [2, 0, 1])
    assert [*zip(unpacked(bytes(entries.roots)), unpacked(bytes(entries.words)), strict=True)] == [
        (7, 11),
        (8, 11),
        (NOBODY, 12),
        (9, 13),
    ]


def test_entries_leave_in_rows_of_limited_size() -> None:
    """So that a partition holds few of them."""
    account = AccountByRoot(Place(1, 2), Place(3, 0))
    account.settled(packed([11, 12]), [7, 8], [])
    assert [*account.rows(3)] == []
    (row,) = account.rows(2)
    assert (row.kind, row.place, row.number, row.size) == (Kind.LEDGER, Place(3, 0), -1, 2)
    assert [*account.rows(1)] == []


def test_a_line_that_is_missing_or_comes_twice_is_named() -> None:
    """Each task leaves one."""
    run = twin(topology(Random(0)))
    partitions = run.cluster.partitions
    assert differences(run.lines[1:], partitions)[0].startswith("1 of ")
    assert differences([*run.lines, run.lines[0]], partitions)[0].startswith("1 lines")
    elsewhere = replace(run.lines[0], place=Place(0, partitions[0]))
    assert (
        differences([*run.lines, elsewhere], partitions)[0] == "1 lines are of tasks that are not in the plan"
    )
