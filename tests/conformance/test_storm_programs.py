"""What small programs do otherwise here than in Storm 2.8.3, where 39 of them were run beside these: P1 to P7.

The others do the same in both, or are among the cases of the other lists.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from stormlet import (
    Bolt,
    Collector,
    InvalidTopology,
    Spout,
    SpoutCollector,
    Topology,
    TopologyCrashed,
    Tuple,
    UnroutableKey,
)
from stormlet.errors import EndOfStream
from tests.cast import Ack, Feeder, given
from tests.conformance.kit import A_MOMENT, Numbers, TaskIndex, collect, mocked, one_bolt, until
from tests.engines import Engine
from tests.helpers import run_to_end


@pytest.mark.simulated_time
async def test_P2_two_subscriptions_to_one_stream_both_hold(engine: Engine) -> None:
    """Shuffled to one of two tasks, and sent to both: three executions, where in Storm the last one alone holds."""
    topology = Topology("P2")
    values = topology.spout("1", mocked("x"))
    indexes = topology.bolt("2", TaskIndex, values.shuffle(), values.all(), parallelism=2)
    seen = collect(topology, indexes)
    running = await engine.run_to_end(topology)
    assert sorted(Counter(seen).values()) == [1, 2]
    assert running.statistics().components["1"].acked == 1


def test_P3_a_bolt_without_inputs_is_refused() -> None:
    """It could never do anything, not even tick before the topology ends."""
    with pytest.raises(InvalidTopology, match="bolt 'b1' has no input; subscribe it to a stream"):
        Topology("P3").bolt("b1", Ack)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


@pytest.mark.simulated_time
@pytest.mark.parametrize(("idle_max", "least", "most"), [(0.1, 100, 110), (0.001, 9_000, 10_001)])
async def test_P4_an_idle_spout_is_asked_less_and_less(idle_max: float, least: int, most: int) -> None:
    """In ten seconds about a hundred times, where Storm asks ten thousand times; ``idle_max`` decides, and whoever
    feeds it from outside calls ``out.wake()``."""
    feeder = Feeder()
    async with one_bolt(feeder, Ack, idle_max=idle_max).run():
        await until(10)
        assert least <= len(feeder.asked) <= most
        feeder.feed("x", 1)
        await until(10 + A_MOMENT)
        assert feeder.acked == [1]


class InTurn:
    """A custom grouping that deals to its targets in turn."""

    def __init__(self) -> None:
        self.prepared = 0
        self.turn = 0

    def prepare(self, targets: Sequence[int]) -> None:
        self.prepared += 1
        self.targets = targets

    def choose(self, value: object) -> Sequence[int]:
        self.turn += 1
        return [self.targets[self.turn % len(self.targets)]]


@pytest.mark.simulated_time
async def test_P5_one_object_groups_for_all_tasks_of_the_producer() -> None:
    """What it counts, it counts for both: in Storm each of them has a copy of its own."""
    topology, grouping = Topology("P5"), InTurn()

    class Three(Spout[int]):
        def __init__(self) -> None:
            self.left = 3

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if not self.left:
                raise EndOfStream
            self.left -= 1
            out.emit(self.left)

    values = topology.spout("1", Three, parallelism=2)
    topology.bolt("2", Ack, values.custom(grouping), parallelism=2)
    running = await run_to_end(topology)
    assert (grouping.prepared, grouping.turn) == (2, 6)
    tasks = running.statistics().components["2"].tasks
    assert tasks is not None
    assert [each.executed for each in tasks.values()] == [3, 3]


class Word:
    """A key with an equality and a hash of its own, which differ between two processes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@pytest.mark.simulated_time
async def test_P6_an_object_is_no_key_whatever_its_hash_says(engine: Engine) -> None:
    """``hash`` of a str is another number in every process; a key function gives what it is made of."""
    topology = Topology("P6", max_restarts=0)
    topology.bolt("2", Ack, topology.spout("1", mocked(Word("a"))).fields(), parallelism=2)
    with pytest.raises(TopologyCrashed, match=r"a key of type \S*Word has no stable hash") as crash:
        await engine.run_to_end(topology)
    assert isinstance(crash.value.__cause__, UnroutableKey)

    by_text = Topology("P6")
    words = by_text.spout("1", mocked(Word("a"), Word("a"), Word("a")))
    by_text.bolt("2", Ack, words.fields(lambda word: word.text), parallelism=2)
    tasks = (await engine.run_to_end(by_text)).statistics().components["2"].tasks
    assert tasks is not None
    assert sorted(each.executed for each in tasks.values()) == [0, 3]


class RaisesOnce(Bolt[Any, None]):
    """Raises at its first input, and acks the others."""

    raised = False

    def execute(self, tup: Tuple[Any], out: Collector[None]) -> None:
        if not self.raised:
            self.raised = True
            raise LookupError(tup.value)
        out.ack(tup)


class DiesOnce(Numbers):
    """Raises in its second ``next_tuple``."""

    died = False

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        if self.emitted == 1 and not self.died:
            self.died = True
            raise LookupError
        super().next_tuple(out)


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
async def test_P7_what_raises_takes_nothing_else_down() -> None:
    """The input of a bolt fails and the bolt goes on; a spout is restarted; the host and its other topologies notice
    nothing, where in Storm the worker dies."""
    raising, dying, other = Numbers(last=2), DiesOnce(last=2), Feeder()
    bolt = RaisesOnce()
    async with one_bolt(other, Ack).run() as beside:
        at_bolt = await run_to_end(one_bolt(raising, given(bolt)))
        at_spout = await run_to_end(one_bolt(dying, Ack))
        other.feed("x", 1)
        await asyncio.sleep(1)
        assert other.acked == [1]
        assert beside.failures() == ()
    assert (raising.failed, raising.acked) == ([0], [1, 2])
    assert at_bolt.statistics().components["b1"].restarts == 0
    assert (dying.failed, dying.acked) == ([0], [1, 2])
    assert at_spout.statistics().components["s1"].restarts == 1
