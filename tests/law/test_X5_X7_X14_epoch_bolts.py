"""Bolts that work on whole epochs, and epochs that a seed repeats (law X5, X7, X14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import closing
from typing import Any

import pytest

from stormlet import (
    BasicBolt,
    Collector,
    Committer,
    Epoch,
    EpochBolt,
    EpochFailed,
    Reject,
    TaskContext,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.testing import SimulatedLoop
from tests.epochs.stores import Kept

pytestmark = pytest.mark.simulated_time

Sums = list[tuple[int, int]]


class Sum(EpochBolt[int, int]):
    """Sums up an epoch."""

    def __init__(self) -> None:
        self.total = 0

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.total += tup.value

    def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
        out.emit(self.total)


class Write(Committer[int]):
    """Notes sums with their epochs."""

    sums: Sums

    def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        self.sums += [(epoch.number, each) for each in rows]


def summing(bolt: type[EpochBolt[int, int]] = Sum, numbers: int = 6, **options: Any) -> tuple[Topology, Sums]:
    """A topology that sums up numbers, three to an epoch, and the sums that are committed."""
    sums: Sums = []

    def write() -> Write:
        made = Write()
        made.sums = sums
        return made

    topology = Topology("summing", **{"epoch_messages": 3, "replay_delay": 0.01, **options})
    summed = topology.bolt("sum", bolt, topology.spout("numbers", list(range(numbers))).shuffle())
    topology.bolt("write", write, summed.shuffle())
    return topology, sums


async def run(topology: Topology, store: Any = None) -> None:
    async with topology.run(state=store) as running:
        await running.finished()


async def test_X5_the_end_of_an_epoch_comes_after_all_of_its_inputs() -> None:
    """What is emitted there belongs to the same epoch."""
    topology, sums = summing()
    await run(topology)
    assert sums == [(1, 3), (2, 12)]


async def test_X5_each_task_is_told_of_the_end() -> None:
    """Also one that had no inputs, as Storm has it."""
    sums: Sums = []

    def write() -> Write:
        made = Write()
        made.sums = sums
        return made

    topology = Topology("tasks")
    source = topology.spout("numbers", [1])
    topology.bolt("write", write, topology.bolt("sum", Sum, source.shuffle(), parallelism=3).shuffle())
    await run(topology)
    assert sorted(sums) == [(1, 0), (1, 0), (1, 1)]


async def test_X5_ends_go_downstream() -> None:
    """The end of a bolt comes after what the ends above it have emitted."""
    topology = Topology("chain", epoch_messages=3)
    first = topology.bolt("first", Sum, topology.spout("numbers", list(range(6))).shuffle())
    second = topology.bolt("second", Sum, first.shuffle())
    totals: list[int] = []
    topology.bolt("see", totals.append, second.shuffle())
    await run(topology)
    assert totals == [3, 12]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X7_another_attempt_has_another_instance() -> None:
    """What the last one has gathered is forgotten, and counts no second time."""

    class Once(Sum):
        fails = True

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            super().execute(tup, out)
            if tup.value == 1 and Once.fails:
                Once.fails = False
                raise ValueError("after it has counted")

    topology, sums = summing(Once, 3)
    await run(topology)
    assert sum(total for _, total in sums) == 3


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X7_an_instance_that_dies_takes_its_attempt_with_it() -> None:
    """Its inputs were acked, and are in no other one."""
    topology, sums = summing(numbers=3, epoch_messages=4, epoch_seconds=100.0)

    async def slow() -> Any:
        for each in range(3):
            yield each
            await asyncio.sleep(1)

    topology.set_source("numbers", slow)
    async with topology.run() as running:
        await asyncio.sleep(1.5)
        running.kill("sum")
        await running.finished()
    assert sum(total for _, total in sums) == 3


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X7_an_end_that_fails_is_tried_again_with_its_epoch() -> None:
    """Until it succeeds."""

    class Twice(Sum):
        left = 2

        def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
            super().end_epoch(epoch, out)
            if Twice.left:
                Twice.left -= 1
                raise ValueError("at the end")

    topology, sums = summing(Twice)
    await run(topology)
    assert sums == [(1, 3), (2, 12)]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X7_an_end_that_always_fails_crashes_the_run() -> None:
    """There is no message to blame."""
    topology = Topology("failing", max_attempts=3, replay_delay=0.01)
    summed = topology.bolt("sum", Sum, topology.spout("numbers", [1]).shuffle())

    def refuse(value: int) -> None:
        raise Reject("never")

    topology.bolt("refuse", refuse, summed.shuffle())
    with pytest.raises(TopologyCrashed) as crash:
        await run(topology)
    assert isinstance(crash.value.__cause__, EpochFailed)


async def test_X7_instances_are_prepared_and_cleaned_up() -> None:
    """Each of them, in turn."""
    happened: list[str] = []

    class Noting(Sum):
        async def prepare(self, context: TaskContext) -> None:
            happened.append("prepare")

        def cleanup(self) -> Awaitable[None] | None:
            happened.append("cleanup")
            return None

        async def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:  # type: ignore[override]
            await asyncio.sleep(0.1)
            happened.append(str(epoch))

    topology, _ = summing(Noting)
    await run(topology)
    begun = ["prepare", "epoch 1", "cleanup", "prepare", "epoch 2", "cleanup", "prepare", "cleanup"]
    assert happened == begun


def test_X14_two_runs_with_one_seed_have_the_same_bytes() -> None:
    """Of all epochs."""

    def bytes_of(seed: int) -> list[object]:
        store = Kept()
        topology, _ = summing(numbers=20)
        topology.bolt("beside", asyncio.sleep, topology.spout("zeros", [0] * 20).shuffle(), concurrency=3)
        with closing(SimulatedLoop(seed)) as loop:
            loop.run_until_complete(run(topology, store))
        return [store.commits, store.load()]

    assert bytes_of(1) == bytes_of(1)


async def test_X7_an_epoch_that_does_not_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With the call that it waits for, and every half minute."""

    async def hang(value: int) -> None:
        await asyncio.sleep(70)

    topology = Topology("hanging", message_timeout=None)
    topology.bolt("hang", hang, topology.bolt("sum", Sum, topology.spout("one", [1]).shuffle()).shuffle())
    await run(topology)
    said = [each.message for each in caplog.records if "has not ended" in each.message]
    assert len(said) == 2
    assert said[0].startswith(
        "epoch 1 of topology 'hanging' has not ended for 31 s; it waits for hang[0], in "
    )
    assert "test_X5_X7_X14_epoch_bolts.py" in said[0]
    assert said[1].startswith("epoch 1 of topology 'hanging' has not ended for 61 s")


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X7_an_epoch_of_which_all_was_given_up_ends_after_a_failed_end() -> None:
    """There is nothing to be emitted again, and it is over all the same."""

    class Once(Sum):
        fails = True

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            raise Reject("never")

        def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
            if Once.fails:
                Once.fails = False
                raise OSError("once")
            super().end_epoch(epoch, out)

    topology, sums = summing(Once, numbers=1, epoch_messages=100)
    topology.spout("later", _one_later)
    async with topology.run() as running:
        await asyncio.sleep(100)
        assert sums == [(1, 0)]
        running.stop()


async def _one_later() -> Any:
    await asyncio.sleep(1000)
    yield 1


class Now(BasicBolt[int, int]):
    """Emits with each tick."""

    def __init__(self) -> None:
        self.ticks = 0

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Nothing but ticks."""

    def tick(self, out: Collector[int]) -> None:
        self.ticks += 1
        out.emit(self.ticks)


class Gather(EpochBolt[int, list[int]]):
    """Emits what it has got."""

    def __init__(self) -> None:
        self.got: list[int] = []

    def execute(self, tup: Tuple[int], out: Collector[list[int]]) -> None:
        self.got.append(tup.value)

    def end_epoch(self, epoch: Epoch, out: Collector[list[int]]) -> None:
        out.emit(self.got)


async def slowly(value: Any) -> Any:
    await asyncio.sleep(0.5)
    return value


async def test_X5_no_tick_comes_between_the_end_and_the_commit() -> None:
    """What it emits would be in no epoch."""

    async def numbers() -> Any:
        for each in range(10):
            await asyncio.sleep(1)
            yield each

    topology, got = Topology("ticking"), list[int]()
    ticks = topology.bolt("now", Now, topology.spout("numbers", numbers).global_(), tick=0.2)
    gathered = topology.bolt("gather", Gather, ticks.global_())
    topology.bolt("see", got.extend, topology.bolt("slow", slowly, gathered.global_()).global_())
    await run(topology)
    assert got == list(range(1, len(got) + 1))
    assert len(got) > 20


async def test_X5_what_a_tick_emits_is_committed_however_late_it_comes() -> None:
    """Also where it is on its way when the time of its epoch is up, and there is nothing else."""

    class Seldom(Now):
        def tick(self, out: Collector[int]) -> None:
            if not self.ticks:
                super().tick(out)

    seen: Sums = []

    def write() -> Write:
        made = Write()
        made.sums = seen
        return made

    async def late(value: int) -> int:
        await asyncio.sleep(2.5)
        return value

    topology = Topology("late")
    ticks = topology.bolt("seldom", Seldom, topology.spout("later", _one_later).global_(), tick=1.0)
    topology.bolt("write", write, topology.bolt("slow", late, ticks.global_()).global_())
    async with topology.run() as running:
        await asyncio.sleep(10)
        assert seen == [(1, 1)]
        running.stop()


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.01, 0.015, 0.02, 0.025])
async def test_X5_a_task_that_is_killed_at_the_end_is_told_of_it_all_the_same(seconds: float) -> None:
    """Also one that had no inputs."""
    sums: Sums = []

    class Wait(Sum):
        async def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:  # type: ignore[override]
            await asyncio.sleep(0.01)
            out.emit(1)

    def write() -> Write:
        made = Write()
        made.sums = sums
        return made

    topology = Topology("killing", epoch_messages=2, replay_delay=0.001)
    source = topology.spout("numbers", [1, 2, 3, 4])
    topology.bolt("write", write, topology.bolt("sum", Wait, source.global_(), parallelism=2).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(seconds)
        running.kill("sum", 1)
        await running.finished()
    assert sums == [(1, 1), (1, 1), (2, 1), (2, 1)]
