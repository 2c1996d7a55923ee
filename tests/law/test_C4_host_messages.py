"""Messages of the host, their attempts and outcomes (law C4)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import pytest

from stormlet import Bolt, Collector, FailureKind, Running, Topology, Tree, Tuple, TupleFailed, TupleTimedOut
from tests.cast import Forget, NotesOutcomes, Slow, given, refuse
from tests.helpers import RefusingKey, now
from tests.law.calls import crash_in
from tests.law.failing import fail_until
from tests.law.hosts import host_topology, tree_of


@pytest.mark.simulated_time
async def test_C4_the_users_ack_and_fail_are_not_called_for_it() -> None:
    """On the stream of a Spout class, the host's messages concern its tree alone."""
    topology, spout = Topology("told"), NotesOutcomes()
    spout.count = 0
    source = topology.spout("numbers", given(spout))
    topology.bolt("logic", lambda value: refuse(value) if value == "bad" else None, source.shuffle())
    async with topology.run() as running:
        await (await running.emit(source, "good"))
        with pytest.raises(TupleFailed, match="refused"):
            await (await running.emit(source, "bad"))
    assert spout.heard == []
    assert running.dead_letters == ()


@pytest.mark.simulated_time
async def test_C4_it_has_one_attempt() -> None:
    """The first failure is the outcome, with the bolt's exception as its cause."""
    executed: list[float] = []
    topology, fed = host_topology(fail_until(99, executed))
    async with topology.run() as running:
        with pytest.raises(TupleFailed) as failed:
            await (await running.emit(fed, "x"))
        await asyncio.sleep(100)
    assert len(executed) == 1
    assert failed.value.failure.component == "logic"
    assert isinstance(failed.value.__cause__, ValueError)


@pytest.mark.simulated_time
async def test_C4_attempts_are_made_as_often_as_the_host_says() -> None:
    """With ``attempts=3`` the third failure is the outcome, after pauses as for other replays."""
    executed: list[float] = []
    topology, fed = host_topology(fail_until(99, executed), max_attempts=2)
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=3)
        with pytest.raises(TupleFailed):
            await tree
    assert len(executed) == 3
    assert 0.1 <= executed[1] - executed[0] <= 0.2 <= executed[2] - executed[1]


@pytest.mark.simulated_time
async def test_C4_a_later_attempt_can_succeed() -> None:
    """The tree is open between the attempts, and acked by the second one."""
    executed: list[float] = []
    topology, fed = host_topology(fail_until(0.05, executed))
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=3)
        await asyncio.sleep(0.01)
        assert not tree.done
        assert await tree == []
    assert len(executed) == 2


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_C4_an_attempt_whose_emit_raises_is_made_by_the_restarted_task() -> None:
    """An exception of a key function is no outcome: the tree stays open until the attempt is made."""
    executed: list[float] = []
    topology = Topology("host")
    fed = topology.spout("fed")
    topology.bolt("bolt", fail_until(0.05, executed), fed.fields(RefusingKey(times=1)), parallelism=2)
    async with topology.run() as running:
        tree = await running.emit(fed, "x", attempts=3)
        await asyncio.wait_for(tree, 60)
    assert len(executed) == 2


@pytest.mark.simulated_time
async def test_C4_a_crash_of_an_attempt_that_cannot_be_emitted_is_an_outcome() -> None:
    """Whoever waits for the tree hears of it, as of any other that the end leaves over."""
    topology = Topology("host", max_restarts=1)
    fed = topology.spout("fed")
    topology.bolt("bolt", fail_until(99, []), fed.fields(RefusingKey(times=9)), parallelism=2)
    trees: list[Tree[object]] = []

    async def body(running: Running) -> None:
        trees.append(await running.emit(fed, "x", attempts=3))
        await trees[0]

    await crash_in(topology, body)
    with pytest.raises(TupleFailed):
        await trees[0]
    assert [each.kind for each in trees[0].history] == [FailureKind.FAILED, FailureKind.SHUTDOWN]
    assert now() < 60


@pytest.mark.simulated_time
async def test_C4_a_permanent_failure_ends_the_attempts() -> None:
    """``Reject`` is the outcome whatever ``attempts`` says."""
    topology, fed = host_topology(refuse)
    async with topology.run() as running:
        with pytest.raises(TupleFailed, match="refused"):
            await (await running.emit(fed, "x", attempts=10))
    assert running.statistics().components["logic"].failed == 1


@pytest.mark.simulated_time
async def test_C4_the_death_of_an_acker_is_no_attempt() -> None:
    """What was open there is emitted again, as often as ackers die, and as the same attempt."""
    attempts: list[int] = []

    class Slow(Bolt[object, None]):
        async def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            attempts.append(tup.attempt)
            await asyncio.sleep(1.0)
            out.ack(tup)

    topology, fed = host_topology(Slow, message_timeout=None)
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        for _ in range(3):
            await asyncio.sleep(0.9)
            running.kill("__acker")
        assert await tree == []
    assert attempts == [1, 1, 1, 1]
    assert [failure.kind for failure in tree.history] == [FailureKind.TASK_LOST] * 3


@pytest.mark.simulated_time
async def test_C4_the_death_of_a_bolt_is_an_attempt() -> None:
    """It held a tuple of the tree, which may be why it died."""
    topology, fed = host_topology(lambda value: asyncio.sleep(10))
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        await asyncio.sleep(1)
        running.kill("logic")
        with pytest.raises(TupleFailed, match=r"task lost in logic\[0\]"):
            await tree
        running.stop()


@pytest.mark.simulated_time
async def test_C4_to_find_no_room_is_an_attempt() -> None:
    """Awaiting a message that was refused ends, however long there is no room."""
    topology, fed = host_topology(Forget, message_timeout=None, acker_high_water=1, drain_timeout=0)
    async with topology.run() as running:
        *_, tree = [await running.emit(fed, "x", attempts=2) for _ in range(3)]
        with pytest.raises(TupleFailed, match="overflow"):
            await tree
        assert [failure.kind for failure in tree.history] == [FailureKind.OVERFLOW] * 2
        assert now() < 1


@pytest.mark.simulated_time
async def test_C4_a_timeout_is_an_outcome_of_its_own_kind() -> None:
    """It says which component still holds a tuple of the tree."""
    topology, fed = host_topology(Forget, message_timeout=4.0)
    async with topology.run() as running:
        with pytest.raises(TupleTimedOut, match="held by 'logic'"):
            await (await running.emit(fed, "x"))
        assert now() >= 4


@pytest.mark.simulated_time
@pytest.mark.parametrize("failing", [False, True])
async def test_C4_a_tree_may_be_awaited_any_number_of_times(failing: bool) -> None:
    """By several tasks while it is open, and again afterwards: always the same outcome."""

    async def logic(value: object) -> None:
        await asyncio.sleep(3)
        if failing:
            refuse(value)

    topology, fed = host_topology(logic)
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        waiting = asyncio.gather(*(tree_of(tree) for _ in range(3)), return_exceptions=True)
        outcomes = [*await waiting, *(await asyncio.gather(tree_of(tree), return_exceptions=True))]
        assert now() == 3
    assert [type(each) for each in outcomes] == [TupleFailed if failing else list] * 4


@pytest.mark.simulated_time
async def test_C4_a_tree_need_not_be_awaited(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody complains of a failure that nobody asked for, beyond the log line of the exception."""
    topology, fed = host_topology(refuse)
    with caplog.at_level(logging.WARNING, "asyncio"):
        async with topology.run() as running:
            await running.emit(fed, "x")
    assert running.statistics().components["logic"].failed == 1
    assert not [each for each in caplog.records if each.name == "asyncio"]


@pytest.mark.simulated_time
async def test_C4_cancelling_an_await_does_not_touch_the_tree() -> None:
    """It is processed on, and another await gets its outcome."""
    topology, fed = host_topology(partial(Slow, 3))
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        other = asyncio.ensure_future(tree_of(tree))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tree_of(tree), 1)
        assert not tree.done
        await other
        assert now() == 3
    assert running.statistics().components["fed"].acked == 1
