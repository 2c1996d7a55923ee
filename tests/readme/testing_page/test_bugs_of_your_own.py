"""The page "Testing your topology": bugs of the user's, which simulations find."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormlet.cli.app import carry_out
from stormlet.testing import SeedResult, SimulationFailed, simulate
from stormlet.testing.chaos.evidence import Way
from stormlet.testing.chaos.simulator import Simulator
from tests.testing.chaos import adds, planted_bugs, sound_bolts
from tests.testing.chaos.planted_bugs import Case

SEEDS = range(60)


def found(make: Callable[[bool], Case], **options: Any) -> str:
    """The first violation that a simulation finds."""
    with pytest.raises(SimulationFailed) as failed:
        simulate(make(False).topology, seeds=SEEDS, **options)
    return failed.value.result.violations[0]


def test_the_error() -> None:
    """`simulate` knows nothing of what your topology is for, and still finds what none should do. The error names the
    component, the line where there is one, and the way out:
    """
    error = found(planted_bugs.acks_before_its_work)
    assert error.startswith("bolt[0] acks 0 and then goes on working, in AcksFirst.execute (planted_bugs.py:")
    assert error.endswith("ack when all is done")


def test_anchors() -> None:
    """`anchors`: a `Bolt` that emits in `execute` without `anchors=`, so that a failure further down is replayed by
    nobody; `anchors=()` says that it is meant
    """
    assert "emits 0 in execute without anchors" in found(planted_bugs.unanchored_emit)
    simulate(sound_bolts.says_that_no_anchors_are_meant(), seeds=range(20))


def test_acks() -> None:
    """`acks`: a `Bolt` that goes on working when it has acked, so that this work is lost if its task dies"""
    assert "goes on working" in found(planted_bugs.acks_before_its_work)


def test_errors_after_an_ack() -> None:
    """`errors`: a `Bolt` that raises when it has acked, so that nobody replays what it has not done"""
    assert "acks 0 and then raises AlreadySettled" in found(planted_bugs.acks_twice)


def test_changed_values() -> None:
    """`values`: a value that was changed after it was emitted"""
    assert "it was changed afterwards" in found(planted_bugs.mutated_value)


def test_missing_replays() -> None:
    """`replays`: a `Spout` class that never emits again what has failed"""
    assert "never emits again what has failed" in found(planted_bugs.spout_without_replay)


def test_joins() -> None:
    """`joins`: a join of two streams that joins a message with its own replay"""
    assert "with a replay of it" in found(planted_bugs.joins_its_own_replay)


def test_updates() -> None:
    """`updates`: an update that is lost because another call comes between reading and writing, across an `await`"""
    assert "one at a time" in found(planted_bugs.lost_update_across_an_await)


def test_order() -> None:
    """`order`: a result that depends on which call of a bolt with `concurrency` ends first, and is all that a bolt
    emits, in `finish`
    """
    assert "where they come in order" in found(planted_bugs.order_under_concurrency)
    simulate(sound_bolts.numbers_what_comes(), seeds=range(20))


def test_state() -> None:
    """`state`: keyed state, rows of a table or of a committer that are others than where nothing fails: of a bolt that
    works with what it keeps in an attribute, which no epoch undoes and no kill leaves
    """
    assert "when nothing fails" in found(planted_bugs.keeps_state_in_an_attribute)
    simulate(planted_bugs.keeps_state_in_an_attribute(True).topology, seeds=range(20))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each run: in which order calls come, and what fails."""
    noted, run = list[str](), Simulator.run

    def run_and_note(
        self: Simulator, seed: int, faults: Any, *, way: Way = Way.AS_DECLARED, **options: Any
    ) -> SeedResult:
        result = run(self, seed, faults, way=way, **options)
        failing = [fault.kind.value for fault in result.faults if fault.kind.value not in ("slow", "crowd")]
        noted.append(" ".join((way.value, *failing)))
        return result

    monkeypatch.setattr(Simulator, "run", run_and_note)
    return noted


def test_the_runs_of_a_comparison(runs: list[str]) -> None:
    """The last five come of comparisons: when all seeds are done, more runs of the same input follow, in which nothing
    fails, in which one call follows another, or in which a single input fails.
    """
    before: list[int] = []
    simulate(
        planted_bugs.lost_update_across_an_await(True).topology,
        seeds=range(10),
        on_seed=lambda _: before.append(len(runs)),
    )
    assert before == list(range(1, 11))
    assert {Way.AS_DECLARED.value, Way.IN_ORDER.value} <= set(runs[10:])
    with pytest.raises(SimulationFailed):
        simulate(planted_bugs.spout_without_replay(False).topology, seeds=SEEDS)
    assert runs.count("as declared error") >= 3


def test_what_is_compared() -> None:
    """Compared are the values that bolts emit, and the numbers and collections in their instances, closures and
    globals.
    """
    assert re.search(
        r"'bolt' finishes with \[\d+\] where calls overlap, and with \[66\] where",
        found(planted_bugs.lost_update_across_an_await),
    )
    for make in (adds.to_a_closure, adds.to_a_global, adds.between_tasks, adds.to_a_list):
        with pytest.raises(SimulationFailed, match="of 'bolt' grows by"):
            simulate(make(), seeds=range(10))


def test_differences_that_are_nobodys_fault() -> None:
    """A difference that comes of time, of chance, or of who gets which input is held against nobody: it is there where
    one call follows another, too.
    """
    simulate(sound_bolts.tells_the_time(), seeds=range(20))
    simulate(sound_bolts.takes_a_sample(), seeds=range(20))
    simulate(sound_bolts.adds_up_what_comes_in_any_order(), seeds=range(20))


def test_runs_that_are_not_compared(runs: list[str]) -> None:
    """Runs with `seconds` are not compared, nor are fewer than ten seeds, unless their faults are listed or nothing may
    fail in them. State is compared where no message was given up and no bolt has timers, a `ttl` or ticks, as far as it
    does not depend on the order of messages, on time, and on the ends of epochs.
    """
    for make in (sound_bolts.has_timers, sound_bolts.rejects_what_fails, sound_bolts.keeps_the_last_one):
        simulate(make(), seeds=range(20))
    runs.clear()
    topology = planted_bugs.lost_update_across_an_await(False).topology
    simulate(topology, seeds=range(20), seconds=60.0)
    simulate(topology, seeds=range(9))
    assert len(runs) == 20 + 9
    for few in ("slow:bolt[0]@2", "none"):
        with pytest.raises(SimulationFailed, match="where calls overlap"):
            simulate(topology, seeds=[3], faults=few)


def test_bugs_that_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`simulate(..., allow=["order"])` allows a kind, and so does `--allow order` on the command line."""
    simulate(planted_bugs.order_under_concurrency(False).topology, seeds=SEEDS, allow=["order"])
    monkeypatch.chdir(tmp_path)
    Path("topology.py").write_text(
        "from tests.testing.chaos.planted_bugs import order_under_concurrency\n"
        "topology = order_under_concurrency(False).topology\n"
    )
    assert carry_out(["simulate", "topology.py", "--seeds", "60"]) == 1
    assert carry_out(["simulate", "topology.py", "--seeds", "60", "--allow", "order"]) == 0


def test_the_world_outside() -> None:
    """The state of the world outside is yours to judge. `on_seed` is called with each result, after its run and before
    the next one: assert there, and make the world ready for the next run.
    """
    case, seen = planted_bugs.not_idempotent(True), list[tuple[int, int]]()

    def look(result: SeedResult) -> None:
        seen.append((result.seed, len(case.world)))
        case.world.clear()

    simulate(case.topology, seeds=range(5), on_seed=look)
    assert seen == [(seed, 12) for seed in range(5)]


def test_a_failed_assertion() -> None:
    """A failed assertion has a note with the line that repeats its seed."""
    case = planted_bugs.not_idempotent(False)
    with pytest.raises(AssertionError) as failed:
        simulate(case.topology, seeds=SEEDS, on_seed=case.check)
    (note,) = failed.value.__notes__
    seed, faults = re.fullmatch(
        r"repeat it with simulate\(\.\.\., seeds=\[(\d+)\], faults='(.*)'\)", note
    ).groups()
    with pytest.raises(AssertionError):
        simulate(case.topology, seeds=[int(seed)], faults=faults, on_seed=case.check)


@pytest.mark.parametrize(
    "bug",
    [
        planted_bugs.not_idempotent,
        planted_bugs.counts_again,
        planted_bugs.swallowed_exception,
        planted_bugs.batch_that_drops,
    ],
)
def test_bugs_that_need_an_assertion(bug: Callable[[bool], Case]) -> None:
    """With such an assertion, a simulation also finds a payment that is made again, a count that counts again, an
    exception that is swallowed, and a batch that is acked before it is written.
    """
    case = bug(False)
    with pytest.raises(AssertionError):
        simulate(case.topology, seeds=SEEDS, on_seed=case.check)
