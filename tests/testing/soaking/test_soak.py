"""Soaks of sound topologies, of leaking ones, and of broken engines. Real time is their subject."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sized
from contextlib import nullcontext
from typing import Any

import pytest

from stormlet import BasicBolt, Collector, InvalidTopology, Topology, Tuple
from stormlet.testing import FaultKind, SoakFailed, SoakReport, soak
from stormlet.testing.soaking import report, witness
from stormlet.testing.soaking import soak as soaking
from stormlet.testing.soaking.kit import SoakedRun
from stormlet.testing.soaking.report import MIB
from tests.helpers import interpreted_only
from tests.testing import soaked
from tests.testing.chaos.test_broken_engines import (
    messages_of_a_dead_acker_wait,
    one_edge_for_all_replicas,
    outcomes_are_delivered_twice,
)
from tests.testing.chaos.topologies import durable, everything, word_count

SECOND = 1 / 60


def numbers() -> Iterator[int]:
    yield from itertools.count()


def endless(topology: Topology) -> Topology:
    """The same with a source that never ends."""

    def forward(number: int) -> Iterator[int]:
        yield from (number, number)

    stream = topology.bolt("forward", forward, topology.spout("numbers", numbers).shuffle())
    topology.bolt("show", lambda number: None, stream.all(), parallelism=2)
    return topology


def test_an_endless_topology() -> None:
    """It is disturbed, rests after each burst, and is stopped in the end; nothing is lost."""
    rests: list[float] = []
    report = soak(
        endless(Topology("endless", message_timeout=2.0)),
        minutes=3 * SECOND,
        burst=0.5,
        every=0.02,
        seed=5,  # one whose slow inputs do not take most of the time
        on_rest=lambda report: rests.append(report.seconds),
    )
    assert report.runs == 1
    assert len(rests) >= 2
    assert rests == sorted(rests)
    assert report.counts["acked"] > 100  # thousands, but a busy machine leaves it little of its seconds
    assert report.counts["lost"] == 0
    assert set(report.faults) <= {FaultKind.KILL, FaultKind.ERROR, FaultKind.SLOW}
    assert report.counts["restarts"] == report.faults[FaultKind.KILL] > 0


class FailsAtFirst(BasicBolt[int, None]):
    """Gets each value twice."""

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        if tup.attempt == 1:
            raise ValueError("not yet")


def test_what_is_executed_again_is_counted() -> None:
    """Whatever a bolt had done of the attempt that has failed."""
    topology = Topology("again", replay_delay=0)
    done = topology.bolt("done", abs, topology.spout("numbers", range(10)).shuffle())
    topology.bolt("fails", FailsAtFirst, done.shuffle())
    counts = soak(topology, minutes=0.2 * SECOND, every=100.0).counts
    assert counts["acked"] > 0
    assert counts["duplicates"] >= counts["acked"]


def endless_words() -> Iterator[str]:
    yield from itertools.cycle(("to", "be", "or", "not"))


@pytest.mark.parametrize(
    ("build", "sources"),
    [(lambda: endless(Topology("endless")), {}), (durable, {"words": endless_words})],
    ids=["stateless", "durable"],
)
def test_what_the_witness_remembers_is_bounded(
    build: Callable[[], Topology], sources: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the memory of a long soak would grow by it, and the topology would get the blame."""
    most, runs = 300, list[SoakedRun]()
    monkeypatch.setattr(witness, "REMEMBERED", most)

    def kept(seed: int) -> SoakedRun:
        runs.append(SoakedRun(seed))
        return runs[-1]

    monkeypatch.setattr(soaking, "SoakedRun", kept)
    configuration = {"epoch_messages": most, "max_spout_pending": 100}
    soak(build(), minutes=2 * SECOND, every=100.0, sources=sources, configuration=configuration)
    (judge,) = (run.witness for run in runs)
    assert sum(account.acked for account in judge.accounts.values()) > 3 * most
    remembered = {
        name: len(value)
        for part in (judge, judge.outcomes, judge.given_up)
        for name, value in vars(part).items()
        if isinstance(value, Sized)
    }
    assert max(remembered.values()) <= 2 * most + 1, remembered


def test_a_topology_that_ends_is_run_again() -> None:
    """Until the time is over, which may be in the middle of a run; the counts are of all runs."""
    report = soak(word_count(), minutes=0.5 * SECOND, every=0.1)
    assert report.runs > 2
    assert 3 * (report.runs - 1) <= report.counts["acked"] <= 3 * report.runs


@pytest.mark.untraced
def test_every_kind_of_component() -> None:
    """Threads, batches, joins, a cycle, ticks, generators that resume, a spout that replays by itself."""
    report = soak(soaked.build(), minutes=2 * SECOND, burst=1.0, every=0.05, seed=1)
    assert report.counts["acked"] > 100


# Those that show in every order of events; the others are for seeds to find.
BREAKS = {
    one_edge_for_all_replicas: "was acked although",
    outcomes_are_delivered_twice: "got a second outcome",
    messages_of_a_dead_acker_wait: "messages have had no outcome for 2.0 s",
}


@interpreted_only
@pytest.mark.parametrize(
    ("break_it", "violation"), BREAKS.items(), ids=lambda each: getattr(each, "__name__", "")
)
def test_a_broken_engine_is_seen(
    break_it: Callable[[pytest.MonkeyPatch], None], violation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the error says what was wrong, and what happened last."""
    break_it(monkeypatch)
    if "no outcome" in violation:  # the others are seen at once, however long the machine stands still
        monkeypatch.setattr(soaking, "PATIENCE", 0.5)
    topology = endless(Topology("endless", message_timeout=1.0))
    with pytest.raises(SoakFailed, match=violation) as failed:
        soak(topology, minutes=20 * SECOND, burst=1.0, every=0.02, seed=1)
    report = failed.value.report
    assert f"topology 'endless', seed 1, after {report.seconds:.0f} s: {failed.value.violations[0]}\n" in str(
        failed.value
    )
    assert failed.value.log
    assert (report.counts["lost"] > 0) == ("no outcome" in violation)


@pytest.mark.parametrize("growth", [1.0, 1000.0])
def test_memory_that_grows(growth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that weighs a MiB more at each rest is seen, unless so much is allowed."""
    weights = itertools.count(50 * MIB, MIB)
    monkeypatch.setattr(soaking, "resident_bytes", lambda: next(weights))
    monkeypatch.setattr(report, "FEWEST", 4)
    told = r"memory has grown from [\d.]+ MiB after the warm-up to [\d.]+ MiB, by more than 1 MiB"
    with pytest.raises(SoakFailed, match=told) if growth == 1.0 else nullcontext():
        soak(word_count(), minutes=SECOND, burst=0.01, every=100.0, growth=growth)


def test_a_crash_is_told() -> None:
    """What has crashed the topology is what is wrong."""

    def crash(number: int) -> None:
        raise OSError("out of order")

    topology = Topology("crash")
    topology.bolt("crash", crash, topology.spout("numbers", range(3)).shuffle(), on_error="stop")
    with pytest.raises(SoakFailed, match=r"crash\[0\] raised OSError\('out of order'\)"):
        soak(topology, minutes=SECOND)


def test_a_spout_without_source() -> None:
    """The error says how to give it one."""
    topology = Topology("fed")
    topology.bolt("show", print, topology.spout("fed").shuffle())
    with pytest.raises(
        InvalidTopology, match=r"fed\[0\] has no source: declare it with one, or give it one with sources="
    ):
        soak(topology)


def test_sources_stand_in_and_settings_override() -> None:
    """As for a run."""
    topology = Topology("fed")
    fed = topology.spout("fed")
    topology.bolt("show", lambda value: None, fed.shuffle())
    report: SoakReport = soak(
        topology, minutes=0.2 * SECOND, sources={fed: range(5)}, configuration={"ackers": 3}
    )
    assert 5 * (report.runs - 1) <= report.counts["acked"] <= 5 * report.runs  # the last one may be cut short


def test_everything_at_once() -> None:
    """The largest topology of the simulations."""
    assert soak(everything(), minutes=SECOND, every=0.02).counts["lost"] == 0


def test_state_is_in_memory() -> None:
    """Each run begins anew, and committers have what they should."""
    report = soak(durable(), minutes=2 * SECOND, every=100.0)
    assert report.runs > 1
    assert report.counts["lost"] == 0
