"""The end of a finite run (law S5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from stormlet import BasicBolt, Collector, Spout, SpoutCollector, Topology, Tuple
from stormlet.errors import EndOfStream
from tests.cast import AckLater, Counting, Untracked, ignore
from tests.engines import Engine
from tests.helpers import now
from tests.law.failing import failing_first
from tests.law.puppets import BRIEFLY


@pytest.mark.simulated_time
async def test_S5_a_source_that_can_still_yield_is_waited_for() -> None:
    """A run is not finished while a generator sleeps before its last value."""

    async def late() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(50)
        yield 2

    topology = Topology("late")
    topology.bolt("ignore", ignore, topology.spout("late", late).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        asked_early = asyncio.ensure_future(running.finished())
        await asyncio.sleep(1)
        await running.finished()
        await asked_early
        assert now() == 50
        assert running.statistics().components["ignore"].executed == 2


@pytest.mark.simulated_time
async def test_S5_a_polled_spout_that_has_not_ended_is_waited_for() -> None:
    """A synchronous spout that is idle for now keeps the run open until it raises EndOfStream."""

    class Idle(Spout[int]):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if now() >= 50:
                raise EndOfStream

    topology = Topology("idle")
    topology.spout("idle", Idle)
    async with topology.run() as running:
        await running.finished()
        assert 50 <= now() <= 50.1


@pytest.mark.simulated_time
async def test_S5_an_open_tree_is_waited_for(engine: Engine) -> None:
    """A run is not finished before an input that a bolt keeps is acked."""
    topology = Topology("keep")
    topology.bolt("keep", partial(AckLater, 20), topology.spout("one", [1]).shuffle())
    ended = await engine.run_to_end(topology)
    assert (now(), ended.statistics().components["one"].acked) == (20, 1)


@pytest.mark.simulated_time
async def test_S5_a_replay_is_waited_for(engine: Engine) -> None:
    """A run is not finished while what failed waits to be executed again."""
    topology = Topology("replay", replay_delay=20.0)
    topology.bolt("fail", failing_first(1), topology.spout("one", [1]).shuffle())
    ended = await engine.run_to_end(topology)
    assert now() >= 20
    assert ended.statistics().components["one"].acked == 1


@pytest.mark.simulated_time
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_S5_queued_tuples_and_running_calls_are_waited_for(concurrency: int) -> None:
    """Untracked tuples have no tree, and yet a run is finished only when the last one is processed."""
    done: list[float] = []

    async def slow(value: int) -> None:
        await asyncio.sleep(7)
        done.append(now())

    topology = Topology("untracked")
    topology.bolt("slow", slow, topology.spout("untracked", Untracked).shuffle(), concurrency=concurrency)
    async with topology.run() as running:
        await asyncio.sleep(1)
        asked_early = asyncio.ensure_future(running.finished())
        await asyncio.sleep(1)
        await running.finished()
        await asked_early
        assert len(done) == 3
        assert now() == done[-1]


@pytest.mark.simulated_time
async def test_S5_a_running_ack_is_waited_for() -> None:
    """A run is not finished while the user's ``ack`` is suspended."""

    class Slow(Counting):
        count = 1

        async def ack(self, message_id: object) -> None:
            await asyncio.sleep(5)

    topology = Topology("slow")
    topology.bolt("ignore", ignore, topology.spout("slow", Slow).shuffle())
    async with topology.run() as running:
        await running.finished()
        assert now() == 5


@pytest.mark.simulated_time
async def test_S5_what_is_not_flushed_yet_is_waited_for() -> None:
    """An emit from a callback of the host, in the very moment of the question, is processed first."""
    seen: list[str] = []
    collectors: list[Collector[str]] = []

    class Keep(BasicBolt[str, str]):
        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            collectors.append(out)

    topology = Topology("callback")
    kept = topology.bolt("keep", Keep, topology.spout("one", ["one"]).shuffle())
    topology.bolt("note", seen.append, kept.shuffle())
    async with topology.run() as running:
        await running.finished()
        asyncio.get_running_loop().call_soon(lambda: collectors[0].emit("from outside", anchors=()))
        await running.finished()
        assert seen == ["from outside"]


@pytest.mark.simulated_time
async def test_S5_a_spout_without_source_has_ended_only_while_draining() -> None:
    """A run that the host feeds goes on when everything is settled, until a stop is requested."""
    topology = Topology("fed")
    spout = topology.spout("fed", outputs=int)
    topology.bolt("ignore", ignore, spout.shuffle())
    async with topology.run() as running:
        await (await running.emit(spout, 1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.finished(), 1000)
        running.stop()
        await asyncio.wait_for(running.finished(), BRIEFLY)


@pytest.mark.simulated_time
async def test_S5_an_empty_run_is_finished_at_once(engine: Engine) -> None:
    """Where no source yields anything, nothing is waited for."""
    topology = Topology("empty")
    topology.bolt("ignore", ignore, topology.spout("empty", []).shuffle())
    await engine.run_to_end(topology)
    assert now() == 0
