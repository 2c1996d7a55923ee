"""The page "Testing your topology": ``complete``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    EndOfStream,
    KeyedBolt,
    Spout,
    SpoutCollector,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.testing import Ack, Fail, NotCompleted, ScriptedBolt, Simulation, complete, complete_async
from tests.helpers import now


def numbers() -> Topology:
    """An endless source and a bolt that takes a second for each number."""

    async def wait(number: int) -> int:
        await asyncio.sleep(1)
        return -number

    topology = Topology("numbers")
    topology.bolt("wait", wait, topology.spout("numbers", count()).shuffle())
    return topology


def test_complete(orders: Any) -> None:
    """`complete` puts given values in the place of spouts, runs until everything is settled, and returns what happened.
    It is a plain call, in any test runner;
    """
    result = complete(orders.billing(), {"lines": ["ann tea 2", "nonsense"]})
    assert (result.acked, result.failed) == (["ann tea 2"], ["nonsense"])
    assert sum(each.pending for each in result.statistics.components.values()) == 0


@pytest.mark.simulated_time
async def test_complete_async(sim: Simulation) -> None:
    """in a coroutine, await `complete_async`, which runs on the loop of the test."""
    with pytest.raises(RuntimeError, match="await complete_async"):
        complete(numbers(), {"numbers": [1, 2]})
    result = await complete_async(numbers(), {"numbers": [1, 2]})
    assert (result["wait"], sim.now) == ([-1, -2], 2.0)


class Sorts(BasicBolt[int, int]):
    """Odd numbers go to a stream of their own."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value, stream="odd" if tup.value % 2 else "default")


def test_what_was_emitted() -> None:
    """`result["price"]` has the values of the component's default stream, `result.emitted("price", "errors")` those of
    another one, and `result.emitted(stream)` or `result[stream]` those of a stream as `topology.bolt(...)` returned it,
    with its type. Streams that nobody subscribes to are there too. `result.emissions` has all of them, with task,
    method and moment.
    """
    topology = Topology("sorts")
    given = topology.spout("given", [1, 2, 3])
    even = topology.bolt("sorts", Sorts, given.shuffle(), outputs={"default": int, "odd": int})
    result = complete(topology)
    assert result["sorts"] == result.emitted(even) == result[even] == [2]
    assert result.emitted("sorts", "odd") == [1, 3]
    (two,) = [each for each in result.emissions if each.component == "sorts" and each.value == 2]
    assert (two.task, two.during, two.at) == (3, "execute", 0.0)


def generator() -> Iterator[int]:
    yield 1


class One(Spout[int]):
    """Emits 1, once in all tasks, of which it counts the instances."""

    tasks = 0

    def open(self, context: Any, out: SpoutCollector[int]) -> None:
        One.tasks += 1
        self.left = [1]

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        out.emit(self.left.pop(), message_id="one")


def test_sources() -> None:
    """A source for a test may be anything that a spout takes: a list, a generator function, a class. It has one task
    where several could not share it. A spout that is not named keeps its source, and one that only `running.emit` feeds
    is silent.
    """
    topology = Topology("sources")
    real = topology.spout("real", One, parallelism=3)
    kept, fed = topology.spout("kept", ["kept"]), topology.spout("fed")
    topology.bolt("all", str, real.shuffle(), kept.shuffle(), fed.shuffle())
    for source in ([1], generator):
        assert sorted(complete(topology, {"real": source})["all"]) == ["1", "kept"]
    One.tasks = 0
    assert sorted(complete(topology, {"fed": One})["all"]) == ["1", "1", "1", "1", "kept"]
    assert One.tasks == 3 + 1


def test_replays() -> None:
    """Messages are replayed as always: `result.outcome(value)` has every attempt in `history`, and options for the run
    are keywords, such as `max_attempts=1` or `message_timeout=None`.
    """
    topology = Topology("replays")
    topology.bolt(
        "bolt", ScriptedBolt({1: [Fail("one"), Fail("two"), Ack()]}), topology.spout("fed").shuffle()
    )
    assert [each.reason for each in complete(topology, {"fed": [1]}).outcome(1).history] == ["one", "two"]

    topology = Topology("replays")
    topology.bolt("bolt", ScriptedBolt({1: [Fail("one"), Ack()]}), topology.spout("fed").shuffle())
    assert complete(topology, {"fed": [1]}, max_attempts=1, message_timeout=None).failed == [1]


class Total(KeyedBolt[str, str, int]):
    """Counts words."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[int]) -> None:
        self.total += 1
        out.emit(self.total)


def test_state_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topology with state has a store in memory for this run, whatever file it names; `state=` names another one."""
    monkeypatch.chdir(tmp_path)
    topology = Topology("counting", state="counts.state")
    topology.bolt("count", Total, topology.spout("words").fields())
    for _ in range(2):
        assert complete(topology, {"words": ["a", "a"]})["count"] == [1, 2]
    assert not [*tmp_path.iterdir()]
    for expected in ([1], []):
        assert complete(topology, {"words": ["a"]}, state="other.state")["count"] == expected


def test_endless_sources() -> None:
    """A source that never ends is stopped after `time_limit` seconds of simulated time, a day, with an error that names
    it.
    """
    with pytest.raises(NotCompleted, match=r"was not done after 100 s:\n  spout 'numbers' has not ended"):
        complete(numbers(), time_limit=100.0)

    async def hourly() -> AsyncIterator[int]:
        while True:
            await asyncio.sleep(3600)
            yield 1

    with pytest.raises(NotCompleted, match="was not done after 86400 s"):
        complete(numbers(), {"numbers": hourly})


def test_sources_that_never_wait() -> None:
    """One that never waits either keeps time from passing: give values for it."""
    moments: list[float] = []

    def enough(number: int) -> None:
        moments.append(now())
        if number == 20_000:
            raise StopAsyncIteration("that is enough")

    topology = Topology("never waits")
    topology.bolt("enough", enough, topology.spout("numbers", count()).shuffle(), on_error="stop")
    with pytest.raises(TopologyCrashed, match="that is enough"):
        complete(topology, time_limit=0.001)
    assert set(moments) == {0.0}
    assert complete(topology, {"numbers": [1]}).acked == [1]


@pytest.mark.simulated_time
async def test_sources_of_a_run() -> None:
    """`topology.run(sources=...)` takes the same sources, for tests that need the running topology."""
    async with numbers().run(sources={"numbers": [1, 2]}) as running:
        await running.finished()
        assert running.statistics().components["wait"].acked == 2
