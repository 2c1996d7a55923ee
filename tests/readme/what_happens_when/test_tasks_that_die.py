"""The README's "What happens when": who dies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress

import pytest

from stormlet import (
    Bolt,
    Collector,
    FailureKind,
    Stream,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
    TupleFailed,
    TupleTimedOut,
)
from tests.cast import Forget, take_a_second
from tests.helpers import block, interpreted_only, now, run_to_end
from tests.readme.what_happens_when.kit import EmitsOnce


class Dies(Bolt[int, None]):
    """Holds its inputs; the first three instances die of their first tick."""

    def __init__(self, made: list[float]) -> None:
        made.append(asyncio.get_running_loop().time())
        self.made = made

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        if len(self.made) > 3:
            out.ack(tup)

    def tick(self, out: Collector[None]) -> None:
        if len(self.made) <= 3:
            raise ConnectionError("the database is gone")


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_when_a_task_dies() -> None:
    """A spout raises, or another method that has no tuple to fail. Its task is restarted: another instance is made
    after 0.1 s, then 0.2 s, 0.4 s; what the dead one had in hand fails with TASK_LOST at once and is replayed, what
    was queued waits. Iterables go on where they were, and a generator function that takes `resume=` is called with the
    id of its last message.
    """
    made: list[float] = []
    topology = Topology("dies", message_timeout=None)
    numbers = topology.spout("numbers", [1, 2])
    topology.spout("open")  # as long as it may bring something, nothing is flushed
    topology.bolt("bolt", lambda: Dies(made), numbers.shuffle(), tick=1.0)
    async with topology.run() as running:
        await asyncio.sleep(10.0)
        counts = running.statistics().components
    assert made == pytest.approx([0.0, 1.1, 2.2, 3.4])
    assert counts["bolt"].restarts == 3
    assert (counts["numbers"].acked, counts["numbers"].failed) == (2, 6)


class RaisesOnce:
    """An iterable that raises between 1 and 2, and goes on."""

    def __init__(self) -> None:
        self.left: list[int | Exception] = [3, 2, ConnectionError("the broker is gone"), 1]

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if not self.left:
            raise StopIteration
        match self.left.pop():
            case Exception() as error:
                raise error
            case number:
                return number


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_what_was_queued_and_what_comes_next_after_a_death() -> None:
    """The second half of the sentence above: a bolt's queue survives it, and so does an iterable."""
    seen: list[tuple[int, float]] = []

    async def see(number: int) -> None:
        seen.append((number, now()))
        await asyncio.sleep(10)

    topology = Topology("queued", message_timeout=None)
    topology.bolt("see", see, topology.spout("numbers", RaisesOnce()).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(5)
        running.kill("see")
        await running.finished()
        assert running.statistics().components["numbers"].restarts == 1
    assert [number for number, _ in seen] == [1, 2, 3, 1]
    assert seen[1][1] == pytest.approx(5.1)

    def resumable(resume: int | None = None) -> Iterator[int]:
        yield from range(0 if resume is None else resume + 1, 4)[:2]
        if resume is None:
            raise ConnectionError("the broker is gone")

    numbers: list[int] = []
    topology = Topology("resumes")
    topology.bolt("see", numbers.append, topology.spout("numbers", resumable).shuffle())
    await run_to_end(topology)
    assert numbers == [0, 1, 2, 3]


async def noted(body: Awaitable[None], ends: list[object]) -> None:
    """Await it, and note whether it was cancelled."""
    try:
        await body
    except asyncio.CancelledError:
        ends.append("cancelled")
        raise


@pytest.mark.simulated_time
@pytest.mark.parametrize("dies", ["generator", "bolt"])
async def test_when_a_source_raises(dies: str) -> None:
    """A task dies once more than `max_restarts` in `restart_window`, or a generator raises that cannot be resumed. The
    topology crashes: the body of the block is cancelled, and the block raises `TopologyCrashed` with your exception as
    its cause. Messages without an outcome are counted as left over.
    """

    def values() -> Iterator[int]:
        yield 1
        raise ConnectionError("the broker is gone")

    topology = Topology("crashes", max_restarts=2, restart_window=60, max_attempts=1000)
    topology.spout("open")  # as long as it may bring something, nothing is flushed
    if dies == "generator":
        topology.bolt("hold", Forget, topology.spout("values", values).shuffle())
    else:
        topology.bolt("dies", lambda: Dies([]), topology.spout("values", [1]).shuffle(), tick=1.0)
    ends: list[object] = []

    async def host() -> None:
        try:
            async with topology.run() as running:
                await noted(asyncio.sleep(1000), ends)
        finally:
            ends.append(running.statistics().left_over)

    with pytest.raises(TopologyCrashed) as raised:
        await host()
    assert isinstance(raised.value.__cause__, ConnectionError)
    assert ends == ["cancelled", 1]


@pytest.mark.simulated_time
async def test_when_an_acker_dies() -> None:
    """An acker dies. Its open trees fail at once, and that is no attempt of theirs: messages that the engine keeps are
    replayed, those of the host too, and a `Spout` class is told.
    """
    told = EmitsOnce()
    topology = Topology("acker", max_attempts=1, message_timeout=1000.0)
    kept, fed = topology.spout("kept", [1]), topology.spout("fed", outputs=int)
    streams = [kept, fed, topology.spout("told", lambda: told)]
    topology.bolt(
        "slow", lambda value: asyncio.sleep(1.0), *(stream.shuffle() for stream in streams), concurrency=3
    )
    async with topology.run() as running:
        tree = await running.emit(fed, 1)
        await asyncio.sleep(0.5)
        running.kill("__acker")
        assert await tree == []
        counts = running.statistics().components
        assert asyncio.get_running_loop().time() < 3.0
    assert [failure.kind for failure in tree.history] == [FailureKind.TASK_LOST]
    assert told.heard == [("one", FailureKind.TASK_LOST)]
    for spout in ("kept", "fed"):
        assert (counts[spout].acked, counts[spout].failed, counts[spout].dead_letters) == (1, 1, 0)


class HangsAnew(Bolt[int, None]):
    """The second instance takes ten seconds to be prepared."""

    def __init__(self, made: list[float]) -> None:
        made.append(now())
        self.seconds = 10 if len(made) == 2 else 0

    async def prepare(self, context: TaskContext) -> None:
        await asyncio.sleep(self.seconds)

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        out.ack(tup)


@pytest.mark.simulated_time
async def test_when_a_restart_hangs(caplog: pytest.LogCaptureFixture) -> None:
    """The dead instance hangs in `cleanup` or `close`, or the next one in `prepare` or `open`. The task does nothing
    until that returns: after 5 s the log says where it hangs, and `running.health().restarting` names it from the
    start.
    """
    made: list[float] = []
    topology = Topology("hangs")
    fed = topology.spout("fed")
    topology.bolt("bolt", lambda: HangsAnew(made), fed.shuffle())
    async with topology.run() as running:
        running.kill("bolt")
        await asyncio.sleep(0.05)
        assert running.health().restarting == ("bolt[0]",)
        tree = await running.emit(fed, 1)
        await tree
        assert now() == pytest.approx(10.1)
        assert running.health().restarting == ()
    (line,) = (each.getMessage() for each in caplog.records if "not restarted yet" in each.getMessage())
    assert "bolt[0]" in line
    assert "HangsAnew.prepare" in line


@pytest.mark.simulated_time
async def test_when_a_task_is_killed() -> None:
    """`running.kill("split")` is called. A task dies as if its code had raised, and is restarted after 0.1 s, however
    often that happens: it does not count against `max_restarts`. Only an async generator that is awaited just then is
    over by that: its function is called again if it takes `resume=`, else the topology crashes.
    """
    topology = Topology("killed", max_restarts=0, max_attempts=100, message_timeout=None)
    topology.bolt("split", lambda value: asyncio.sleep(3600), topology.spout("values", [1]).shuffle())
    async with topology.run() as running:
        for times in range(1, 8):
            await asyncio.sleep(60)
            running.kill("split")
            await asyncio.sleep(0.11)
            counts = running.statistics().components
            assert (counts["split"].restarts, counts["values"].failed) == (times, times)
        running.stop()
        running.stop()
    assert await killed_with(numbers_and_on) == [0, 1, 2, 3]
    with pytest.raises(TopologyCrashed, match=r"raised TaskKilled\('somebody has killed it'\)"):
        await killed_with(numbers_from)


async def numbers_from(first: int = 0) -> AsyncIterator[int]:
    """Of all four, the second one is long in coming."""
    for number in range(first, 4):
        await asyncio.sleep(60 if first == 0 and number == 1 else 0)
        yield number


async def numbers_and_on(resume: int | None = None) -> AsyncIterator[int]:
    """The same, and it can be taken up again."""
    async for number in numbers_from(0 if resume is None else resume + 1):
        yield number


async def killed_with(source: Callable[[], AsyncIterator[int]]) -> list[int]:
    """What a bolt gets of this source, which is killed while it is awaited."""
    got: list[int] = []
    topology = Topology("awaited")
    topology.bolt("get", got.append, topology.spout("numbers", source).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        running.kill("numbers")
        await running.finished()
    return got


@pytest.mark.simulated_time
@pytest.mark.parametrize("swallows", [True, False])
async def test_when_a_cancellation_is_swallowed(swallows: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Your code swallows its cancellation, or raises something else instead. As soon as it returns, it is cancelled all
    the same: a task that was killed dies, and a topology that ends ends. What the call had in hand is not acked by its
    return, and the log has what it raised.
    """

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError as error:
            if not swallows:
                raise ConnectionError("cut short") from error

    topology = Topology("swallows", message_timeout=None)
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("work", work, numbers.shuffle())
    async with asyncio.timeout(60):
        with pytest.raises(KeyError):
            await killed_and_left(topology, numbers)
    assert ("work[0] raised ConnectionError('cut short')" in caplog.text) is not swallows


@pytest.mark.simulated_time
async def test_when_code_does_not_return(caplog: pytest.LogCaptureFixture) -> None:
    """An end waits for code that does not return, and after 5 s the log says where that is."""

    async def work(number: int) -> None:
        while now() < 60:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60 - now())

    topology = Topology("stays", drain_timeout=0)
    topology.bolt("work", work, topology.spout("numbers", [1]).shuffle())
    async with topology.run():
        await asyncio.sleep(1)
    assert now() == 60
    assert "work[0] still runs 5 s after it was asked to end, in work (test_tasks_that_die.py:" in caplog.text


async def killed_and_left(topology: Topology, numbers: Stream[int]) -> None:
    """Kill the task that works on a message, have it work on another one, and leave the block by an exception."""
    async with topology.run() as running:
        tree = await running.emit(numbers, 1)
        await asyncio.sleep(1)
        running.kill("work")
        with pytest.raises(TupleFailed, match="task lost"):
            await tree
        await asyncio.sleep(1)
        assert running.statistics().components["work"].restarts == 1
        await running.emit(numbers, 2)
        await asyncio.sleep(1)
        raise KeyError("mine")


def cancel(name: str) -> None:
    """As somebody else's code does."""
    next(task for task in asyncio.all_tasks() if task.get_name() == name).cancel()


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
@pytest.mark.parametrize(("concurrency", "name"), [(1, "t/wait[0]"), (3, "wait[0] execute")])
async def test_when_a_task_is_cancelled(
    concurrency: int, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody else cancels a task of the topology. It dies as of an exception: its input fails at once, the log has
    it, and it is restarted or the topology crashes. A call that runs beside others fails its input alone;
    """
    topology = Topology("t", max_attempts=2)
    topology.bolt(
        "wait", take_a_second, topology.spout("numbers", [1, 2, 3]).shuffle(), concurrency=concurrency
    )
    async with topology.run() as running:
        await asyncio.sleep(0.5)
        cancel(name)
        await running.finished()
        assert now() < 5
    counts = running.statistics().components
    assert (counts["numbers"].acked, counts["numbers"].replayed) == (3, 1)
    assert counts["wait"].restarts == (concurrency == 1)
    assert "somebody else has cancelled" in caplog.text


@pytest.mark.simulated_time
async def test_when_a_helper_is_cancelled() -> None:
    """without one of the engine's helpers, such as the ticker, the topology crashes."""
    topology = Topology("t")
    topology.bolt("wait", take_a_second, topology.spout("numbers", [1, 2, 3]).shuffle())
    asyncio.get_running_loop().call_later(0.5, cancel, "t ticker")
    with pytest.raises(TopologyCrashed, match="the ticker of the engine"):
        await run_to_end(topology)


@pytest.mark.simulated_time
@interpreted_only
async def test_when_stormlet_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """stormlet itself raises, which is a fault of it. The topology crashes, and every message without an outcome is
    left over.
    """
    monkeypatch.setattr("stormlet.runtime.spout.tracker.Tracker._settle", None)
    topology = Topology("t")
    topology.bolt("wait", take_a_second, topology.spout("numbers", [1, 2, 3]).shuffle())
    with pytest.raises(TopologyCrashed, match="the engine's part"):
        async with topology.run() as running:
            await running.finished()
    assert running.statistics().left_over == 3


@pytest.mark.simulated_time
async def test_when_the_loop_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop is held up, by code that blocks or by a machine that sleeps. Timeouts and ticks that were due
    meanwhile come late and once, never early, so that open trees still have time to complete. Setting the machine's
    clock changes nothing.
    """
    ticks: list[float] = []

    class Slow(Bolt[int, None]):
        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            await asyncio.sleep(tup.value)
            out.ack(tup)

        def tick(self, out: Collector[None]) -> None:
            ticks.append(now())

    topology = Topology("late", message_timeout=10.0)
    values = topology.spout("values", outputs=int)
    topology.bolt("slow", Slow, values.shuffle(), tick=30.0, concurrency=2)
    async with topology.run() as running:
        open_before = await running.emit(values, 3)
        await asyncio.sleep(1)
        block(100.0)
        began = now()
        monkeypatch.setattr(time, "time", lambda: 0.0)
        after = await running.emit(values, 1000)
        await open_before
        with pytest.raises(TupleTimedOut):
            await after
        assert 10.0 <= now() - began <= 15.0
        assert ticks == [101.0]
        running.stop()
        running.stop()
