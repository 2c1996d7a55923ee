"""Simulations of sound topologies, and of unsound ones."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stormlet import Bolt, Collector, InvalidConfiguration, InvalidTopology, Topology, Tuple
from stormlet.runtime.run.handle import Running
from stormlet.runtime.spout.tracker import Tracker
from stormlet.testing import Fault, FaultKind, Faults, SeedResult, SimulationFailed, simulate
from tests.cast import Count, Forget, take_a_second
from tests.helpers import interpreted_only
from tests.testing.chaos.topologies import (
    cycle,
    everything,
    keyed,
    reliable,
    resuming,
    sentences,
    split,
    word_count,
)

NOTHING = Faults(0, 0, 0, 0, 0, 0, 0, 0)
OF_STATE = (FaultKind.CRASH, FaultKind.WRITE, FaultKind.SILENCE)


@pytest.mark.untraced
@pytest.mark.parametrize("make", [word_count, everything, cycle, resuming, reliable, keyed])
def test_a_sound_topology_survives_everything(make: Callable[[], Topology]) -> None:
    """Whatever is killed, raises, comes late, twice or never: every message has its one outcome, and none is lost."""
    report = simulate(make(), seeds=range(60), faults=Faults(kill=0.03, error=0.05, jump=0.02))
    assert report.seeds == 60
    assert set(report.faults) == set(FaultKind) - {FaultKind.ENGINE, *OF_STATE}
    assert report.counts["restarts"] >= 1
    assert report.counts["replayed"] > 10


def test_without_faults_nothing_is_replayed() -> None:
    """The order alone is the seed's."""
    report = simulate(word_count(), seeds=range(20), faults=NOTHING)
    assert report.counts == {"acked": 60, "replayed": 0, "dead_letters": 0, "restarts": 0}
    assert not report.faults


def logs(seed: int) -> str:
    """The log of one seed."""
    results: list[SeedResult] = []
    simulate(everything(), seeds=[seed], faults=Faults(kill=0.1), on_seed=results.append)
    return "\n".join(results[0].log)


def test_a_seed_repeats_event_for_event() -> None:
    """The same seed gives the same log, byte for byte, in another process with another hash seed too; others differ."""
    code = "from tests.testing.chaos.test_simulating import logs; print(logs(7), end='')"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert logs(7) == logs(7) == other.stdout
    assert "FAULT" in logs(7)
    assert logs(7) != logs(8)


class Opaque:
    """A value that ``repr`` knows only by where it is."""


def test_a_log_has_no_addresses() -> None:
    """They are others in every process."""
    results: list[SeedResult] = []
    topology = Topology("opaque")
    topology.bolt("forgets", Count, topology.spout("values", [Opaque()]).shuffle())
    simulate(topology, seeds=[1], faults=NOTHING, on_seed=results.append)
    assert "Opaque object> from values" in "\n".join(results[0].log)


def test_an_order_of_its_own_for_each_seed() -> None:
    """Tasks that are ready at the same moment go in an order of the seed's."""
    orders = set[str]()
    simulate(
        word_count(),
        seeds=range(20),
        faults=NOTHING,
        on_seed=lambda result: orders.add("\n".join(result.log)),
    )
    assert len(orders) > 3


class Forgets(Bolt[str, str]):
    """Acks an input before it emits what comes of it, unanchored, and forgets it if a restart comes between."""

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        if "cow" not in tup.value:
            out.ack(tup)


def forgetful() -> Topology:
    topology = Topology("forgetful", max_attempts=10_000)
    topology.bolt("forgets", Forgets, topology.spout("sentences", sentences).shuffle())
    return topology


def test_a_failing_seed_can_be_repeated() -> None:
    """The error has a line that repeats it, what was wrong, and what happened; the same line gives the same again."""
    with pytest.raises(SimulationFailed) as failed:
        simulate(forgetful(), seeds=range(3, 10), faults=NOTHING)
    text = str(failed.value)
    assert text.startswith("topology 'forgetful', seed 3: it has not finished after 20000.0 s")
    assert "repeat it with simulate(..., seeds=[3], faults='none')" in text
    assert "forgets[0] executes the cow jumped" in text


class Careless(Bolt[str, None]):
    """Acks in ``tick`` what it has gathered, and crashes the topology where that is too much."""

    def __init__(self) -> None:
        self.seen = 0

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        self.seen += 1
        out.ack(tup)
        if tup.attempt > 1:
            raise SystemError("it cannot be told twice")


def careless() -> Topology:
    topology = Topology("careless")
    lines = topology.spout("sentences", sentences)
    words = topology.bolt("split", split, lines.shuffle())
    topology.bolt("careless", Careless, words.shuffle(), on_error="stop")
    return topology


def test_a_failing_seed_is_shrunk() -> None:
    """Of all faults of the seed only those stay without which it would not fail; they alone repeat it."""
    faults = Faults(kill=0.05, error=0.1, slow=0.1, crowd=1.0)
    with pytest.raises(SimulationFailed) as failed:
        simulate(careless(), seeds=range(7, 200), faults=faults)
    result = failed.value.result
    assert len(result.faults) == 1
    assert "SystemError" in result.violations[0]
    with pytest.raises(SimulationFailed) as again:
        simulate(careless(), seeds=[result.seed], faults=failed.value.exactly)
    assert list(again.value.result.log) == list(result.log)


async def never(word: str) -> None:
    await asyncio.Event().wait()


def test_a_seed_that_hangs_says_why() -> None:
    """The report has the explanation of the oldest open trees, as a recorder knows them."""
    topology = Topology("hangs", message_timeout=None)
    topology.bolt("never", never, topology.spout("sentences", ["a", "b"]).shuffle())
    with pytest.raises(SimulationFailed, match="it has not finished") as failed:
        simulate(topology, seeds=[1], faults=NOTHING)
    first, second = failed.value.result.explanations
    assert (first.value, second.value, first.recorded) == ("a", "b", True)
    assert "'a' is executed by never[0], delivered 20000 s ago, by way of sentences[0]: never (test_" in str(
        failed.value
    )
    assert "'b' is queued at never[0]" in str(failed.value)


def test_exact_faults() -> None:
    """A list of faults happens as it is, and nothing else does."""
    results: list[SeedResult] = []
    faults = [Fault(FaultKind.KILL, "split[0]", 1), Fault(FaultKind.SLOW, "count[1]", 1)]
    simulate(word_count(), seeds=[1], faults=faults, on_seed=results.append)
    assert sorted(map(str, results[0].faults)) == ["kill:split[0]@1", "slow:count[1]@1"]
    assert results[0].counts["restarts"] == 1


def test_exact_faults_at_names_with_spaces() -> None:
    """As an error prints them, they are read again."""
    results: list[SeedResult] = []
    topology = Topology("spaces")
    topology.bolt("split it @ 1", split, topology.spout("all lines", sentences).shuffle())
    exactly = ["kill:split it @ 1[0]@1", "slow:split it @ 1[0]@1", "kill:all lines[0]@step:2"]
    simulate(topology, seeds=[1], faults=" ".join(exactly), on_seed=results.append)
    assert sorted(map(str, results[0].faults)) == sorted(exactly)


STRUCK_IN = {
    "next_tuple of ": everything,
    "execute_batch of ": everything,
    "ack of ": everything,
    "fail of ": everything,
    "flush of ": everything,
    "finish of ": everything,
    "tick of ": keyed,
    "a key function of numbers[0] ": keyed,
    "a key function of thirds[": keyed,
    "is killed where it waits": keyed,
}


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("what", "make"), STRUCK_IN.items(), ids=lambda each: each if isinstance(each, str) else each.__name__
)
def test_faults_strike_everywhere(what: str, make: Callable[[], Topology]) -> None:
    """Not only inputs: whatever the user may write can raise, and a task dies wherever it waits."""
    seen: list[str] = []
    simulate(
        make(),
        seeds=range(60),
        faults=Faults(kill=0.02, error=0.02, most=100),
        on_seed=lambda result: seen.extend(line for line in result.log if "FAULT" in line and what in line),
    )
    assert seen


def test_a_kill_at_a_step_is_repeated_exactly() -> None:
    """By its name, as any other fault: the same run, event for event."""
    results: list[SeedResult] = []
    simulate(keyed(), seeds=range(30), faults=Faults(kill=0.1), on_seed=results.append)
    first = next(each for each in results if sum(fault.at_step for fault in each.faults) > 1)
    exactly = " ".join(map(str, first.faults))
    assert "@step:" in exactly
    simulate(keyed(), seeds=[first.seed], faults=exactly, on_seed=results.append)
    assert list(results[-1].log) == list(first.log)
    assert list(results[-1].faults) == list(first.faults)


def test_exact_faults_that_miss() -> None:
    """A place that there is not is refused; what does not happen is told, lest a stale list look mended."""
    with pytest.raises(
        InvalidConfiguration, match=r"'kill:nobody\[0\]@1': there is no 'nobody\[0\]' here, only s"
    ):
        simulate(word_count(), seeds=[1], faults="kill:nobody[0]@1")
    report = simulate(word_count(), seeds=[1], faults="kill:split[0]@1 kill:split[0]@999")
    assert [(seed, str(fault)) for seed, fault in report.missed] == [(1, "kill:split[0]@999")]
    assert not simulate(word_count(), seeds=[1], faults="kill=0.1").missed


def test_endless_topologies_are_stopped() -> None:
    """With ``seconds`` a run is stopped and drains."""

    def numbers() -> Iterator[int]:
        number = 0
        while True:
            yield (number := number + 1)

    topology = Topology("endless", max_spout_pending=2)
    topology.bolt("wait", take_a_second, topology.spout("numbers", numbers).shuffle())
    report = simulate(topology, seeds=range(5), seconds=20.0)
    assert report.counts["acked"] > 20


class Deaf(Forget):
    """Settles nothing, and ticks for ever."""

    def tick(self, out: Collector[None]) -> None:
        """Keep the loop busy."""


def test_a_drain_without_end_is_a_violation() -> None:
    """What is stopped must drain: a forgotten input without a timeout does not keep the simulation for ever."""
    topology = Topology("deaf", message_timeout=None)
    topology.bolt("deaf", Deaf, topology.spout("sentences", ["a"]).shuffle(), tick=100.0)
    with pytest.raises(SimulationFailed, match=r"it has not drained after 20000\.0 s") as failed:
        simulate(topology, seeds=[1], faults=NOTHING, seconds=60.0)
    assert failed.value.result.explanations[0].value == "a"


def test_sources_stand_in() -> None:
    """A fed spout needs a source, and the error says how to give it one."""
    topology = Topology("fed")
    fed = topology.spout("fed")
    topology.bolt("split", split, fed.shuffle())
    with pytest.raises(
        InvalidTopology, match=r"fed\[0\] has no source: declare it with one, give it one with sources="
    ):
        simulate(topology, seeds=range(3))
    assert simulate(topology, seeds=range(3), sources={fed: ["a b"]}).counts["acked"] == 3


@pytest.mark.untraced
def test_what_a_jump_makes_late() -> None:
    """A tree may time out although its last input is acked, if the clock has jumped over both moments; with which seeds
    it does hangs on every step of the engine."""
    faults = "crowd:queues@1 jump:clock@3 slow:count[0]@3 slow:count[0]@4 jump:clock@9"
    assert simulate(word_count(), seeds=range(300), faults=faults).counts["replayed"] > 0


def runs_alive() -> int:
    gc.collect()
    return sum(type(each) is Running for each in gc.get_objects())


def test_nothing_is_left_of_a_run() -> None:
    """Whatever failed in it: neither the tracebacks of its failures nor its outcomes keep it alive."""
    of_other_tests = runs_alive()
    simulate(word_count(), seeds=range(30), faults="kill=0.03 error=0.05")
    assert runs_alive() <= of_other_tests


def test_the_log_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Injected failures are not told by the engine's log, which is as it was afterwards."""
    simulate(word_count(), seeds=range(10), faults=Faults(error=0.3))
    assert not caplog.records
    logging.getLogger("stormlet.runtime.failure_log").warning("still there")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("explode=1", "there is no fault 'explode', only kill, error, slow"),
        ("kill=2", "the rate of a fault is a number from 0 to 1, not '2'"),
        ("kill=1e", "the rate of a fault is a number from 0 to 1, not '1e'"),
        ("kill", "write rates such as"),
        ("error:split[0]@step:3", "only kills and crashes strike at a step"),
        ("kill:split[0]", "write rates such as"),
        ("kill:split[0]@1 drop=1", "write rates such as"),
    ],
)
def test_faults_that_cannot_be_read(text: str, expected: str) -> None:
    """The error says what is understood."""
    with pytest.raises(InvalidConfiguration, match=expected):
        simulate(word_count(), seeds=[1], faults=text)


@pytest.mark.parametrize("topology", [word_count, everything])
def test_no_message_slips_where_stormlet_itself_raises(topology: Callable[[], Topology]) -> None:
    """The topology crashes, and each message is counted (laws N1, N2)."""
    report = simulate(topology(), seeds=range(100), faults=Faults(engine=0.02))
    assert report.faults[FaultKind.ENGINE] > 50


@interpreted_only
def test_a_message_that_slips_where_stormlet_itself_raises_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the end forgets to count what is pending."""
    settle_left_over = Tracker.settle_left_over

    def forget(self: Any, unsent: int) -> None:
        self.pending = 0
        settle_left_over(self, unsent)

    monkeypatch.setattr(Tracker, "settle_left_over", forget)
    with pytest.raises(SimulationFailed, match="are counted"):
        simulate(word_count(), seeds=range(100), faults=Faults(engine=0.01))
