"""Messages that belong to epochs: when these end, what is told after, and where the next run goes on (law X1 to X8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import ClassVar, cast

import pytest

from stormlet import EndOfStream, Spout, SpoutCollector, TaskContext, Topology, TopologyCrashed
from stormlet.errors import StateUnusable
from tests.epochs.stores import Kept

pytestmark = pytest.mark.simulated_time


def numbers(count: int, **options: object) -> tuple[Topology, list[int]]:
    """A topology of numbers, and the list of those that its bolt has seen."""
    topology = Topology("numbers", **options)  # type: ignore[arg-type]
    seen: list[int] = []
    topology.bolt("see", seen.append, topology.spout("numbers", list(range(count))).shuffle())
    return topology, seen


async def test_X1_a_finite_run_ends_with_a_commit() -> None:
    """What was emitted is durable when the run has ended (law X12)."""
    topology, seen = numbers(5)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    assert (seen, store.epochs) == ([0, 1, 2, 3, 4], [1])
    assert running.statistics().components["numbers"].acked == 5
    assert store.closed == 1


async def test_X2_an_epoch_ends_when_it_is_full() -> None:
    """``epoch_messages`` is its bound, and the numbers have no gaps (law X2)."""
    topology, _ = numbers(10, epoch_messages=4)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    assert store.epochs == [1, 2, 3]


async def test_X1_an_epoch_ends_some_seconds_after_its_first_message() -> None:
    """A source that gives little does not keep what it gave waiting."""
    topology = Topology("slow", epoch_seconds=2.0)
    store = Kept()

    async def slow() -> object:
        for each in range(3):
            await asyncio.sleep(1.5)
            yield each

    topology.bolt("see", lambda value: None, topology.spout("slow", slow).shuffle())
    times: list[float] = []
    keep = store.commit
    store.commit = lambda commit: (times.append(asyncio.get_running_loop().time()), keep(commit))[1]  # type: ignore[method-assign]
    began = asyncio.get_running_loop().time()
    async with topology.run(state=store) as running:
        await running.finished()
    assert [round(each - began, 3) for each in times] == [3.5, 4.5]


async def test_X8_the_next_run_goes_on_after_the_last_epoch() -> None:
    """A list is gone through again, without what is durable (law X8)."""
    topology, seen = numbers(6, epoch_messages=2)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    store.commits.pop()
    del seen[:]
    async with topology.run(state=store) as running:
        await running.finished()
    assert (seen, store.epochs) == ([4, 5], [1, 2, 3])


async def test_X8_a_source_that_gives_something_else_fails_the_start() -> None:
    """Its position means nothing then."""
    topology, _ = numbers(4)
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    other, _ = numbers(3)
    with pytest.raises(TopologyCrashed) as crash:
        async with other.run(state=store) as running:
            await running.finished()
    assert "gives only 3 values, of which 4 are durable" in str(crash.value.__cause__)


async def test_X3_the_host_hears_when_its_epoch_is_durable() -> None:
    """Its message is acked after the commit, which does not wait for the end of the epoch's time (law X3)."""
    topology = Topology("fed", epoch_seconds=1000.0)
    fed = topology.spout("fed")
    topology.bolt("see", lambda value: None, fed.shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        tree = await running.emit(fed, 1)
        await tree
        assert store.epochs == [1]


async def test_X6_a_failed_message_that_has_reached_no_state_is_replayed_in_its_epoch() -> None:
    """It spoils nothing (law X6)."""
    topology = Topology("failing")
    attempts: list[int] = []

    def fail_once(value: int) -> None:
        attempts.append(value)
        if attempts == [0, 1]:
            raise ValueError("once")

    topology.bolt("fail", fail_once, topology.spout("numbers", [0, 1, 2]).shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    assert (attempts, store.epochs) == ([0, 1, 2, 1], [1])
    assert running.statistics().components["numbers"].acked == 3


async def test_X3_a_message_that_is_given_up_is_a_dead_letter_after_the_commit() -> None:
    """Nobody hears of it before (law X3, X12)."""
    topology = Topology("failing", max_attempts=2)

    def fail(value: int) -> None:
        if value == 1:
            raise ValueError("always")

    topology.bolt("fail", fail, topology.spout("numbers", [0, 1, 2]).shuffle())
    store = Kept()
    letters: list[tuple[object, list[int]]] = []
    async with topology.run(
        state=store, dead_letters=lambda letter: letters.append((letter.value, store.epochs))
    ) as running:
        await running.finished()
    assert letters == [(1, [1])]
    assert running.statistics().components["numbers"].dead_letters == 1


async def test_X4_a_write_that_fails_crashes_the_run_and_nobody_is_told() -> None:
    """Everything up to the epoch before is kept (law X1)."""
    topology, _ = numbers(3)
    store = Kept()
    store.fails = True
    with pytest.raises(TopologyCrashed) as crash:
        async with topology.run(state=store) as running:
            await running.finished()
    assert isinstance(crash.value.__cause__, StateUnusable)
    assert running.statistics().components["numbers"].left_over == 3


async def test_X5_what_a_tick_emits_belongs_to_the_epoch() -> None:
    """Within epochs nothing is untracked (law X5)."""
    from stormlet import BasicBolt, Collector

    class Ticking(BasicBolt[int, str]):
        def execute(self, tup: object, out: Collector[str]) -> None:
            pass

        def finish(self, out: Collector[str]) -> None:
            out.emit("total")

    topology = Topology("ticking")
    last: list[tuple[str, list[int]]] = []
    store = Kept()
    totals = topology.bolt("ticking", Ticking, topology.spout("numbers", [0, 1]).shuffle())

    async def see(value: str) -> None:
        await asyncio.sleep(5)
        last.append((value, store.epochs))

    topology.bolt("see", see, totals.shuffle())
    async with topology.run(state=store) as running:
        await running.finished()
    assert last == [("total", [])]
    assert store.epochs == [1]


def resumable(given: list[object]) -> object:
    def source(resume: object = None) -> Iterator[int]:
        given.append(resume)
        yield from range(0 if resume is None else int(str(resume)) + 1, 4)

    return source


async def test_X8_a_generator_that_takes_resume_is_called_with_the_last_durable_value() -> None:
    """It need not give again what is durable (law X8)."""
    given: list[object] = []
    topology = Topology("resumed")
    seen: list[int] = []
    topology.bolt("see", seen.append, topology.spout("numbers", resumable(given)).shuffle())  # type: ignore[arg-type]
    store = Kept()
    async with topology.run(state=store, epoch_messages=2) as running:
        await running.finished()
    store.commits.pop()
    async with topology.run(state=store) as running:
        await running.finished()
    assert (given, seen) == ([None, 1], [0, 1, 2, 3, 2, 3])


class Letters(Spout[str]):
    """Gives the letters of several shelves, each from its last durable one on."""

    resumable = True
    shelves: ClassVar[dict[str, str]] = {"x": "abc", "y": "def"}

    def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
        self.left = [
            (shelf, place)
            for shelf, letters in self.shelves.items()
            for place in range(_after(context.resume.get(shelf)), len(letters))
        ]

    def next_tuple(self, out: SpoutCollector[str]) -> None:
        if not self.left:
            raise EndOfStream
        shelf, place = self.left.pop(0)
        out.emit(self.shelves[shelf][place], message_id=(shelf, place))

    def partition(self, message_id: object) -> str:
        return cast("tuple[str, int]", message_id)[0]


def _after(last: object) -> int:
    return 0 if last is None else cast("tuple[str, int]", last)[1] + 1


async def test_X8_a_spout_class_is_told_the_last_durable_message_of_each_partition() -> None:
    """It goes on after these (law X8)."""
    topology = Topology("letters", epoch_messages=4)
    seen: list[str] = []
    topology.bolt("see", seen.append, topology.spout("letters", Letters).shuffle())
    store = Kept()
    async with topology.run(state=store) as running:
        await running.finished()
    store.commits.pop()
    async with topology.run(state=store) as running:
        await running.finished()
    assert "".join(seen) == "abcdefef"
