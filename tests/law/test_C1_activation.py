"""Runs that are activated and deactivated (law C1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from stormlet import Spout, SpoutCollector, Topology
from stormlet.errors import EndOfStream
from tests.cast import Slow, ignore
from tests.helpers import now
from tests.law.calls import Log, logged_spout


@pytest.mark.simulated_time
async def test_C1_an_inactive_run_asks_no_spout_before_activate() -> None:
    """With ``active=False`` spouts are opened, but neither activated nor asked."""
    log: Log = []
    topology = Topology("inactive", max_spout_pending=1)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("spout", logged_spout(log)).shuffle())
    async with topology.run(active=False) as running:
        await asyncio.sleep(10)
        assert log == ["spout open"]
        running.activate()
        await asyncio.sleep(1)
        assert log == ["spout open", "spout activate", "spout next_tuple"]


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_C1_an_inactive_run_advances_no_generator(asynchronous: bool) -> None:
    """A generator is not begun before ``activate``."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        taken.append(1)
        yield 1

    async def numbers_async() -> AsyncIterator[int]:
        for number in numbers():
            yield number

    topology = Topology("inactive")
    source = topology.spout("numbers", numbers_async if asynchronous else numbers)
    topology.bolt("ignore", ignore, source.shuffle())
    async with topology.run(active=False) as running:
        await asyncio.sleep(10)
        assert taken == []
        running.activate()
        await running.finished()
    assert taken == [1]


@pytest.mark.simulated_time
async def test_C1_deactivate_stops_the_asking_and_lets_the_rest_be_processed() -> None:
    """What is under way is acked; nothing new comes until the run is activated again."""
    log: Log = []
    topology = Topology("switch", max_spout_pending=1)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("spout", logged_spout(log)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.deactivate()
        await asyncio.sleep(20)
        assert log == ["spout open", "spout activate", "spout next_tuple", "spout deactivate"]
        assert running.statistics().components["spout"].acked == 1
        running.activate()
        await asyncio.sleep(1)
        assert log[4:] == ["spout activate", "spout next_tuple"]


@pytest.mark.simulated_time
async def test_C1_deactivate_interrupts_an_asynchronous_next_tuple() -> None:
    """It is cancelled at its await and not called again before ``activate``."""
    asked: list[float] = []

    class Sleeping(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            asked.append(now())
            await asyncio.get_running_loop().create_future()

        async def deactivate(self) -> None:
            await asyncio.sleep(1)
            asked.append(-now())

    topology = Topology("sleeping")
    topology.spout("sleeping", Sleeping)
    async with topology.run() as running:
        await asyncio.sleep(5)
        running.deactivate()
        await asyncio.sleep(5)
        running.activate()
        await asyncio.sleep(5)
    assert asked == [0, -6, 10]


@pytest.mark.simulated_time
@pytest.mark.parametrize("method", ["next_tuple", "ack"])
async def test_C1_a_spout_that_deactivates_is_not_asked_again(method: str) -> None:
    """Neither later in the same turn, nor after the outcome that it was told between two calls."""
    asked: list[float] = []

    class Switching(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if len(asked) == 102:
                raise EndOfStream
            asked.append(now())
            out.emit(1, message_id=len(asked))
            self.heard("next_tuple", len(asked))

        def ack(self, message_id: object) -> None:
            self.heard("ack", message_id)

        def heard(self, what: str, message_id: object) -> None:
            if (what, message_id) == (method, 100):
                running.deactivate()

    topology = Topology("switching", ackers=0)
    topology.bolt("ignore", ignore, topology.spout("switching", Switching).shuffle())
    async with topology.run(active=False) as running:
        running.activate()
        await asyncio.sleep(10)
        assert asked == [0] * 100
        running.activate()
        await running.finished()
    assert asked == [0] * 100 + [10] * 2


@pytest.mark.simulated_time
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_C1_a_generator_that_deactivates_is_not_advanced_again(asynchronous: bool) -> None:
    """What it yields then is the last."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(300):
            taken.append(number)
            if number % 100 == 99:
                running.deactivate()
            yield number

    async def numbers_async() -> AsyncIterator[int]:
        for number in numbers():
            yield number

    topology = Topology("switching")
    source = topology.spout("numbers", numbers_async if asynchronous else numbers)
    topology.bolt("ignore", ignore, source.shuffle())
    async with topology.run(active=False) as running:
        for asked in (100, 200, 300):
            running.activate()
            await asyncio.sleep(10)
            assert len(taken) == asked


@pytest.mark.simulated_time
async def test_C1_an_asynchronous_next_tuple_may_deactivate() -> None:
    """Nothing of it is cancelled but an await that it begins after that; what it emitted stands, and nobody dies."""
    done: list[str] = []

    class Switching(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            await asyncio.sleep(1)
            out.emit(1, message_id=len(done))
            running.deactivate()
            if len(done) > 10:
                await asyncio.sleep(1)
            done.append("next_tuple")

        async def ack(self, message_id: object) -> None:
            await asyncio.sleep(0.1)
            done.append("ack")

        async def deactivate(self) -> None:
            await asyncio.sleep(0.1)
            done.append("deactivate")

    topology = Topology("switching")
    topology.bolt("ignore", ignore, topology.spout("switching", Switching).shuffle())
    async with topology.run(active=False) as running:
        for _ in range(5):
            running.activate()
            await asyncio.sleep(10)
        statistics = running.statistics().components["switching"]
    assert (statistics.acked, statistics.restarts) == (5, 0)
    assert sorted(done) == ["ack"] * 5 + ["deactivate"] * 5 + ["next_tuple"] * 4


@pytest.mark.simulated_time
async def test_C1_activate_and_deactivate_are_told_in_turn() -> None:
    """Who is switched there and back before it could be told hears nothing."""
    told: list[str] = []

    class Hearing(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            """Nothing comes."""

        def activate(self) -> None:
            told.append("activate")

        def deactivate(self) -> None:
            told.append("deactivate")

    topology = Topology("hearing")
    topology.bolt("ignore", ignore, topology.spout("hearing", Hearing).shuffle())
    async with topology.run(active=False) as running:
        running.activate()
        running.deactivate()
        await asyncio.sleep(1)
        assert told == []
        running.activate()
        running.deactivate()
        running.activate()
        await asyncio.sleep(1)
        assert told == ["activate"]
        running.deactivate()
        await asyncio.sleep(1)
    assert told == ["activate", "deactivate"]
