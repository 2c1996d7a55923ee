"""The orderly end of a run, and its deadline (law C3)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from functools import partial

import pytest

from stormlet import (
    DeadLetter,
    Failure,
    FailureKind,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    TopologyStopping,
    TupleFailed,
)
from tests.cast import Counting, Endless, Forget, Note, Slow
from tests.helpers import RefusingKey, now
from tests.law.calls import HoldAll, finishing
from tests.law.failing import fail_until
from tests.law.hosts import tree_of


@pytest.mark.simulated_time
async def test_C3_leaving_the_block_drains() -> None:
    """The spout is not asked again; what it has emitted is processed, and its outcomes reach it."""
    log: list[tuple[str, float]] = []

    class Logged(Endless):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            log.append(("next_tuple", now()))
            super().next_tuple(out)

        def ack(self, message_id: object) -> None:
            log.append((f"ack {message_id}", now()))

    topology = Topology("drain", max_spout_pending=2)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("numbers", Logged).shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert log == [("next_tuple", 0)] * 2 + [("ack 0", 3), ("ack 1", 6)]


@pytest.mark.simulated_time
async def test_C3_stop_drains_while_the_block_goes_on() -> None:
    """``finished()`` returns when everything is settled; leaving the block then takes no time."""
    topology = Topology("stop", max_spout_pending=2)
    topology.bolt("slowly", partial(Slow, 3), topology.spout("numbers", Endless).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.stop()
        await running.finished()
        assert now() == 6
        await asyncio.sleep(50)
        assert running.statistics().components["numbers"].acked == 2
    assert now() == 56


@pytest.mark.simulated_time
async def test_C3_a_drain_calls_finish() -> None:
    """The sum of what an endless source has yielded so far is written."""
    seen: list[int] = []
    topology = Topology("finish", max_spout_pending=3)
    total = topology.bolt("sum", HoldAll, topology.spout("numbers", itertools.count(1)).shuffle())
    topology.bolt("note", partial(Note, seen), total.shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert seen == [1 + 2 + 3]


@pytest.mark.simulated_time
async def test_C3_a_drain_processes_what_finish_emits() -> None:
    """Also where every message was acked before, so that no tree is open."""
    log: list[tuple[str, float]] = []

    async def waiting() -> AsyncIterator[str]:
        yield "x"
        await asyncio.get_running_loop().create_future()

    topology = Topology("finish")
    first = topology.bolt("first", finishing(log), topology.spout("waiting", waiting).shuffle())
    topology.bolt("second", finishing(log), first.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        assert running.statistics().components["waiting"].acked == 1
    assert log[2:] == [("first finishes", 2), ("second gets end of first", 2), ("second finishes", 3)]


@pytest.mark.simulated_time
@pytest.mark.parametrize("catching", [False, True])
async def test_C3_emits_from_ack_and_fail_are_refused_while_draining(catching: bool) -> None:
    """They raise TopologyStopping, which does no harm if the spout lets it pass."""
    refused: list[object] = []

    class Again(Endless):
        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.out = out

        def ack(self, message_id: object) -> None:
            try:
                self.out.emit(0, message_id=message_id)
            except TopologyStopping:
                refused.append(message_id)
                if not catching:
                    raise

        def fail(self, message_id: object, failure: Failure) -> None:
            self.ack(message_id)

    async def odd(value: int) -> None:
        await asyncio.sleep(3)
        if value % 2:
            raise ValueError(value)

    topology = Topology("again", max_spout_pending=2)
    topology.bolt("odd", odd, topology.spout("numbers", Again).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert refused == [0, 1]
    assert running.statistics().components["odd"].executed == 2


@pytest.mark.simulated_time
async def test_C3_a_cancelled_next_tuple_that_emits_does_not_crash_the_drain() -> None:
    """Its emit is refused as well, and the messages under way are settled."""

    class Last(Spout[int]):
        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            out.emit(1, message_id=1)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                out.emit(2, message_id=2)

    topology = Topology("last")
    topology.bolt("slowly", partial(Slow, 3), topology.spout("last", Last).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert running.statistics().components["last"].acked == 1


@pytest.mark.simulated_time
async def test_C3_waiting_replays_are_replayed_if_the_deadline_allows() -> None:
    """A message that failed before the stop is acked after its pause."""
    executed: list[float] = []
    topology = Topology("replay", replay_delay=5.0, drain_timeout=20.0)
    topology.bolt("fail", fail_until(5, executed), topology.spout("one", ["x"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert running.statistics().components["one"].acked == 1
    assert now() == executed[-1] >= 5


class Outcomes(Counting):
    """Notes what it is told."""

    log: list[tuple[object, object, float]]

    def ack(self, message_id: object) -> None:
        self.log.append((message_id, None, now()))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.log.append((message_id, failure.kind, now()))


@pytest.mark.simulated_time
async def test_C3_at_the_deadline_all_leftovers_fail_with_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    """Held, queued and running ones; the spout is told, and they are counted and logged."""

    class Told(Outcomes):
        log: list[tuple[object, object, float]] = []  # noqa: RUF012

    topology = Topology("deadline", drain_timeout=7.0)
    source = topology.spout("numbers", Told)
    topology.bolt("hold", Forget, source.shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert Told.log == [(number, FailureKind.SHUTDOWN, 8) for number in range(3)]
    assert now() == 8
    assert running.statistics().left_over == 3
    assert "3 messages of 'numbers'" in caplog.text


@pytest.mark.simulated_time
async def test_C3_a_replay_that_the_deadline_does_not_allow_fails_with_shutdown() -> None:
    """A value that waits for its replay is handed to the dead letters' callable with that cause."""
    letters: list[DeadLetter] = []
    topology = Topology("late", replay_delay=20.0, drain_timeout=3.0)
    topology.bolt("fail", fail_until(99, []), topology.spout("one", ["x"]).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await asyncio.sleep(1)
    assert [each.failure.kind for each in letters] == [FailureKind.SHUTDOWN]
    assert running.statistics().left_over == 1
    assert now() == 4


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_C3_a_replay_whose_emit_raises_is_drained() -> None:
    """The task that died of it is restarted, and emits it before the deadline."""
    executed: list[float] = []
    topology = Topology("refused", replay_delay=5.0, drain_timeout=20.0)
    spout = topology.spout("one", ["x"])
    topology.bolt("fail", fail_until(5, executed), spout.fields(RefusingKey(times=1)), parallelism=2)
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert running.statistics().components["one"].acked == 1
    assert now() == executed[-1]


@pytest.mark.simulated_time(allow_leaks=["trees", "errors"])
async def test_C3_a_replay_whose_emit_raises_is_left_over_at_the_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its task is dead for longer than the drain may last: the message is counted and reported."""
    topology = Topology("refused", restart_delay=50.0, restart_delay_max=50.0, drain_timeout=3.0)
    spout = topology.spout("one", ["x"])
    topology.bolt("fail", fail_until(99, []), spout.fields(RefusingKey(times=1)), parallelism=2)
    async with topology.run() as running:
        await asyncio.sleep(1)
    statistics = running.statistics()
    assert (statistics.left_over, statistics.components["one"].pending) == (1, 0)
    assert "1 message of 'one'" in caplog.text


@pytest.mark.simulated_time
async def test_C3_without_deadline_a_drain_takes_what_it_takes() -> None:
    """With ``drain_timeout=None`` a call of an hour is waited for."""
    topology = Topology("patient", drain_timeout=None, message_timeout=None)
    topology.bolt("hour", lambda _: asyncio.sleep(3600), topology.spout("one", ["x"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
    assert now() == 3600
    assert running.statistics().components["one"].acked == 1


@pytest.mark.simulated_time
async def test_C3_the_default_deadline_is_thirty_seconds() -> None:
    """A message that nobody acks holds a drain up for so long, and no longer."""
    topology = Topology("default", message_timeout=None)
    topology.bolt("hold", Forget, topology.spout("one", ["x"]).shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert now() == 31


@pytest.mark.simulated_time
async def test_C3_a_second_stop_cancels() -> None:
    """The drain is over at once, the call that runs is cancelled, and leaving takes no time."""
    cancelled: list[float] = []

    async def stuck(value: object) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            cancelled.append(now())
            raise

    topology = Topology("second", message_timeout=None)
    topology.bolt("stuck", stuck, topology.spout("one", ["x"]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.stop()
        await asyncio.sleep(1)
        running.stop()
        await running.finished()
        assert now() == 2
    assert now() == 2
    assert cancelled == [2]
    assert running.statistics().left_over == 1


@pytest.mark.simulated_time
async def test_C3_a_second_stop_settles_the_trees_that_the_body_waits_for() -> None:
    """A body that awaits a tree gets its failure, SHUTDOWN, instead of waiting for ever."""
    topology = Topology("tree", message_timeout=None, drain_timeout=None)
    fed = topology.spout("fed")
    topology.bolt("hold", Forget, fed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(fed, "x")
        running.stop()
        await asyncio.sleep(1)
        running.stop()
        with pytest.raises(TupleFailed) as failed:
            await asyncio.wait_for(tree_of(tree), 100)
        assert failed.value.failure.kind is FailureKind.SHUTDOWN
