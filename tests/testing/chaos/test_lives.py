"""Simulations of topologies with ``state=``, which are killed and begin again."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import pytest

from stormlet import Collector, Committer, Epoch, KeyedBolt, Topology, Tuple, Value
from stormlet.testing import FaultKind, Faults, SeedResult, SimulationFailed, simulate
from stormlet.testing.chaos.simulator import Simulator
from tests.epochs import planted_bugs
from tests.helpers import interpreted_only
from tests.testing.chaos.topologies import WORDS, Sink, Tally, durable

Patch = pytest.MonkeyPatch


@pytest.mark.untraced
def test_a_topology_with_state_survives_everything() -> None:
    """Its state is right, and committers have each epoch in its order."""
    report = simulate(durable, seeds=range(60), faults=Faults(crash=0.01))
    assert set(report.faults) == set(FaultKind) - {FaultKind.ENGINE}
    assert report.faults[FaultKind.CRASH] > 30


def logs(seed: int) -> str:
    """The log of one seed."""
    results: list[SeedResult] = []
    simulate(durable, seeds=[seed], faults=Faults(crash=0.02), on_seed=results.append)
    return "\n".join(results[0].log)


def test_a_seed_of_several_lives_repeats_event_for_event() -> None:
    """In another process, too."""
    code = "from tests.testing.chaos.test_lives import logs; print(logs(2), end='')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert logs(2) == logs(2) == other.stdout
    assert logs(2).count("the process is killed") > 1


def test_exact_faults_strike_in_later_lives() -> None:
    """Steps and opportunities are counted over all lives."""
    results: list[SeedResult] = []
    simulate(durable, seeds=[2], faults=Faults(crash=0.02), on_seed=results.append)
    simulate(durable, seeds=[2], faults=results[0].exactly, on_seed=results.append)
    first, again = results
    assert (again.log, again.missed) == (first.log, [])
    assert sum(fault.kind is FaultKind.CRASH for fault in first.faults) > 1


def test_a_sink_outside_has_each_word_once() -> None:
    """It notes the epoch, and is made ready for each seed by nobody: another line is new to it."""
    sink = Sink()

    def check(result: SeedResult) -> None:
        assert sorted(sink.rows) == sorted(WORDS)
        sink.rows.clear()

    simulate(partial(durable, sink), seeds=range(40), faults=Faults(crash=0.01, write=0.1), on_seed=check)


class Again(Committer[str]):
    """Brings rows again that its sink has."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def commit(self, epoch: Epoch, rows: Sequence[str]) -> None:
        self.sink.rows += rows


def test_a_sink_that_takes_no_note_is_found_by_an_assertion() -> None:
    """The epoch comes again after a kill."""
    sink = Sink()
    topology = durable()
    topology.bolt(
        "again",
        partial(Again, sink),
        topology.bolt("more", Tally, topology.spout("w", WORDS).fields()).global_(),
    )

    def check(result: SeedResult) -> None:
        rows, sink.rows = sink.rows, []
        assert sorted(rows) == sorted(WORDS)

    with pytest.raises(AssertionError):
        simulate(topology, seeds=range(60), faults=Faults(crash=0.01), on_seed=check)


class Remembered(KeyedBolt[str, str, str]):
    """Counts in an attribute, too."""

    total = Value(int, 0)

    def __init__(self) -> None:
        self.seen = Counter[str]()

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.seen[tup.value] += 1
        self.total = self.seen[tup.value]
        out.emit(tup.value)


class Rounded(Remembered):
    """Does so, and has timers."""

    def on_timer(self, at: float, out: Collector[str]) -> None:
        pass


def counting(bolt: type[KeyedBolt[str, str, str]]) -> Topology:
    topology = Topology("counting", state="counts.state", epoch_messages=5)
    topology.bolt(
        "after", len, topology.bolt("count", bolt, topology.spout("words", WORDS).fields()).shuffle()
    )
    return topology


def test_state_that_depends_on_what_fails_is_found() -> None:
    """It says what there is, and what there should be."""
    with pytest.raises(
        SimulationFailed, match=r"count\.total has \[\('.* where it has .* when nothing fails"
    ) as failed:
        simulate(counting(Remembered), seeds=range(20))
    assert len(failed.value.result.faults) == 1
    simulate(counting(Remembered), seeds=range(20), allow=["state"])


def test_state_that_depends_on_time_is_not_compared() -> None:
    """Timers come when time has passed, and faults take time."""
    simulate(counting(Rounded), seeds=range(20))


class Cleaned(KeyedBolt[str, str, str]):
    """Notes what is called at its end."""

    total = Value(int, 0)
    ends: ClassVar[list[str]] = []

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.total += 1

    def cleanup(self) -> None:
        self.ends.append("cleanup")


def test_nothing_is_cleaned_up_after_a_kill() -> None:
    """The next life has another instance."""
    Cleaned.ends.clear()
    report = simulate(counting(Cleaned), seeds=[1], faults="crash:process@step:40", allow=True)
    assert (report.faults, Cleaned.ends) == ({FaultKind.CRASH: 1}, ["cleanup"])


def test_a_write_that_fails_begins_another_life() -> None:
    """Done or not: the next one goes on with what the store has."""
    results: list[SeedResult] = []
    faults = "write:store@1 write:store@3 write:store@4"
    simulate(durable, seeds=range(10), faults=faults, on_seed=results.append)
    log = "\n".join(line for result in results for line in result.log)
    assert "fails before it is done" in log
    assert "fails after it was done" in log


def test_a_source_that_is_silent_gives_all_the_same() -> None:
    """For a while, at the beginning."""
    results: list[SeedResult] = []
    report = simulate(durable, seeds=[1], faults="silence:words[0]@1", on_seed=results.append)
    assert report.counts["acked"] == len(WORDS)
    assert any("words[0] is silent for" in line for line in results[0].log)


FOUND: dict[Callable[[Patch], None], str] = {
    planted_bugs.tells_before_the_commit: "which is not its next one",
    planted_bugs.rows_are_delivered_before_they_are_durable: "which is not its next one",
    planted_bugs.the_overlay_is_stale: "when nothing fails",
    planted_bugs.the_position_is_one_too_far: "of which .* are durable|when nothing fails",
    planted_bugs.committers_are_called_out_of_order: "which is not its next one|never got epoch",
    planted_bugs.the_outbox_is_not_forgotten: "which is not its next one|still has epoch",
    planted_bugs.rows_are_not_rolled_back: "when nothing fails",
    planted_bugs.stragglers_of_dead_trees_count: "when nothing fails",
    planted_bugs.no_failure_spoils_an_attempt: "when nothing fails",
}


@pytest.mark.untraced
@interpreted_only
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("bug", "violation"), FOUND.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_epochs_that_are_broken_are_seen(
    bug: Callable[[Patch], None], violation: str, monkeypatch: Patch
) -> None:
    """Within some seeds, and it says what is wrong."""
    bug(monkeypatch)
    monkeypatch.setattr(Simulator, "shrunk", lambda simulator, failed, judged=None: failed)
    with pytest.raises(SimulationFailed, match=violation):
        simulate(durable, seeds=range(100), faults=Faults(crash=0.01))
