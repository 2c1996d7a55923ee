"""The page "Testing your topology": simulations."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stormlet import Bolt, Collector, InvalidConfiguration, Topology, TopologyCrashed, Tuple
from stormlet.cli.app import carry_out
from stormlet.core.ledger import Ledger
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.testing import FaultKind, Faults, SeedResult, SimulationFailed, simulate
from stormlet.testing.chaos.committing import Commits
from stormlet.testing.chaos.faults import NO_FAULTS
from stormlet.testing.chaos.simulator import Simulator, TopologyLike
from tests.cast import ignore
from tests.epochs import planted_bugs
from tests.helpers import interpreted_only
from tests.testing.chaos.topologies import WORDS, Sink, Tally, durable, everything, keyed, word_count

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
    kinds = ("kill", "error", "slow", "delay", "duplicate", "drop", "jump", "crowd")
    assert {kind.value for kind in report.faults} == {*kinds}
    assert [kind.value for kind in FaultKind] == [*kinds, "engine", "crash", "write", "silence"]


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
        for tree in inits:
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


def of_state(topology: TopologyLike, **options: Any) -> list[SeedResult]:
    """The results of some seeds."""
    results: list[SeedResult] = []
    simulate(topology, seeds=range(30), faults=Faults(crash=0.01), on_seed=results.append, **options)
    return results


def kinds_of(results: list[SeedResult]) -> set[FaultKind]:
    return {fault.kind for result in results for fault in result.faults}


def test_a_store_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topology with state has a store in memory for each seed, whatever file its `state=` names."""
    monkeypatch.chdir(tmp_path)
    topology = Topology("counting", state="counts.state")
    topology.bolt("count", Tally, topology.spout("words", WORDS).fields())
    report = simulate(topology, seeds=range(3), faults=NO_FAULTS)
    assert report.counts["acked"] == 3 * len(WORDS)
    assert not [*tmp_path.iterdir()]


def test_the_process_is_killed() -> None:
    """With that, the process is killed after any step of a coroutine, and begins again with what the store has; a write
    of an epoch fails, before it is done or after it; and sources are silent for a while.
    """
    results = of_state(durable)
    assert {FaultKind.CRASH, FaultKind.WRITE, FaultKind.SILENCE} <= kinds_of(results)
    steps = [each.number for result in results for each in result.faults if each.kind is FaultKind.CRASH]
    assert len({*steps}) > 20
    with pytest.raises(SimulationFailed, match="where it has") as failed:
        simulate(partial(forgetful, durable=True), seeds=range(30), faults=Faults(crash=0.01))
    assert failed.value.exactly.startswith("crash:process@step:")


def forgetful(*, durable: bool) -> Topology:
    """A count that is kept in the state, and in an attribute with which it works."""

    class Twice(Tally):
        def __init__(self) -> None:
            self.seen = Counter[str]()

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.seen[tup.value] += 1
            self.total = self.seen[tup.value]

    topology = Topology("counting", state="counts.state" if durable else None, epoch_messages=5)
    topology.bolt("count", Twice, topology.spout("words", WORDS).fields())
    return topology


@interpreted_only
@pytest.mark.parametrize(
    ("bug", "says"),
    [
        (planted_bugs.committers_are_called_out_of_order, "which is not its next one|never got epoch"),
        (planted_bugs.the_outbox_is_not_forgotten, "which is not its next one|the store still has epoch"),
        (planted_bugs.tells_before_the_commit, "which is not its next one"),
    ],
)
def test_committers(
    bug: Callable[[pytest.MonkeyPatch], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The witness holds that each committer gets the epochs that are durable, in order, each until its `commit` has
    returned, and with equal rows each time; and that nothing is left to be delivered in the end.
    """
    bug(monkeypatch)
    monkeypatch.setattr(Simulator, "shrunk", lambda simulator, failed: failed)
    with pytest.raises(SimulationFailed, match=says):
        simulate(durable, seeds=range(60), faults=Faults(crash=0.01))


def test_committers_with_other_rows() -> None:
    """And with equal rows each time."""
    said, commits = list[str](), Commits()
    for rows in (["a"], ["b"]):
        commits.called("bring", 1, rows, lambda text, *values: said.append(text.format(*values)))
    assert said == ["bring gets epoch 1 again with other rows"]


class Mortal(Tally):
    """Notes its ends."""

    ends: ClassVar[list[str]] = []

    async def execute(self, tup: Tuple[str], out: Collector[str]) -> None:  # type: ignore[override]
        try:
            await asyncio.sleep(1)
            super().execute(tup, out)
        finally:
            self.ends.append("finally")

    def cleanup(self) -> None:
        self.ends.append("cleanup")


def test_another_life() -> None:
    """After a kill another life begins under the same seed, of another topology if a function makes it. Neither
    `cleanup` nor `close` is called, nor `commit`; but coroutines are cancelled, so that their `finally` runs.
    """
    made: list[Topology] = []

    def make() -> Topology:
        made.append(Topology("counting", state="counts.state"))
        made[-1].bolt("count", Mortal, made[-1].spout("words", ["a", "b"]).fields(), parallelism=len(made))
        return made[-1]

    Mortal.ends.clear()
    simulate(make, seeds=[1], faults="crash:process@step:16", allow=True)
    assert len(made) == 2
    *executed, first, second = Mortal.ends
    assert (first, second, {*executed}) == ("cleanup", "cleanup", {"finally"})
    assert len(executed) > len(["a", "b"])


def test_epochs_of_another_seed() -> None:
    """What sinks outside have had stays with them: they tell the epochs of one seed by their numbers, as
    `epoch.follows(last)` does, and those of another seed are new to them.
    """
    sink = Sink()
    results = of_state(partial(durable, sink), allow=True)
    assert Counter(sink.rows) == Counter(WORDS * len(results))
    assert FaultKind.CRASH in kinds_of(results)


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
