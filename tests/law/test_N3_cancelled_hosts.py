"""Hosts, ends and drains that are cancelled (law N3)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from stormlet import Collector, DeadLetter, Running, StrayCancellation, Topology, TopologyCrashed, Tuple, run
from tests.cast import raise_value_error, take_a_second
from tests.helpers import now, run_to_end
from tests.law.cancelled import Polled, SlowToStart, cancel, cancelling, conserved, slow_topology


@cancelling
@pytest.mark.parametrize("pause", [0.0, 0.5])
async def test_N3_a_drain_that_somebody_cancels_crashes_the_topology(pause: float) -> None:
    """Else what it leaves over would pass for what was asked for."""
    block = slow_topology().run()
    running = await block.__aenter__()
    running.stop()
    asyncio.get_running_loop().call_later(pause, cancel, "t drain")
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(100)
    with pytest.raises(TopologyCrashed, match="the drain") as caught:
        await block.__aexit__(None, None, None)
    assert isinstance(caught.value.__cause__, StrayCancellation)
    assert conserved(running)


@cancelling
async def test_N3_an_end_that_somebody_cancels_ends_all_the_same() -> None:
    """Also before its first step, and the host does not hear of it."""
    loop = asyncio.get_running_loop()
    block = slow_topology().run()
    running = await block.__aenter__()
    await asyncio.sleep(0.5)
    loop.call_soon(cancel, "t end")
    await block.__aexit__(KeyError, KeyError(), None)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert conserved(running)


class Stubborn(SlowToStart):
    """Goes on for a while with a call that is cancelled."""

    cleaned: ClassVar[list[float]] = []

    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:  # type: ignore[override]
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        await asyncio.sleep(3)

    async def cleanup(self) -> None:
        self.cleaned.append(now())


@cancelling
async def test_N3_a_task_that_is_cancelled_while_it_ends_cleans_up() -> None:
    """After all of its calls."""
    Stubborn.cleaned.clear()
    topology = Topology("t")
    topology.bolt("slow", Stubborn, topology.spout("spout", range(2)).shuffle(), concurrency=2)
    with suppress(KeyError):
        async with topology.run():
            await asyncio.sleep(1)
            asyncio.get_running_loop().call_later(1, cancel, "t/slow[0]")
            raise KeyError
    assert Stubborn.cleaned == [5]


class Untidy(SlowToStart):
    """Awaits what it has cancelled."""

    async def cleanup(self) -> None:
        helper = asyncio.create_task(asyncio.sleep(1000))
        helper.cancel()
        await helper


@cancelling
async def test_N3_a_cancellation_that_cleanup_lets_out_is_told_by_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As any other exception of it is."""
    topology = Topology("t")
    topology.bolt("untidy", Untidy, topology.spout("spout").shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert "cleanup of untidy[0] raised StrayCancellation" in caplog.text


@cancelling
async def test_N3_a_host_that_has_caught_a_cancellation_before_is_not_being_cancelled() -> None:
    """Its tasks die as elsewhere."""

    async def host() -> Running:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)
        asyncio.get_running_loop().call_later(0.5, cancel, "t/bolt[0]")
        return await run_to_end(slow_topology())

    task = asyncio.create_task(host())
    await asyncio.sleep(0)
    task.cancel()
    counts = (await task).statistics().components["bolt"]
    assert (counts.restarts, now() < 10) == (1, True)


@cancelling
async def test_N3_a_sink_that_is_cancelled_with_its_host_crashes_nothing() -> None:
    """Whichever of them hears of it first."""

    async def slow(letter: DeadLetter) -> None:
        await asyncio.sleep(1000)

    async def host() -> None:
        topology = Topology("t", max_attempts=1)
        topology.bolt("bolt", raise_value_error, topology.spout("spout", [1]).shuffle())
        async with topology.run(dead_letters=slow):
            await asyncio.sleep(1000)

    running = asyncio.create_task(host())
    await asyncio.sleep(0.5)
    cancel("spout[0] dead_letters")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_N3_the_end_of_the_loop_ends_a_run_that_nobody_leaves() -> None:
    """All tasks are cancelled then, as asyncio.run does, and none of them begins another life."""

    async def main() -> None:
        topology = Topology("t")
        topology.bolt("bolt", take_a_second, topology.spout("spout", range(4)).shuffle())
        await topology.run().__aenter__()
        await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("ends", [SystemExit, KeyboardInterrupt])
def test_N3_tasks_that_are_cancelled_as_the_loop_ends_are_none_that_somebody_else_has_cancelled(
    ends: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """Where code ends the loop, all tasks are cancelled, and none is said to have died of that."""

    def leave(value: int) -> None:
        raise ends

    topology = Topology("left")
    topology.bolt("leave", leave, topology.spout("spout", [1]).shuffle())
    with pytest.raises(ends):
        run(topology)
    gc.collect()
    told = [each.getMessage() for each in caplog.records]
    assert not [each for each in told if "somebody else" in each or "never retrieved" in each]


async def yielding() -> AsyncIterator[int]:
    for value in range(3):
        yield value
        await asyncio.sleep(1)


@cancelling
@pytest.mark.parametrize("source", [yielding, Polled])
async def test_N3_a_host_that_is_cancelled_with_all_its_tasks_hears_of_that_alone(source: Any) -> None:
    """No task that is cancelled with it takes that for its death."""

    async def host() -> None:
        topology = Topology("t", max_restarts=0)
        topology.bolt("bolt", take_a_second, topology.spout("spout", source).shuffle())
        async with topology.run():
            await asyncio.sleep(100)

    running = asyncio.create_task(host())
    await asyncio.sleep(0.5)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@cancelling
async def test_N3_a_host_that_is_cancelled_and_stays_hears_of_the_tasks_that_were_cancelled_with_it() -> None:
    """It swallows its cancellation: then the topology crashes, rather than stand still."""

    async def host() -> Any:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.6)
        await asyncio.sleep(100)

    async def run() -> None:
        async with slow_topology().run():
            await host()

    running = asyncio.create_task(run())
    await asyncio.sleep(0.5)
    running.cancel()
    cancel("t/bolt[0]")
    with pytest.raises(TopologyCrashed, match=r"bolt\[0\]"):
        await running
