"""Tasks that somebody else cancels (law N3)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count

import pytest

from stormlet import (
    BatchBolt,
    Collector,
    StrayCancellation,
    Stream,
    Topology,
    TopologyCrashed,
    Tuple,
    TupleFailed,
)
from tests.cast import Ticks, raise_value_error, take_a_second
from tests.engines import Engine
from tests.helpers import now
from tests.law.cancelled import SlowToStart, cancel, cancelling, conserved, crash, slow_topology


@cancelling
@pytest.mark.parametrize("moment", [0.0, 0.5, 1.5])
@pytest.mark.parametrize("name", ["spout", "bolt", "poll", "polled", "__acker"])
async def test_N3_a_task_that_somebody_cancels_is_restarted(
    name: str, moment: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever it waits; what it had in hand fails at once, and the log has it."""
    async with slow_topology().run() as running:
        await asyncio.sleep(moment)
        cancel(f"t/{name}[0]")
        await running.finished()
        assert asyncio.get_running_loop().time() < 10
    counts = running.statistics()
    assert (counts.components[name].restarts, counts.dead_letters, counts.left_over) == (1, 0, 0)
    assert "somebody else has cancelled" in caplog.text


@cancelling
@pytest.mark.parametrize("name", ["spout", "bolt", "poll", "__acker"])
async def test_N3_beyond_its_restarts_the_topology_crashes(name: str) -> None:
    """With every message counted."""
    running, error = await crash(slow_topology(max_restarts=0), f"t/{name}[0]")
    assert isinstance(error.__cause__, StrayCancellation)
    assert conserved(running)


@cancelling
async def test_N3_a_concurrent_call_that_somebody_cancels_fails_its_input_at_once() -> None:
    """The others go on."""
    topology = Topology("t", max_attempts=1)
    topology.bolt("bolt", take_a_second, topology.spout("spout", range(4)).shuffle(), concurrency=4)
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        next(task for task in asyncio.all_tasks() if task.get_name() == "bolt[0] execute").cancel()
        await running.finished()
        assert asyncio.get_running_loop().time() == 1
    (letter,) = running.dead_letters
    assert isinstance(letter.failure.exception, StrayCancellation)
    assert running.statistics().components["spout"].acked == 3
    bolt = running.statistics().components["bolt"]
    assert (bolt.executed, bolt.acked, bolt.failed) == (4, 3, 1)


@cancelling
async def test_N3_a_batch_whose_call_somebody_cancels_fails_with_all_of_its_inputs() -> None:
    """At once, and the next batch goes on."""

    class Slow(BatchBolt[int, None]):
        size = 3

        async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
            await asyncio.sleep(1)

    topology = Topology("t", max_attempts=1)
    topology.bolt("bolt", Slow, topology.spout("spout", range(6)).shuffle(), concurrency=6)
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        next(task for task in asyncio.all_tasks() if task.get_name() == "bolt[0] execute").cancel()
        await running.finished()
        assert asyncio.get_running_loop().time() == 1
    assert [letter.value for letter in running.dead_letters] == [0, 1, 2]
    assert {type(letter.failure.exception) for letter in running.dead_letters} == {StrayCancellation}
    assert running.statistics().components["spout"].acked == 3
    bolt = running.statistics().components["bolt"]
    assert (bolt.executed, bolt.acked, bolt.failed) == (6, 3, 3)


def cancel_itself(value: int) -> None:
    if value == 1:
        raise asyncio.CancelledError


async def cancel_itself_later(value: int) -> None:
    await asyncio.sleep(0.1)
    cancel_itself(value)


@cancelling
@pytest.mark.parametrize(
    ("logic", "concurrency"), [(cancel_itself, 1), (cancel_itself_later, 1), (cancel_itself_later, 3)]
)
async def test_N3_a_cancellation_that_user_code_raises_fails_its_input(
    engine: Engine, logic: Callable[[int], object], concurrency: int
) -> None:
    """As often as it is tried; the others are acked."""
    topology = Topology("t", max_attempts=2)
    topology.bolt("bolt", logic, topology.spout("spout", range(4)).shuffle(), concurrency=concurrency)
    ended = await engine.run_to_end(topology)
    assert [(each.value, each.attempts) for each in ended.dead_letters] == [(1, 2)]
    assert ended.statistics().components["spout"].acked == 3


@cancelling
async def test_N3_a_cancellation_that_a_key_function_raises_is_none_of_the_host() -> None:
    """Which would end, as if somebody had cancelled it."""
    topology = Topology("t")
    source = topology.spout("spout", outputs=int)
    topology.bolt("bolt", print, source.fields(cancel_itself))
    async with topology.run() as running:
        with pytest.raises(StrayCancellation) as raised:
            await running.emit(source, 1)
        assert isinstance(raised.value.__cause__, asyncio.CancelledError)
        assert running.statistics().components["spout"].pending == 0


@cancelling
@pytest.mark.parametrize("name", ["conductor", "ticker", "ticks of ticked"])
async def test_N3_a_helper_that_somebody_cancels_crashes_the_topology(name: str) -> None:
    """Without it the topology would stand still."""
    topology = slow_topology()
    topology.bolt("ticked", Ticks, topology.spout("other").shuffle(), tick=1.0)
    running, error = await crash(topology, f"t {name}")
    assert (error.task, error.what, type(error.__cause__)) == ("the engine", f"the {name}", StrayCancellation)
    assert conserved(running)


@cancelling
@pytest.mark.parametrize("moment", [0.5, 1.05, 1.5])
async def test_N3_a_task_that_is_cancelled_between_two_lives_lives_on(moment: float) -> None:
    """While it cleans up, pauses, or prepares its next instance."""
    topology = Topology("t")
    spout: Stream[int] = topology.spout("spout")
    topology.bolt("slow", SlowToStart, spout.shuffle())
    async with topology.run() as running:
        running.kill("slow")
        await asyncio.sleep(moment)
        cancel("t/slow[0]")
        await (await running.emit(spout, 1))
    assert running.statistics().components["slow"].acked == 1


@cancelling
async def test_N3_a_task_that_is_cancelled_while_it_starts_fails_the_start() -> None:
    """As an exception of its prepare does."""
    topology = Topology("t")
    topology.bolt("slow", SlowToStart, topology.spout("spout").shuffle())
    asyncio.get_running_loop().call_later(0.5, cancel, "t/slow[0]")
    with pytest.raises(TopologyCrashed, match="did not start: prepare of slow"):
        async with topology.run():
            pass


@cancelling
@pytest.mark.parametrize("name", ["__acker", "slow"])
async def test_N3_a_task_that_is_cancelled_before_its_first_step_crashes_the_topology(name: str) -> None:
    """Nobody waits for it for ever."""
    topology = Topology("t")
    topology.bolt("slow", SlowToStart, topology.spout("spout").shuffle())
    asyncio.get_running_loop().call_soon(cancel, f"t/{name}[0]")
    with pytest.raises(TopologyCrashed, match=f"start of {name}.0. raised StrayCancellation"):
        async with topology.run():
            pass


@cancelling
async def test_N3_a_kill_and_a_cancellation_at_once_are_one_death() -> None:
    """The next life does not take a cancellation of its own code for one by somebody else."""

    async def trip(value: int) -> None:
        await asyncio.sleep(1)
        helper = asyncio.create_task(asyncio.sleep(1000))
        helper.cancel()
        await helper

    topology = Topology("t")
    spout = topology.spout("spout")
    topology.bolt("bolt", trip, spout.shuffle())
    async with topology.run() as running:
        await running.emit(spout, 1)
        await asyncio.sleep(0.5)
        cancel("t/bolt[0]")
        running.kill("bolt")
        with pytest.raises(TupleFailed, match="user code awaited"):
            await (await running.emit(spout, 2))
    assert running.statistics().components["bolt"].restarts == 1


@cancelling
async def test_N3_a_replay_that_is_refused_by_a_cancellation_is_heard_of() -> None:
    """Also while the source is awaited."""
    calls = count()

    def key(value: int) -> int:
        if next(calls) == 1:
            raise asyncio.CancelledError
        return value

    async def source() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(1000)

    topology = Topology("t")
    topology.bolt("bolt", raise_value_error, topology.spout("spout", source).fields(key))
    _, error = await crash(topology)
    assert (error.what, now() < 10) == ("replay", True)


@cancelling
async def test_N3_a_task_that_is_not_revived_for_long_keeps_no_exceptions() -> None:
    """They would keep alive the local variables of user code."""

    class IsDown(Exception):
        pass

    kept: list[weakref.ref[IsDown]] = []

    class Down(SlowToStart):
        async def prepare(self, context: object) -> None:
            if now():
                error = IsDown()
                kept.append(weakref.ref(error))
                if len(kept) <= 200:
                    raise error

    topology = Topology("t", max_restarts=200, restart_delay_max=1.0)
    topology.bolt("down", Down, topology.spout("spout").shuffle())
    async with topology.run() as running:
        await asyncio.sleep(0.1)
        running.kill("down")
        await asyncio.sleep(400)
        gc.collect()
        assert len(kept) == 201
        assert sum(each() is not None for each in kept) < 10
