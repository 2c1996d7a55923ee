"""The page "Testing your topology": simulations."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormlet import Bolt, Collector, InvalidConfiguration, Topology, TopologyCrashed, Tuple
from stormlet.cli.app import carry_out
from stormlet.core.ledger import Ledger
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.testing import FaultKind, Faults, SeedResult, SimulationFailed, simulate
from tests.cast import ignore
from tests.testing.chaos.topologies import everything, keyed, word_count

NONE = Faults(0, 0, 0, 0, 0, 0, 0, 0)


def test_a_run_for_each_seed() -> None:
    """`simulate(topology, seeds=range(1000))` runs the real engine once for each seed, on simulated time. The seed
    decides which of the tasks that are ready goes first, where slices end, and what goes wrong: tasks that die,
    exceptions, slow bolts, messages to the ackers that come late, twice or never, clocks that jump, queues of one to
    three.
    """
    logs: list[tuple[str, ...]] = []
    simulate(
        word_count(), seeds=range(10), faults=NONE, on_seed=lambda result: logs.append(tuple(result.log))
    )
    assert len(logs) == 10 > 3 < len(set(logs))
    report = simulate(everything(), seeds=range(40), faults=Faults(kill=0.03))
    assert report.seeds == 40
    assert set(report.faults) == set(FaultKind) - {FaultKind.ENGINE}
    assert [kind.value for kind in FaultKind] == [
        *("kill", "error", "slow", "delay", "duplicate", "drop", "jump", "crowd", "engine")
    ]


def an_outcome_too_many(patch: pytest.MonkeyPatch) -> None:
    """Each ack comes twice."""
    take = Ledger.take_verdicts

    def twice(self: Ledger) -> Any:
        acked, failed = take(self)
        return [*acked, *acked], failed

    patch.setattr(Ledger, "take_verdicts", twice)


def an_ack_too_early(patch: pytest.MonkeyPatch) -> None:
    """Each tree is acked as soon as it is known."""
    init = Ledger.init

    def at_once(self: Ledger, inits: Any) -> None:
        for tree in inits.values():
            tree.checksum = 0
        init(self, inits)

    patch.setattr(Ledger, "init", at_once)


def a_fail_that_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What failed is told to nobody, so that it comes to nothing."""
    patch.setattr(Ledger, "fail", lambda self, root, failure: None)


def a_dead_letter_that_is_thrown_away(patch: pytest.MonkeyPatch) -> None:
    """What is given up comes to nobody."""
    patch.setattr(DeadLetters, "hand_over", lambda *_: None)


@pytest.mark.parametrize(
    "breaks",
    [an_outcome_too_many, an_ack_too_early, a_fail_that_is_forgotten, a_dead_letter_that_is_thrown_away],
)
def test_the_witness(breaks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A witness that stores every tuple tree judges each run: every emission has one outcome, which goes to its task; a
    tree is acked only when each of its tuples was; nothing that the engine keeps is lost, and what it gives up is one
    dead letter; nothing is left in the end.
    """
    few = {"max_attempts": 2}
    simulate(word_count(), seeds=range(30), faults=Faults(error=0.2), configuration=few)
    breaks(monkeypatch)
    with pytest.raises(SimulationFailed):
        simulate(word_count(), seeds=range(30), faults=Faults(error=0.2), configuration=few)


def test_the_engine_raises() -> None:
    """With `Faults(engine=0.01)` stormlet itself raises, which mostly crashes the topology: then each message must be
    acked, given back, a dead letter or left over.
    """
    report = simulate(word_count(), seeds=range(50), faults=Faults(engine=0.01))
    assert report.faults[FaultKind.ENGINE] > 10


class AcksOnce(Bolt[str, None]):
    """Cannot bear what comes a second time."""

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        if tup.attempt > 1:
            raise SystemError("again")
        out.ack(tup)


def fragile() -> Topology:
    topology = Topology("fragile")
    topology.bolt("once", AcksOnce, topology.spout("lines", ["a", "b", "c"]).shuffle(), on_error="stop")
    return topology


def test_a_seed_that_fails() -> None:
    """The first seed under which the law is broken raises `SimulationFailed`, with the fewest faults under which it
    still is, what happened, and the line that repeats it.
    """
    seen: list[SeedResult] = []
    with pytest.raises(SimulationFailed) as failed:
        simulate(fragile(), seeds=range(100), faults=replace(NONE, drop=0.1, slow=0.1), on_seed=seen.append)
    result, text = failed.value.result, str(failed.value)
    assert all(not each.violations for each in seen if each.seed < result.seed)
    assert Counter(fault.kind for fault in result.faults) == {FaultKind.DROP: 1}
    assert "once[0] executes a" in text
    fault = str(result.faults[0])
    assert f"repeat it with simulate(..., seeds=[{result.seed}], faults='{fault}')" in text
    with pytest.raises(SimulationFailed):
        simulate(fragile(), seeds=[result.seed], faults=fault)


def test_where_faults_strike() -> None:
    """A kill strikes a task wherever it waits, and an exception any method and key function of the user, as often as
    `max_restarts` allows.
    """
    seen: list[str] = []

    def look(result: SeedResult) -> None:
        seen.extend(line.split("FAULT: ")[1] for line in result.log if "FAULT: " in line)

    simulate(keyed(), seeds=range(60), faults=replace(NONE, kill=0.05, error=0.05), on_seed=look)
    for what in ("is killed where it waits", "next_tuple of ", "tick of ", "a key function of "):
        assert any(what in each for each in seen), what
    seen.clear()
    never = {"max_restarts": 0}
    simulate(keyed(), seeds=range(20), faults=replace(NONE, error=0.05), configuration=never, on_seed=look)
    assert {each.split()[1] for each in seen} == {"raises"}


def test_a_list_of_faults_that_is_out_of_date() -> None:
    """A list of faults that names a task which is no more is refused, and `report.missed` has those that never struck,
    so that what was renamed does not look mended.
    """
    with pytest.raises(InvalidConfiguration, match=r"there is no 'twice\[0\]' here"):
        simulate(fragile(), seeds=[1], faults="drop:twice[0]@1")
    report = simulate(word_count(), seeds=[1], faults="kill:split[0]@999")
    assert [str(fault) for _, fault in report.missed] == ["kill:split[0]@999"]


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same from the command line is `python -m stormlet simulate topology.py --seeds 1000`."""
    monkeypatch.chdir(tmp_path)
    Path("topology.py").write_text(
        'from stormlet import Topology\ntopology = Topology("few")\ntopology.spout("numbers", [1, 2])\n',
        "utf-8",
    )
    assert carry_out(["simulate", "topology.py", "--seeds", "20"]) == 0
    assert capsys.readouterr().out.startswith("few: 20 seeds in ")


@pytest.mark.simulated_time
async def test_kill() -> None:
    """`running.kill("split")` has a task of a running topology die, in a test of your own or in production. An async
    generator that is awaited just then is over by that, which crashes the topology unless its function takes `resume=`.
    """
    async with word_count().run() as running:
        running.kill("split")
        await running.finished()
        await asyncio.sleep(1)
        assert running.statistics().components["split"].restarts == 1
        assert running.statistics().components["sentences"].acked == 3

    async def never(resume: int | None = None) -> AsyncIterator[int]:
        yield await asyncio.get_running_loop().create_future()

    async def hopeless() -> AsyncIterator[int]:
        async for number in never():
            yield number

    async def kill(source: Callable[[], AsyncIterator[int]]) -> None:
        topology = Topology("awaited")
        topology.bolt("ignore", ignore, topology.spout("never", source).shuffle())
        async with topology.run() as running:
            await asyncio.sleep(1)
            running.kill("never")
            await asyncio.sleep(1)

    await kill(never)
    with pytest.raises(TopologyCrashed):
        await kill(hopeless)
