"""Messages that wait to be emitted again (law S6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from stormlet import Failure, FailureKind, Topology
from stormlet.core.retries import ReplayPolicy
from stormlet.core.tuples import PLAIN
from stormlet.runtime.spout.messages import Message
from stormlet.runtime.spout.replays import Replays
from stormlet.testing import SimulatedLoop
from tests.helpers import now, run_to_end

pytestmark = pytest.mark.simulated_time

AGAIN = Failure(FailureKind.FAILED)


def call(step: Callable[[], None]) -> None:
    step()


class NoJitter(Random):
    """Stretches no pause."""

    def random(self) -> float:
        return 0.0


class Waiting:
    """Replays after 1, 2, 4 and at most 8 seconds, and when they said that something had come due."""

    def __init__(self) -> None:
        self.told: list[float] = []
        policy = ReplayPolicy(first_pause=1.0, longest_pause=8.0)
        self.replays = Replays(asyncio.get_running_loop(), policy, NoJitter(), self._came_due, call)

    def _came_due(self) -> None:
        self.told.append(now())

    def add(self, value: str, failures: int = 1) -> None:
        message = Message(value, "default", None, PLAIN)
        for _ in range(failures):
            message.failed(AGAIN, counts=True)
        self.replays.add(message)

    @property
    def due(self) -> list[object]:
        return [message.value for message in self.replays.due]

    @property
    def all(self) -> list[tuple[float, object]]:
        return [(when, message.value) for when, message in self.replays]


async def test_the_pause_grows_with_the_failures() -> None:
    """What failed more often waits longer, and nothing longer than the longest pause."""
    waiting = Waiting()
    for failures in (5, 3, 2, 1, 4):
        waiting.add(str(failures), failures)
    await asyncio.sleep(9)
    assert waiting.due == ["1", "2", "3", "5", "4"]
    assert waiting.told == [1, 2, 4, 8]


async def test_it_is_told_once_for_all_that_come_due_at_a_moment() -> None:
    """They come in the order in which they began to wait."""
    waiting = Waiting()
    for value in "abc":
        waiting.add(value)
    await asyncio.sleep(1.5)
    assert (waiting.due, waiting.told) == (["a", "b", "c"], [1])


async def test_many_that_are_added_at_a_time_need_few_timers() -> None:
    """In an outage all that are pending wait, and the timer of the first one is enough for those that come later."""
    waiting, loop = Waiting(), asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    for number in range(1000):
        waiting.add(str(number), failures=1 + number % 4)
    assert len(loop._scheduled) == 1  # pyright: ignore[reportPrivateUsage] - nobody else tells
    await asyncio.sleep(9)
    assert (len(waiting.due), waiting.told) == (1000, [1, 2, 4, 8])


async def test_what_begins_to_wait_later_may_come_first() -> None:
    """The timer is for the first one, whenever that was added."""
    waiting = Waiting()
    waiting.add("slow", failures=3)
    await asyncio.sleep(1)
    waiting.add("fast")
    await asyncio.sleep(1)
    assert (waiting.due, waiting.told) == (["fast"], [2])
    await asyncio.sleep(2)
    assert (waiting.due, waiting.told) == (["fast", "slow"], [2, 4])


async def test_all_of_them_are_seen_in_their_order() -> None:
    """Those that are due first; of the others, when they will be."""
    waiting = Waiting()
    waiting.add("slow", failures=3)
    waiting.add("due")
    waiting.add("slow too", failures=3)
    waiting.add("fast", failures=2)
    await asyncio.sleep(1)
    assert waiting.all == [(0, "due"), (2, "fast"), (4, "slow"), (4, "slow too")]
    assert len(waiting.replays) == 4


async def test_all_can_be_taken() -> None:
    """Due or not, each is taken once; none comes due afterwards, and others may wait again."""
    waiting = Waiting()
    waiting.add("slow", failures=2)
    waiting.add("due")
    await asyncio.sleep(1)
    assert [message.value for message in waiting.replays.take_all()] == ["due", "slow"]
    assert waiting.replays.take_all() == []
    waiting.add("other", failures=2)
    assert waiting.all == [(3, "other")]
    await asyncio.sleep(10)
    assert waiting.due == ["other"]


async def test_nothing_comes_due_after_the_end() -> None:
    """A task that has ended is not woken any more; what still waits can be taken."""
    waiting = Waiting()
    waiting.add("late")
    waiting.replays.close()
    await asyncio.sleep(10)
    assert (waiting.due, waiting.told) == ([], [])
    assert [message.value for message in waiting.replays.take_all()] == ["late"]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_an_emit_that_raises_changes_nothing_in_the_order() -> None:
    """What could not be emitted stays the first, and those behind it wait for the restarted task with it."""
    executed: list[str] = []
    calls: list[str] = []

    def key(value: str) -> str:
        calls.append(value)
        if calls.count("a") == 2:
            raise LookupError(value)
        return value

    def fail_first(value: str) -> None:
        executed.append(value)
        if executed.count(value) == 1:
            raise ValueError(value)

    topology = Topology("order", replay_delay=0.0, replay_delay_max=0.0)
    topology.bolt("bolt", fail_first, topology.spout("source", ["a", "b", "c"]).fields(key))
    running = await run_to_end(topology)
    assert executed == ["a", "b", "c"] * 2
    assert calls == ["a", "b", "c", "a", "a", "b", "c"]
    source = running.statistics().components["source"]
    assert (source.acked, source.replayed, source.restarts) == (3, 3, 1)
