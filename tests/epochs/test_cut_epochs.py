"""Epochs that a source cuts itself, where no state keeps them: pauses, deaths, and a kill at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from stormlet import Bolt, Collector, Committer, Epoch, Reject, Topology, TopologyCrashed, Tuple
from stormlet.core.outcomes import DeadLetter
from tests.epochs.cutting import Source
from tests.helpers import now, run_to_end

pytestmark = [pytest.mark.asyncio, pytest.mark.simulated_time]

Written = dict[int, list[int]]
WHOLE = {0: list(range(10)), 1: list(range(10, 20))}


class Files(Committer[int]):
    """Has the last rows of each number, as directories do, after some seconds."""

    def __init__(self, written: Written, seconds: float, failing: Iterator[object]) -> None:
        self.written = written
        self.seconds = seconds
        self.failing = failing

    async def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        await asyncio.sleep(self.seconds)
        for _ in self.failing:
            raise OSError("the disk is full")
        self.written[epoch.number] = sorted(rows)


def topology_of(source: Source, files: Callable[[], Files], logic: Any, **options: Any) -> Topology:
    """Numbers, one bolt, and a committer."""
    topology = Topology("cut", **{"replay_delay": 0.1, **options})
    made = topology.bolt(
        "logic", logic, topology.spout("numbers", source, outputs=int).shuffle(), outputs=int
    )
    topology.bolt("write", files, made.shuffle())
    return topology


def writing(written: Written, seconds: float = 0.0, failures: int = 0) -> Callable[[], Files]:
    """Make committers that share what they fail for."""
    failing = iter(range(failures))

    def write() -> Files:
        return Files(written, seconds, failing)

    return write


def once(*numbers: int) -> Callable[[int], Iterator[int]]:
    """Fail each of these once, after it has reached the committer."""
    failing = set(numbers)

    def execute(value: int) -> Iterator[int]:
        yield value
        if value in failing:
            failing.remove(value)
            raise OSError("flaky")

    return execute


async def test_a_pause_of_the_topology() -> None:
    """Deactivated within a back-off or a commit and activated again, it goes on where it was."""
    source, written = Source(20, 10), Written()
    async with topology_of(source, writing(written, 0.08), once(3, 14)).run() as running:
        for _ in range(40):
            await asyncio.sleep(0.05)
            running.deactivate()
            await asyncio.sleep(0.05)
            running.activate()
        await running.finished()
    assert (written, source.events) == (WHOLE, [("done", 0), ("done", 1)])


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("failures", [0, 1])
async def test_a_committer_whose_task_dies_within_a_commit(failures: int) -> None:
    """The next instance gets the same epoch, and the source hears of it when that has brought it."""
    source, written = Source(20, 10), Written()
    async with topology_of(source, writing(written, 5.0, failures), once()).run() as running:
        await asyncio.sleep(1.0)
        running.kill("write")
        await running.finished()
    assert (written, source.done) == (WHOLE, 2)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_a_bolt_that_is_restarted() -> None:
    """What it held is replayed with its epoch, and the committer has each row once."""

    class Dies(Bolt[int, int]):
        lives = 0

        def __init__(self) -> None:
            Dies.lives += 1
            self.held: list[Tuple[int]] = []

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(tup.value, anchors=tup)
            self.held.append(tup)

        def flush(self, out: Collector[int]) -> None:
            if Dies.lives < 4:
                raise OSError("dead")
            while self.held:
                out.ack(self.held.pop())

    source, written = Source(20, 10), Written()
    await run_to_end(topology_of(source, writing(written), Dies))
    assert (Dies.lives, written) == (4, WHOLE)


async def test_timeouts_count_as_attempts() -> None:
    """A message that never ends is given up when it has timed out often enough, and the others are written."""
    source, written, letters = Source(10, 10), Written(), list[DeadLetter]()

    async def slow(value: int) -> AsyncIterator[int]:
        yield value
        if value == 9:  # with nothing behind it that would have to wait, too
            await asyncio.sleep(20)

    topology = topology_of(source, writing(written), slow, message_timeout=5.0, max_attempts=2)
    await run_to_end(topology, dead_letters=letters.append)
    assert written == {0: list(range(9))}
    assert [(letter.value, letter.attempts) for letter in letters] == [(9, 2)]


async def test_a_commit_that_takes_longer_than_the_drain_may(caplog: pytest.LogCaptureFixture) -> None:
    """The source does not hear of its epoch, which comes again in the next run, under its number."""
    source, written = Source(20, 10), Written()
    async with topology_of(source, writing(written, 500.0), once(), drain_timeout=3.0).run() as running:
        await asyncio.sleep(1.0)
        running.stop()
    assert (now() < 10, written, source.done) == (True, {}, 0)
    assert "committer 'write' has not committed epoch 0 (10 rows); the next run begins with it" in caplog.text
    await run_to_end(topology_of(source, writing(written), once()))
    assert written == WHOLE


async def test_a_commit_that_fails_while_the_run_ends() -> None:
    """The block raises what it has failed with, as the epoch is not where the host expects it."""
    source, written = Source(20, 10), Written()

    async def run() -> None:
        async with topology_of(source, writing(written, 1.0, 100), once()).run() as running:
            await asyncio.sleep(0.5)
            running.stop()

    with pytest.raises(TopologyCrashed) as crash:
        await run()
    assert str(crash.value.__cause__) == "the disk is full"
    assert (written, source.done) == ({}, 0)


@pytest.mark.parametrize("seed", range(3))
async def test_a_kill_at_any_moment(seed: int) -> None:
    """From all that stood outside then, another run brings each message once, and each letter; those of an epoch that
    the source had not noted may come twice."""
    random, source, written, letters = Random(seed), Source(50, 10), Written(), list[int]()
    moments: list[tuple[Source, Written, list[int]]] = []

    async def unsteady(value: int) -> AsyncIterator[int]:
        await asyncio.sleep(0.01)
        yield value
        if value % 10 == 7:
            raise Reject("unlucky")
        if random.random() < 0.02:
            raise OSError("flaky")

    async def bury(letter: DeadLetter, of: list[int]) -> None:
        await asyncio.sleep(0.05)
        of.append(letter.value)

    async def run(of: Source, rows: Written, buried: list[int]) -> None:
        topology = topology_of(of, writing(rows, 0.1), unsteady, max_attempts=50)
        await run_to_end(topology, dead_letters=lambda letter: bury(letter, buried))

    first = asyncio.ensure_future(run(source, written, letters))
    while not first.done():
        moments.append(deepcopy((source, written, letters)))
        await asyncio.sleep(0.005)
    for state in random.sample(moments, 60):
        epochs_before = len(state[1])
        await run(*state)
        rows = [row for each in state[1].values() for row in each]
        assert sorted(rows) == [value for value in range(50) if value % 10 != 7]
        assert set(state[2]) == {7, 17, 27, 37, 47}
        assert len(state[2]) <= 6, f"killed after {epochs_before} epochs"
