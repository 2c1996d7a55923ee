"""The page "Testing your topology": marked tests, ``sim``, and components in the hands of a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from stormlet import FailureKind, Running, Topology
from stormlet.testing import (
    Ack,
    CollectingBolt,
    Completed,
    Delay,
    Fail,
    Feeder,
    Hold,
    Raise,
    ScriptedBolt,
    SimulatedLoop,
    Simulation,
    complete,
    work,
)
from stormlet.testing.bolts import Step
from tests.testing.plugin_runs import run


class Shouts:
    """A topology that takes a second for each word."""

    def __init__(self) -> None:
        self.topology = Topology("shouts")
        self.words = self.topology.spout("words")
        self.shouts = self.topology.bolt("shout", self._shout, self.words.shuffle())

    async def _shout(self, word: str) -> str:
        await asyncio.sleep(1)
        return word.upper()


class Up(Shouts):
    """The same, running."""

    running: Running
    entered_by: asyncio.Task[Any] | None


@pytest.fixture
async def up() -> AsyncIterator[Up]:
    """It, from before the test to after it."""
    shouts = Up()
    shouts.entered_by = asyncio.current_task()
    async with shouts.topology.run() as shouts.running:
        yield shouts


@pytest.mark.simulated_time
async def test_a_running_topology_as_a_fixture(up: Up, sim: Simulation) -> None:
    """A marked test runs on simulated time, in one task with its async fixtures, so that a running topology can be a
    fixture. `sim` is the clock: `await sim.settled()` lets everything happen that takes no time, `await
    sim.advance(minutes=10)` lets time pass, and `sim.now` says how late it is.
    """
    assert up.entered_by is asyncio.current_task()
    tree = await up.running.emit(up.words, "a", collect=up.shouts)
    await sim.settled()
    shout = up.running.statistics().components["shout"]
    assert (shout.queued, shout.pending) == (0, 1)
    assert (tree.done, sim.now) == (False, 0.0)
    await sim.advance(minutes=10)
    assert (tree.done, sim.now) == (True, 600.0)


def scripted(source: Any, bolt: Any, **options: Any) -> Topology:
    topology = Topology("scripted", message_timeout=10.0, **options)
    topology.bolt("bolt", bolt, topology.spout("values", source).shuffle())
    return topology


@pytest.mark.simulated_time
async def test_a_feeder(sim: Simulation) -> None:
    """`Feeder` is a source that emits what the test feeds it and keeps every outcome: `acked`, `failed`, `pending`, and
    `outcomes` with reasons and moments. With `Feeder(replays=True)` the engine replays, and the feeder gets the final
    outcome.
    """
    script: dict[str, Sequence[Step]] = {"late": [Hold(), Ack()], "bad": [Fail("no"), Ack()]}
    feeder, replayed = Feeder[str](), Feeder[str](replays=True)
    both = (scripted(feeder, ScriptedBolt(script)), scripted(replayed, ScriptedBolt({"bad": script["bad"]})))
    async with both[0].run(), both[1].run():
        for value in ("good", "bad", "late"):
            feeder.feed(value)
            replayed.feed(value)
        await sim.settled()
        assert (feeder.acked, feeder.failed, feeder.pending) == (["good"], ["bad"], ["late"])
        await sim.advance(seconds=15)
        _, bad, late = feeder.outcomes
        assert bad.failure
        assert late.failure
        assert (bad.failure.reason, bad.at) == ("no", 0.0)
        assert (late.failure.kind, late.at) == (FailureKind.TIMEOUT, 15.0)
        assert (sorted(replayed.acked), replayed.failed) == (["bad", "good", "late"], [])


@pytest.mark.simulated_time
async def test_a_scripted_bolt(sim: Simulation) -> None:
    """`ScriptedBolt` does with each value what its script says: `Ack(values)`, `Fail(reason)`, `Raise(error)`,
    `Delay(seconds, step)`, or `Hold()` until the test calls `bolt.ack(value)` or `bolt.fail(value)`.
    """
    error = LookupError("raised")
    steps: list[Step] = [
        Ack(["x", "y"]),
        Fail("failed"),
        Raise(error),
        Delay(5.0, Fail("late")),
        Hold(),
        Hold(),
    ]
    feeder, bolt = Feeder[int](), ScriptedBolt[int](dict(enumerate(steps)))
    async with scripted(feeder, bolt).run() as running:
        for number in range(len(steps)):
            feeder.feed(number)
        await sim.advance(seconds=6)
        bolt.ack(4)
        bolt.fail(5)
        await sim.settled()
        assert running.statistics().components["bolt"].emitted == 2
    assert (feeder.acked, feeder.failed) == ([0, 4], [1, 2, 3, 5])
    failures = {each.value: each.failure for each in feeder.outcomes if each.failure}
    assert (failures[1].reason, failures[3].reason, failures[2].exception) == ("failed", "late", error)


def test_a_collecting_bolt() -> None:
    """`CollectingBolt` keeps what it is given, in `values` and `tuples`."""
    bolt = CollectingBolt[int]()
    result: Completed = complete(scripted([1, 2], bolt))
    assert bolt.values == [1, 2] == [tup.value for tup in bolt.tuples] == result.acked


@pytest.mark.simulated_time
async def test_a_tree_to_await(up: Up) -> None:
    """`await running.emit(stream, value, collect=other)` gives a tree to await, as in production."""
    tree = await up.running.emit(up.words, "a", collect=up.shouts)
    assert await tree == ["A"]


def test_a_deadlock(inner: pytest.Pytester) -> None:
    """Where nothing can ever happen again, `Deadlock` says what every task waits for, and which bolts hold inputs."""
    result = run(
        inner,
        """
        from stormlet import Topology
        from stormlet.testing import Hold, ScriptedBolt

        async def never():
            await asyncio.Event().wait()

        @pytest.mark.simulated_time
        async def test_it():
            topology = Topology("holds", message_timeout=None)
            topology.bolt("hold", ScriptedBolt(default=Hold()), topology.spout("one", [1]).shuffle())
            async with topology.run():
                await never()
        """,
    )
    result.stdout.fnmatch_lines(["E*Deadlock: *"])
    result.stdout.fnmatch_lines(["*test_it: *test_it (*) > never (*) > Event.wait (*"])
    result.stdout.fnmatch_lines(["*topology 'holds': hold?0? never acked or failed <Tuple 1 from 'one'*"])


@pytest.mark.simulated_time
async def test_what_keeps_time_from_passing() -> None:
    """Time does not pass while anything can still run, nor while [the world outside](#the-world-outside) works for the
    loop; bolts with `executor="thread"` run on the loop itself.
    """
    loop = asyncio.get_running_loop()
    hour = loop.create_task(asyncio.sleep(3600))
    for _ in range(1000):
        await asyncio.sleep(0)
    await asyncio.to_thread(threading.Event().wait, 0.05)
    assert (loop.time(), hour.done()) == (0.0, False)
    await hour

    ran_in: list[threading.Thread] = []
    topology = Topology("threads")
    numbers = topology.spout("numbers", [1])
    topology.bolt(
        "where", lambda _: ran_in.append(threading.current_thread()), numbers.shuffle(), executor="thread"
    )
    async with topology.run() as running:
        await running.finished()
    assert ran_in == [threading.current_thread()]


@pytest.mark.simulated_time
async def test_code_that_takes_time(sim: Simulation) -> None:
    """Code takes no simulated time, unless it awaits something or calls `work`: then the clock goes on by so much, and
    what comes due meanwhile is late.
    """
    due = list[float]()
    topology = Topology("slow")
    topology.bolt("compute", lambda number: work(0.2), topology.spout("numbers", range(5)).shuffle())
    asyncio.get_running_loop().call_later(0.1, lambda: due.append(sim.now))
    async with topology.run() as running:
        await running.finished()
    assert sim.now == pytest.approx(1)
    assert 0.2 <= due[0] <= 1.01


def test_an_endless_source(inner: pytest.Pytester) -> None:
    """An endless source before bolts that await nothing never lets it pass: `Livelock` then names the tasks that are
    always ready and, in a marked test and in `complete`, the spouts that have not ended, after half a million rounds of
    the loop.
    """
    assert SimulatedLoop.longest_moment == 500_000
    result = run(
        inner,
        """
        from itertools import count
        from stormlet import Topology
        from stormlet.testing import SimulatedLoop

        @pytest.mark.simulated_time
        async def test_it(monkeypatch):
            monkeypatch.setattr(SimulatedLoop, "longest_moment", 5_000)
            topology = Topology("endless")
            topology.bolt("ignore", lambda number: None, topology.spout("numbers", count()).shuffle())
            async with topology.run():
                await asyncio.sleep(1)
        """,
    )
    result.stdout.fnmatch_lines(["E*Livelock: *, for endless/numbers*endless/ignore*"])
    result.stdout.fnmatch_lines(["*spout 'numbers' has not ended; give it values with sources=*"])
