"""Bugs of users, and the tool that finds each of them; the same topologies without the bug, which nothing accuses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from stormlet import InvalidConfiguration, Topology
from stormlet.testing import (
    Faults,
    Leaked,
    NotCompleted,
    SeedResult,
    SimulationFailed,
    complete,
    simulate,
)
from tests.cast import ignore
from tests.testing.chaos import adds, planted_bugs, sound_bolts
from tests.testing.chaos.planted_bugs import Case

SEEDS = range(60)
ALONE = {
    "forgets_one_in_a_hundred": "it has not finished after",
    "acks_before_its_work": r"bolt\[0\] acks 0 and then goes on working, in AcksFirst.execute \(planted_bugs.py:\d+\)",
    "acks_twice": r"bolt\[0\] acks 0 and then raises AlreadySettled\(.*: the message counts as done",
    "unanchored_emit": r"bolt\[0\] emits 0 in execute without anchors, with 0 in hand",
    "spout_without_replay": r"'numbers' never emits again what has failed: 1?\d of 12 messages were acked, and 12",
    "joins_its_own_replay": r"'join' joins -\d with a replay of it",
    "work_left_to_a_task": "tasks are left: .*started by case/bolt",
    "background_task_for_ever": "tasks are left: .*started by case/bolt",
    "lock_never_released": "it has not finished after",
    "waits_for_ever": "it has not finished after",
    "dict_changed_during_an_await": "dictionary changed size during iteration",
    "mutated_value": r"bolt\[0\] emitted \[0\] .*and it was changed afterwards",
    "lost_update_across_an_await": r"'bolt' finishes with \[\d+\] where calls overlap, and with \[66\]",
    "order_under_concurrency": r"'last' finishes with \[\d+\] where calls overlap, and with \[11\]",
    "keeps_state_in_an_attribute": r"bolt\.total has \[\(\d, \d\).*\] where it has .* when nothing fails",
}
"""Those that ``simulate`` finds by itself, and some of what it says."""
WITH_AN_ASSERTION = ["batch_that_drops", "not_idempotent", "counts_again", "swallowed_exception"]
"""Those that it finds with an assertion in ``on_seed``."""
BY_COMPLETE = {
    "forgets_one_in_a_hundred": NotCompleted,
    "lock_never_released": NotCompleted,
    "waits_for_ever": NotCompleted,
    "mutated_value": Leaked,
}
"""Those that ``complete`` finds."""
COMPARED = {
    "joins_its_own_replay": "joins",
    "spout_without_replay": "replays",
    "lost_update_across_an_await": "updates",
    "order_under_concurrency": "order",
    "keeps_state_in_an_attribute": "state",
}
"""Those that only a comparison of runs shows, and the kind that each is."""
ALLOWED = COMPARED | {
    "acks_before_its_work": "acks",
    "acks_twice": "errors",
    "unanchored_emit": "anchors",
    "mutated_value": "values",
}


def made_by(module: ModuleType, *parameters: str) -> Iterator[str]:
    """The names of its functions that have these parameters and make a topology or a case."""
    for name, thing in vars(module).items():
        if inspect.isfunction(thing) and thing.__module__ == module.__name__:
            signature = inspect.signature(thing)
            if tuple(signature.parameters) == parameters and signature.return_annotation in (
                "Case",
                "Topology",
            ):
                yield name


def planted(name: str, *, right: bool = False) -> Case:
    """The bug, or its twin."""
    make: Callable[[bool], Case] = getattr(planted_bugs, name)
    return make(right)


def test_all_nineteen_are_found() -> None:
    """Each of the bugs by one of the tools, and at least twelve by `simulate` without an assertion."""
    assert sorted([*ALONE, *WITH_AN_ASSERTION]) == sorted(made_by(planted_bugs, "right"))
    assert len(ALONE) + len(WITH_AN_ASSERTION) == 19
    assert len(ALONE) >= 12


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=pytest.mark.untraced) if bug in COMPARED else bug for bug in ALONE]
)
def test_simulate_alone_finds(bug: str) -> None:
    """Without a word of what the topology is for."""
    case = planted(bug)
    with pytest.raises(SimulationFailed, match=ALONE[bug]):
        simulate(case.topology, seeds=SEEDS)


@pytest.mark.untraced
@pytest.mark.parametrize("bug", WITH_AN_ASSERTION)
def test_simulate_finds_with_an_assertion(bug: str) -> None:
    """In `on_seed`, of what there must be outside after each run."""
    case = planted(bug)
    with pytest.raises(AssertionError):
        simulate(case.topology, seeds=SEEDS, on_seed=case.check)


@pytest.mark.parametrize("bug", BY_COMPLETE)
def test_complete_finds(bug: str) -> None:
    """In its one run."""
    with pytest.raises(BY_COMPLETE[bug]):
        complete(planted(bug).topology)


@pytest.mark.untraced
@pytest.mark.parametrize("bug", [*ALONE, *WITH_AN_ASSERTION])
def test_the_twin_of_a_bug_is_not_accused(bug: str) -> None:
    """The same topology without the bug has the same seeds, and the same assertion holds."""
    case = planted(bug, right=True)
    assert simulate(case.topology, seeds=SEEDS, on_seed=case.check).seeds == len(SEEDS)


@pytest.mark.untraced
@pytest.mark.parametrize("bug", COMPARED)
def test_a_bug_that_a_comparison_has_found_is_repeated(bug: str) -> None:
    """By its seed and its faults, of which only those stay without which it would not be found."""
    with pytest.raises(SimulationFailed) as first:
        simulate(planted(bug).topology, seeds=SEEDS)
    result = first.value.result
    assert len(result.faults) <= 2
    with pytest.raises(SimulationFailed) as again:
        simulate(planted(bug).topology, seeds=[result.seed], faults=first.value.exactly)
    assert str(again.value) == str(first.value)


@pytest.mark.untraced
@pytest.mark.parametrize(("bug", "kind"), ALLOWED.items())
def test_what_is_allowed_is_not_accused(bug: str, kind: Any) -> None:
    """By its kind."""
    assert simulate(planted(bug).topology, seeds=range(12), allow=[kind]).seeds == 12


def test_everything_may_be_allowed() -> None:
    """Then nothing is compared either."""
    runs = Runs()
    assert simulate(runs, seeds=range(12), allow=True).seeds == runs.made == 12
    assert simulate(planted("acks_twice").topology, seeds=range(12), allow=True).seeds == 12


def test_an_unknown_kind_is_refused() -> None:
    """The error names those that there are."""
    kinds: Any = ["orders"]
    with pytest.raises(InvalidConfiguration, match=r"a list of anchors, acks, .*, not \['orders'\]"):
        simulate(planted("mutated_value").topology, seeds=range(3), allow=kinds)


@pytest.mark.untraced
@pytest.mark.parametrize("name", [*made_by(sound_bolts)])
def test_sound_code_is_not_accused(name: str) -> None:
    """However much it looks like a bug: after few faults and after many."""
    make: Callable[[], Topology] = getattr(sound_bolts, name)
    simulate(make, seeds=range(20))
    simulate(make(), seeds=range(10), faults=Faults(kill=0.05, error=0.1, jump=0.02))


class Runs:
    """Makes a topology, and notes of each run how many there were."""

    def __init__(self, source: object = range(3)) -> None:
        self.made = 0
        self.seen: list[int] = []
        self._source = source

    def __call__(self) -> Topology:
        self.made += 1
        topology = Topology("counted")
        topology.bolt("ignore", ignore, topology.spout("numbers", self._source).shuffle())
        return topology

    def note(self, result: SeedResult) -> None:
        """For ``on_seed``."""
        self.seen.append(self.made)


def test_no_other_run_comes_between_two_seeds() -> None:
    """The runs that results are compared with come when `on_seed` has been called for the last time."""
    runs = Runs()
    simulate(runs, seeds=range(10), on_seed=runs.note)
    assert runs.seen == list(range(1, 11))
    assert runs.made > 20


def test_few_seeds_are_not_compared() -> None:
    """Of less than ten seeds, unless nothing may fail in them."""
    few, harmless = Runs(), Runs()
    simulate(few, seeds=range(9))
    assert few.made == 9
    simulate(harmless, seeds=range(9), faults="none")
    assert harmless.made > 9


def test_runs_that_are_stopped_are_not_compared() -> None:
    """With `seconds` they have not had the same input."""
    runs = Runs()
    simulate(runs, seeds=range(20), seconds=1.0)
    assert runs.made == 20


def test_a_topology_that_runs_only_once_is_not_compared() -> None:
    """Its source is exhausted then."""
    topology = Runs(iter(range(3)))()
    assert simulate(topology, seeds=[1], faults="none").counts["acked"] == 3


ADDED = {
    adds.to_a_closure: "total of 'bolt' grows by",
    adds.to_a_global: r"TOTALS\['all'\] of 'bolt' grows by",
    adds.to_an_object: r"account\.balance of 'bolt' grows by",
    adds.between_tasks: r"self\.totals\['all'\] of 'bolt' grows by",
    adds.to_a_list: r"self\.seen of 'bolt' grows by",
}


@pytest.mark.parametrize("make", ADDED, ids=lambda make: make.__name__)
def test_lost_updates_are_looked_for_wherever_data_is(make: Callable[[], Topology]) -> None:
    """In closures, globals, objects of the user's own, and what several tasks share."""
    with pytest.raises(SimulationFailed, match=f"seed 0: {ADDED[make]} .* where calls overlap, and by "):
        simulate(make(), seeds=range(10))
