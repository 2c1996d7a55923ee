"""The bounds within which a spout is asked for tuples (law S3)."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from stormlet import Spout, SpoutCollector, Topology
from stormlet.errors import EndOfStream
from tests.cast import Forget, Slow, ignore, take_a_second
from tests.helpers import now, run_to_end
from tests.law.failing import failing_first
from tests.law.puppets import BRIEFLY


def pending_when_asked(per_call: int, count: int = 60) -> tuple[type[Spout[int]], list[int]]:
    """A spout class that emits so many messages per call, and what was pending whenever it was asked."""
    asked: list[int] = []

    class Asked(Spout[int]):
        emitted = 0

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            asked.append(out.pending)
            if self.emitted >= count:
                raise EndOfStream
            for _ in range(per_call):
                out.emit(self.emitted, message_id=self.emitted)
                self.emitted += 1

    return Asked, asked


@pytest.mark.simulated_time
@pytest.mark.parametrize("per_call", [1, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_S3_a_spout_is_asked_only_below_max_spout_pending(per_call: int, seed: int) -> None:
    """However much one call emits, the next one comes when fewer than max_spout_pending are pending."""
    spout, asked = pending_when_asked(per_call)

    topology = Topology("asked", max_spout_pending=7)
    topology.bolt("slow", partial(Slow, 0.1), topology.spout("numbers", spout).shuffle())
    await run_to_end(topology, seed=seed)
    assert max(asked) < 7


@pytest.mark.simulated_time
async def test_S3_an_asynchronous_next_tuple_is_asked_only_below_max_spout_pending() -> None:
    """It is not called again before one of its two pending messages is acked."""
    times: list[float] = []

    class Asked(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            times.append(now())
            if len(times) > 4:
                raise EndOfStream
            out.emit(1, message_id=len(times))

    topology = Topology("asked", max_spout_pending=2)
    topology.bolt("slow", take_a_second, topology.spout("numbers", Asked).shuffle())
    await run_to_end(topology)
    assert times == [0, 0, 1, 2, 3]


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_S3_a_generator_is_advanced_only_below_max_spout_pending(asynchronous: bool) -> None:
    """Of endless sources, two values are taken when two may be pending and none is acked."""
    taken: list[int] = []

    def endless() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            yield number

    async def endless_async() -> AsyncIterator[int]:
        for number in endless():
            yield number

    topology = Topology("endless", max_spout_pending=2, message_timeout=None, drain_timeout=0.1)
    spout = topology.spout("endless", endless_async if asynchronous else endless)
    topology.bolt("hold", Forget, spout.shuffle())
    async with topology.run():
        await asyncio.sleep(BRIEFLY)
        assert taken == [0, 1]


@pytest.mark.simulated_time
async def test_S3_the_default_is_1000() -> None:
    """Without an option, the 1000th unacked message is the last one."""
    topology = Topology("default", message_timeout=None, drain_timeout=0.1)
    topology.bolt("hold", Forget, topology.spout("endless", itertools.count()).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(BRIEFLY)
        assert running.statistics().components["endless"].pending == 1000


@pytest.mark.simulated_time
async def test_S3_none_is_unlimited() -> None:
    """With ``max_spout_pending=None`` as many are pending as the source yields."""
    topology = Topology("unlimited", max_spout_pending=None, message_timeout=None, drain_timeout=0.1)
    topology.bolt("hold", Forget, topology.spout("numbers", range(2500)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(BRIEFLY)
        assert running.statistics().components["numbers"].pending == 2500


@pytest.mark.simulated_time
async def test_S3_waiting_replays_count_as_pending() -> None:
    """While the only message that may be pending waits for its replay, no other one is taken."""
    times: dict[int, float] = {}

    def numbers() -> Iterator[int]:
        for number in range(2):
            times[number] = now()
            yield number

    topology = Topology("replays", max_spout_pending=1, replay_delay=10.0)
    topology.bolt("fail", failing_first(1), topology.spout("numbers", numbers).shuffle())
    await run_to_end(topology)
    assert times[0] == 0
    assert times[1] >= 10


@pytest.mark.simulated_time
async def test_S3_a_spout_is_asked_only_while_every_queue_it_feeds_has_room() -> None:
    """One blocked consumer of two stops the spout when its queue is full, though the other one is idle."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    topology = Topology("queues", queue_capacity=3)
    spout = topology.spout("numbers", numbers)
    topology.bolt("stuck", partial(Slow, 10), spout.shuffle())
    topology.bolt("free", ignore, spout.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(BRIEFLY)
        assert len(taken) <= 2 * 3
        await running.finished()
    assert len(taken) == 100


@pytest.mark.simulated_time
async def test_S3_a_queue_that_another_task_has_filled_counts_too() -> None:
    """A polled spout that never emitted anything is not asked while another one keeps the queue full."""
    asked: list[float] = []

    class Asked(Spout[str]):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            asked.append(now())

    topology = Topology("shared", queue_capacity=2)
    filling, polled = topology.spout("filling", ["x"] * 4), topology.spout("polled", Asked)
    topology.bolt("stuck", partial(Slow, 10), filling.shuffle(), polled.shuffle())
    async with topology.run():
        await asyncio.sleep(30)
    assert not [time for time in asked if 0 < time < 20]
    assert [time for time in asked if time > 20]


@pytest.mark.simulated_time
@pytest.mark.parametrize("seed", range(4))
async def test_S3_messages_of_the_host_count_as_pending(seed: int) -> None:
    """While a generator is awaited, the host takes the room that it was asked to fill; then it must wait."""

    async def slow() -> AsyncIterator[int]:
        for number in itertools.count():
            await asyncio.sleep(1)
            yield number

    topology = Topology("both", max_spout_pending=8, message_timeout=None, drain_timeout=0.1)
    spout = topology.spout("slow", slow)
    topology.bolt("hold", Forget, spout.shuffle())
    async with topology.run(seed=seed) as running:
        await asyncio.sleep(1.5)
        for _ in range(6):
            await running.emit(spout, -1)
        await asyncio.sleep(20)
        assert running.statistics().components["slow"].pending == 8


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_S3_replays_wait_for_room_that_others_take(asynchronous: bool) -> None:
    """Messages that are due come through a queue that another spout fills again and again."""
    attempts = defaultdict[str, int](int)

    async def never() -> AsyncIterator[str]:
        for value in ("a", "b", "c"):
            yield value
        await asyncio.sleep(200)

    class Others(Spout[str]):
        def next_tuple(self, out: SpoutCollector[str]) -> None:
            out.emit("other")

    async def fail_first(value: str) -> None:
        attempts[value] += 1
        await asyncio.sleep(1)
        if value != "other" and attempts[value] == 1:
            raise ValueError(value)

    topology = Topology("others", queue_capacity=1, replay_delay=0.0)
    failing = topology.spout("failing", never if asynchronous else ["a", "b", "c"])
    topology.bolt("slow", fail_first, failing.shuffle(), topology.spout("others", Others).shuffle())
    async with topology.run():
        await asyncio.sleep(100)
        assert [attempts[value] for value in "abc"] == [2, 2, 2]


async def ten_of_them() -> AsyncIterator[int]:
    for number in range(10):
        yield number


class Ten(Spout[int]):
    """Emits ten messages."""

    def __init__(self) -> None:
        self._left = 10

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self._left:
            raise EndOfStream
        self._left -= 1
        out.emit(self._left, message_id=self._left)


@pytest.mark.simulated_time
@pytest.mark.parametrize("source", [partial(range, 10), ten_of_them, Ten])
@pytest.mark.parametrize("most", [1, 3])
async def test_S3_a_spout_goes_on_when_messages_of_the_host_make_room(source: Any, most: int) -> None:
    """They have taken all of it, so that nothing else can wake the spout."""
    topology = Topology("host", max_spout_pending=most)
    spout = topology.spout("spout", source() if isinstance(source, partial) else source)
    topology.bolt("bolt", take_a_second, spout.shuffle())
    async with topology.run(active=False) as running:
        trees = [await running.emit(spout, number) for number in range(most)]
        running.activate()
        assert [await tree for tree in trees] == [[]] * most
        await running.finished()
    assert running.statistics().components["spout"].acked == 10 + most
