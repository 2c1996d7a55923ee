"""F5: other threads run while a topology keeps the loop busy. Real time is the subject."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count, repeat
from pathlib import Path

import pytest

from stormlet import KeyedBolt, Topology, Tuple, Value
from stormlet.model.components import Collector
from stormlet.runtime.other_threads import MOMENT, Load, OtherThreads, Sleeps, Slept
from stormlet.runtime.slices import TimedSlices

PATIENCE = 10.0
"""Seconds for what takes one or two. On a machine with an idle core it takes more than twenty without F5; where all
cores are busy, other threads get the interpreter without it."""


def split(line: str) -> Iterator[str]:
    yield from line.split()


def forget(word: str) -> None: ...


class Count(KeyedBolt[str, str, int]):
    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[int]) -> None:
        self.total += 1


@asynccontextmanager
async def a_busy_loop() -> AsyncIterator[None]:
    """A topology that always has something to do."""
    topology = Topology("busy")
    lines = topology.spout("lines", repeat("to be or not to be"))
    words = topology.bolt("split", split, lines.shuffle())
    topology.bolt("forget", forget, words.fields())
    async with topology.run() as running:
        yield
        running.stop()


def call_often() -> None:
    """Code that lets go of the interpreter and needs it again, as sqlite and sockets do."""
    for _ in range(500):
        time.sleep(1e-5)


def test_F5_a_thread_of_the_host_runs_beside_a_busy_topology() -> None:
    """It needs the interpreter 500 times."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE), a_busy_loop():
            await asyncio.to_thread(call_often)

    asyncio.run(main())


def test_F5_an_epoch_becomes_durable_beside_a_busy_topology(tmp_path: Path) -> None:
    """A thread writes it."""
    topology = Topology("kept")
    words = topology.spout("words", outputs=str)
    topology.bolt("count", Count, words.fields())

    async def main() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            a_busy_loop(),
            topology.run(state=tmp_path / "kept.state") as running,
        ):
            for _ in range(40):
                await (await running.emit(words, "word"))
            assert running.state("count")["word"] == 40

    asyncio.run(main())


class GivenLoad(Load):
    busy = True

    def was_busy(self, slept: int | None) -> bool:
        return self.busy


class Counted:
    """What the system has counted, and how long the loop has slept."""

    def __init__(self) -> None:
        self.sleeps = 1000.0
        self.slept = list[float]()
        self.load = GivenLoad()
        self.slept_for_any = Slept()
        self.others = self.of_another_topology()
        self._now = 0.0

    def of_another_topology(self) -> OtherThreads:
        return OtherThreads(
            lambda: Sleeps(None, int(self.sleeps)), self.slept.append, self.load, self.slept_for_any
        )

    def iterations(self, count: int, *others: OtherThreads, sleeps_in_each: float) -> None:
        """Iterations of 2 ms, in each of which other threads go to sleep so often."""
        for _ in range(count):
            self._now += 0.002
            self.sleeps += sleeps_in_each
            for each in others or (self.others,):
                each.iteration_begins(self._now)


def test_F5_the_loop_sleeps_for_who_is_woken_in_vain() -> None:
    """One look in five milliseconds, which are three iterations here."""
    counted = Counted()
    counted.iterations(300, sleeps_in_each=1)
    assert set(counted.slept) == {MOMENT}
    assert len(counted.slept) == 100 - 1


def test_F5_slices_count_the_iterations() -> None:
    """All of them, as nothing else would tell those that wait from others."""

    async def main() -> None:
        counted = Counted()
        clock = count(step=0.002)
        slices = TimedSlices(asyncio.get_running_loop(), 1.0, lambda: next(clock), counted.others)
        for _ in range(10):
            slices.begin()
            counted.sleeps += 1
            await asyncio.sleep(0)
        assert counted.slept

    asyncio.run(main())


@pytest.mark.parametrize("sleeps", [0, 0.2])
def test_F5_the_loop_does_not_sleep_for_who_waits_for_something_else(sleeps: float) -> None:
    """Not at all, or in every fifth iteration."""
    counted = Counted()
    counted.iterations(300, sleeps_in_each=sleeps)
    assert not counted.slept


def test_F5_the_loop_does_not_sleep_if_it_was_idle() -> None:
    """Then the interpreter was free."""
    counted = Counted()
    counted.load.busy = False
    counted.iterations(300, sleeps_in_each=1)
    assert not counted.slept


def test_F5_one_topology_sleeps_for_all_on_the_loop() -> None:
    """Else the host would wait for each of them."""
    counted = Counted()
    counted.iterations(300, *[counted.of_another_topology() for _ in range(20)], sleeps_in_each=1)
    assert len(counted.slept) == 100 - 1


def test_F5_a_thread_that_computes_is_busy() -> None:
    """One that sleeps is not, and one that has not slept is, however little of a core it had."""
    now, computed = 0.0, 0.0
    load = Load(lambda: now, lambda: computed)
    load.begin(3)
    now, computed = 1.0, 0.4
    assert not load.was_busy(4)
    assert load.was_busy(3)
    assert not load.was_busy(None)
    computed = 0.6
    assert load.was_busy(4)
    load.begin(4)
    now = 2.0
    assert not load.was_busy(5)
