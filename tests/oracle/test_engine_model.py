"""The whole engine against a naive model that stores every tuple tree, on random topologies.

Each seed is a topology, its user code, its options and the way it is run; the model is :mod:`tests.oracle.witness`.
``TESTS_MODEL_SEEDS=from:to`` runs others than the default ones, for example ``0:5000``.
"""

from __future__ import annotations

import logging
import os
from collections import Counter

import pytest

from stormlet import FailureKind, Running, TaskStatistics
from stormlet.testing import run_simulated

pytest.register_assert_rewrite("tests.oracle.witness", "tests.oracle.actors", "tests.oracle.cases")

from tests.oracle.actors import SPOUTS, RandomBatchBolt  # noqa: E402
from tests.oracle.cases import Case, Play, random_case  # noqa: E402

FIRST, LAST = map(int, os.environ.get("TESTS_MODEL_SEEDS", "0:150").split(":"))
FOUND = (500_726, 501_397)
"""Seeds that the model, and not the engine, once judged wrongly."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Bolts fail by the hundred here."""
    caplog.set_level(logging.CRITICAL, "stormlet")


def play(case: Case) -> tuple[Play, Running]:
    acted = Play(case)
    return acted, run_simulated(acted.run(), seed=case.seed)


@pytest.mark.parametrize("seed", [*range(FIRST, LAST), *FOUND])
def test_every_message_gets_the_outcome_it_deserves(seed: int) -> None:
    """Exactly one, at the instant at which it is decided: ack only if all that was anchored was executed and acked,
    otherwise the right reason; and nothing is left over."""
    acted, running = play(random_case(seed))
    check_outcomes(acted)
    check_timeouts(acted, running)
    check_nothing_left(acted, running)
    if acted.case.end != "deadline":
        check_all_was_executed(acted)
        check_counts(acted, running)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 8))
def test_one_seed_gives_one_history(seed: int) -> None:
    """Two runs of one seed are identical, event for event (L16)."""
    first, _ = play(random_case(seed))
    second, _ = play(random_case(seed))
    assert first.witness.log == second.witness.log
    assert len(first.witness.log) > 3


def check_outcomes(acted: Play) -> None:
    """Every tracked emit of a spout class was told of, every kept message was acked or given up."""
    witness, case = acted.witness, acted.case
    slow = {plot.id for plot in case.spouts if plot.slow and case.end == "deadline"}
    for attempt in witness.attempts:
        if attempt.by_name:
            told = len(attempt.outcomes)
            assert told == 1 or (attempt.component in slow and told == 0), (
                f"{attempt.name} was told {told} times"
            )
    for value, component in witness.kept.items():
        letters = witness.letters[value]
        if letters:
            assert len(letters) == 1
            witness.check_letter(value, letters[0], case.options["max_attempts"])
        elif component not in {plot.id for plot in case.spouts if plot.kind == "fed"}:
            witness.check_acked(value)


def check_timeouts(acted: Play, running: Running) -> None:
    """Where nothing takes time, nothing times out, and no batch waits until it is old enough (B8)."""
    witness = acted.witness
    told = [failure for attempt in witness.attempts for failure in attempt.outcomes if failure is not None]
    told += [
        failure for letters in witness.letters.values() for letter in letters for failure in letter.history
    ]
    if acted.case.swift:
        assert [failure for failure in told if failure.kind is FailureKind.TIMEOUT] == []
        replays = any(each.replayed for each in running.statistics().components.values())
        assert replays or acted.ended_at < RandomBatchBolt.within


def check_nothing_left(acted: Play, running: Running) -> None:
    """No open tree, no pending message, no unsent control message, nobody at work."""
    tasks, engine = running._tasks, running._engine
    for acker in tasks.ackers:
        assert (len(acker.ledger), acker.ledger.expiring, acker.load.trees) == (0, 0, 0)
        assert acker.ledger.orphans == 0 or not acted.witness.all_acked
    for spout in tasks.all_spouts:
        assert (spout.tracker.pending, list(spout.outcomes), list(spout.tracker.replays)) == (0, [], [])
    for task in (*tasks.all_spouts, *tasks.all_bolts):
        outbox = task.outbox
        assert [outbox.run, *outbox.inits, *outbox.acks, *outbox.fails, *outbox.resets] == [0]
    assert [values for values in engine.collected.values() if values] == []
    assert engine.activity.busy == 0


def check_all_was_executed(acted: Play) -> None:
    """Every copy of every value, tracked or not."""
    copies = [copy for emission in acted.witness.emissions for copy in emission.copies]
    assert [copy for copy in copies if not copy.executed] == []


def check_counts(acted: Play, running: Running) -> None:
    """The engine's own statistics say the same."""
    witness = acted.witness
    statistics = running.statistics().components
    for plot in acted.case.bolts:
        assert counts_of(statistics[plot.id]) == bolt_counts(acted, plot.id), plot
    for plot in acted.case.spouts:
        counted = statistics[plot.id]
        assert counted.pending == counted.left_over == 0
        assert counted.transferred == witness.counts[plot.id]["transferred"]
        assert counted.dead_letters == sum(
            len(witness.letters[v]) for v, c in witness.kept.items() if c == plot.id
        )
        if plot.kind in SPOUTS:
            check_spout(acted, plot.id, counted)
    acker = statistics["__acker"]
    trees = [each for each in witness.attempts if not each.overflowed and each.copies]
    assert acker.acked + acker.failed == (len(trees) if acted.case.terms.ackers else 0)
    assert acker.expired_late == 0


def counts_of(counted: TaskStatistics) -> dict[str, int]:
    names = ("emitted", "transferred", "executed", "acked", "failed", "pending")
    return {name: getattr(counted, name) for name in names}


def bolt_counts(acted: Play, id: str) -> dict[str, int]:
    counts: Counter[str] = acted.witness.counts[id]
    copies = [
        copy for emission in acted.witness.emissions for copy in emission.copies if copy.component == id
    ]
    return {
        "emitted": counts["emitted"],
        "transferred": counts["transferred"],
        "executed": counts["executed"],
        "acked": counts["acks"],
        "failed": counts["fails"],
        "pending": sum(copy.settled_at is None for copy in copies),
    }


def check_spout(acted: Play, id: str, counted: TaskStatistics) -> None:
    told = [each.outcomes[0] for each in acted.witness.attempts if each.component == id and each.outcomes]
    assert counted.acked == told.count(None)
    assert counted.failed == len(told) - told.count(None)
    assert counted.emitted == acted.witness.counts[id]["emitted"]
    assert counted.overflowed == acted.witness.counts[id]["overflowed"]
