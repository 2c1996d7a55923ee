"""An epoch is written while the next one runs; on simulated time and without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from stormlet import DeadLetter, NotExactlyOnce, Reject, SpoutCollector, Topology, TopologyCrashed
from tests.helpers import now, run_to_end
from tests.spark.epoch_kit import Numbers, Sink, SlowSink, Source, Store, slowly_written
from tests.spark.test_epochs import FailsOnce, Loses, doubled, stop_after

pytestmark = pytest.mark.simulated_time


def working(seconds: float, logic: Callable[[int], Any] = lambda value: 2 * value) -> Any:
    """A bolt that takes so long for each number, and five numbers at a time."""

    async def work(value: int) -> Any:
        await asyncio.sleep(seconds)
        return logic(value)

    return work


def written(store: Store, logic: Any, seconds: float, total: int = 30, **options: Any) -> Topology:
    """Epochs of ten numbers, a bolt of five tasks, and a sink that writes an epoch in so many seconds."""
    topology = Topology("overlap", **options)
    numbers = topology.spout("numbers", Source(store, total, 10), outputs=int)
    made = topology.bolt("logic", logic, numbers.shuffle(), parallelism=5)
    topology.bolt("write", SlowSink(store, seconds), made.shuffle())
    return topology


def reject_the_unlucky(value: int) -> int:
    if value % 10 == 3:
        raise Reject("unlucky")
    return 2 * value


async def test_an_epoch_is_written_while_the_next_one_runs() -> None:
    """Three epochs that take 4 s each and are written in 3 s need 15 s, not 21."""
    store = Store()
    await run_to_end(written(store, working(2.0), seconds=3.0))
    assert now() == pytest.approx(3 * 4 + 3)
    assert store.rows() == doubled(30)


async def test_one_epoch_at_a_time_is_written() -> None:
    """The epoch that has run meanwhile is sealed when the commit before has ended, so that commits are in order."""
    store, seen = Store(), []
    async with written(store, working(0.1), seconds=5.0).run() as running:
        for _ in range(3):
            await asyncio.sleep(4.0)
            seen.append((list(store.sealed), store.next_epoch))
        await running.finished()
    assert seen == [([0], 0), ([0, 1], 1), ([0, 1, 2], 2)]
    assert store.events == [(what, epoch) for epoch in range(3) for what in ("written", "recorded")]


async def test_the_run_ends_when_the_last_epoch_is_recorded() -> None:
    """The host that waits for the end finds everything written."""
    store = Store()
    async with slowly_written(store, 5.0).run() as running:
        await running.finished()
        assert store.events[-1] == ("recorded", 1)


async def test_dead_letters_wait_for_their_epoch() -> None:
    """Rows that the next epoch gives up are told after that was written, not while it runs beside another's write."""
    store = Store()

    def bury(letter: DeadLetter) -> None:
        store.events.append(("letter", letter.value))

    topology = written(store, working(0.1, reject_the_unlucky), seconds=5.0, total=20)
    await run_to_end(topology, dead_letters=bury)
    assert store.events == [
        *(("written", 0), ("letter", 3), ("recorded", 0)),
        *(("written", 1), ("letter", 13), ("recorded", 1)),
    ]


async def test_an_attempt_that_fails_beside_a_write() -> None:
    """The rows that are being written are not those that are dropped."""
    store = Store()
    await run_to_end(written(store, FailsOnce(13, 22), seconds=5.0))
    assert store.rows() == doubled(30)
    assert [len(store.written["out", epoch]) for epoch in range(3)] == [10, 10, 10]


@pytest.mark.parametrize(
    ("seconds", "options"),
    [(0.1, {}), (6.0, {}), (1.0, {"max_spout_pending": 1})],
    ids=["the next epoch waits", "its last rows are under way", "it is still emitted"],
)
async def test_a_commit_that_fails_beside_the_next_epoch(
    seconds: float, options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The run crashes with the error, said once, and nothing of the next epoch is written, though it may have
    succeeded."""
    store = Store()
    store.failing = 5
    with pytest.raises(TopologyCrashed, match=r"next_tuple of numbers\[0\] raised .*the disk is full"):
        await run_to_end(written(store, working(seconds), seconds=0.0, **options))
    assert (store.events, store.sealed) == ([], [0])
    assert "close of numbers[0]" not in caplog.text
    await run_to_end(written(store, working(0.1), seconds=0.0))
    assert store.rows() == doubled(30)


class Quiet(Numbers):
    """Has nothing to read after its first epoch."""

    def next_tuple(self, out: SpoutCollector[object]) -> Awaitable[None] | None:
        return super().next_tuple(out) if self.epoch == 0 or self.emitter.to_do else None


async def test_a_commit_that_fails_while_the_next_rows_are_awaited() -> None:
    """The spout is woken to raise the error."""
    store = Store()
    store.failing = 5
    topology = Topology("quiet", idle_max=1000.0)
    numbers = topology.spout("numbers", Source(store, 20, 10, Quiet), outputs=int)
    topology.bolt("write", Sink(store), numbers.shuffle())
    with pytest.raises(TopologyCrashed, match="the disk is full"):
        await run_to_end(topology)
    assert now() == 0.5 + 1 + 2 + 4


async def test_a_row_of_no_epoch_beside_a_write() -> None:
    """The sink is dead by that, so the write is interrupted, and neither epoch is recorded."""

    class LosesLater(Loses):
        def execute(self, tup: Any, out: Any) -> None:
            if tup.value < 10:
                out.emit(tup.value, anchors=tup)
                out.ack(tup)
            else:
                super().execute(tup, out)

    store = Store()
    with pytest.raises(TopologyCrashed, match=r"NotExactlyOnce") as crash:
        await run_to_end(written(store, LosesLater, seconds=5.0))
    assert isinstance(crash.value.__cause__, NotExactlyOnce)
    assert ("recorded", 0) not in store.events
    assert now() < 1.0
    await run_to_end(written(store, working(0.1), seconds=0.0))
    assert store.rows() == doubled(30)


async def test_a_kill_at_any_moment() -> None:
    """From all that stood on the disk then, the next run brings each row once, and each letter; those of an epoch that
    was not recorded may come twice."""
    store = Store()
    letters: list[int] = []
    store.letters = letters

    async def host() -> list[Store]:
        moments = []
        topology = written(store, working(0.1, reject_the_unlucky), seconds=1.0)
        async with topology.run(dead_letters=buries(store)) as running:
            ended = asyncio.ensure_future(running.finished())
            while not ended.done():
                moments.append(deepcopy(store))
                await asyncio.sleep(0.03)
        return moments

    moments = await host()
    assert any(moment.sealed and moment.next_epoch < moment.sealed[-1] + 1 for moment in moments)
    for moment in moments:
        topology = written(moment, working(0.1, reject_the_unlucky), seconds=0.0)
        await run_to_end(topology, dead_letters=buries(moment))
        assert moment.rows() == [value for value in doubled(30) if value % 20 != 6]
        assert set(moment.letters) == {3, 13, 23}


def buries(store: Store) -> Callable[[DeadLetter], None]:
    """A place for dead letters that outlives the run."""

    def bury(letter: DeadLetter) -> None:
        assert isinstance(letter.value, int)
        store.letters.append(letter.value)

    return bury


async def test_a_stop_within_an_epoch_beside_a_write(caplog: pytest.LogCaptureFixture) -> None:
    """The write ends, and what was not emitted to its end is left."""
    store = Store()
    await stop_after(3.5, written(store, working(1.0), seconds=5.0, max_spout_pending=5))
    assert store.events == [("written", 0), ("recorded", 0)]
    assert "overlap: numbers: the run ends within epoch 1, of which nothing was written" in caplog.text


async def test_a_stop_has_time_for_both_epochs_or_not(caplog: pytest.LogCaptureFixture) -> None:
    """The one that was not written in time is left with the one that has run meanwhile."""
    store = Store()
    await stop_after(1.0, written(store, working(0.1), seconds=500.0, drain_timeout=3.0))
    assert store.events == []
    assert "the epoch was not written within drain_timeout=3 s" in caplog.text
    assert "the run ends within epoch 1, of which nothing was written" in caplog.text


async def test_a_pause_while_an_epoch_waits_for_the_one_before() -> None:
    """It is neither emitted nor sealed twice."""
    store, seen = Store(), FailsOnce()
    async with written(store, seen, seconds=5.0).run() as running:
        for _ in range(20):
            await asyncio.sleep(0.7)
            running.deactivate()
            await asyncio.sleep(0.3)
            running.activate()
        await running.finished()
    assert (store.sealed, sorted(seen.seen)) == ([0, 1, 2], list(range(30)))
    assert store.rows() == doubled(30)


@pytest.mark.parametrize("seed", range(20))
async def test_runs_that_are_left_at_random(seed: int) -> None:
    """Runs bring each row exactly once together, at whatever moment each is left, and whatever fails meanwhile."""
    random, store = Random(seed), Store()

    def unsteady(value: int) -> int:
        if random.random() < 0.02:
            raise OSError("flaky")
        return 2 * value

    while store.next_epoch < 10:
        store.failing = random.choice([0, 0, 1, 2])
        work = working(random.uniform(0.0, 0.2), unsteady)
        topology = written(
            store, work, random.uniform(0.0, 1.0), total=100, max_attempts=50, drain_timeout=1.0
        )
        try:
            async with asyncio.timeout(random.uniform(0.0, 3.0)), topology.run() as running:
                await running.finished()
        except TimeoutError:
            pass
    assert store.rows() == doubled(100)
    recorded = [epoch for what, epoch in store.events if what == "recorded"]
    assert recorded == list(range(10))
