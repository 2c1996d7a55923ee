"""Rows of whole epochs for the outside: when committers get them, and how often (law X9 to X13)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

import pytest

from stormlet import (
    Committer,
    Epoch,
    Topology,
    TopologyCrashed,
    opaque,
    transactional,
)
from stormlet.core.state.commits import Commit
from stormlet.errors import StateUnusable
from stormlet.state.memory import MemoryStore

pytestmark = pytest.mark.simulated_time

Seen = list[tuple[int, list[int]]]


class Write(Committer[int]):
    """Notes the epochs that it gets; ``fails`` says how often it raises before it does."""

    def __init__(self, seen: Seen, fails: list[int] | None = None) -> None:
        self.seen = seen
        self.fails = [] if fails is None else fails

    async def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        await asyncio.sleep(0.01)
        if self.fails:
            self.fails.pop()
            raise OSError("the sink is gone")
        self.seen.append((epoch.number, list(rows)))


def numbers(make: Callable[[], Committer[int]], count: int = 6, **options: object) -> Topology:
    """A topology of numbers, two to an epoch, that end in a committer."""
    topology = Topology("numbers", **{"epoch_messages": 2, **options})  # type: ignore[arg-type]
    topology.bolt("write", make, topology.spout("numbers", list(range(count))).shuffle())
    return topology


async def run(topology: Topology, store: MemoryStore | None = None, lingers: float = 0.0) -> None:
    """Run to the end; the host ``lingers`` before it leaves the block."""
    async with topology.run(state=store) as running:
        try:
            await running.finished()
        finally:
            await asyncio.sleep(lingers)


THREE = [(1, [0, 1]), (2, [2, 3]), (3, [4, 5])]


async def test_X9_a_committer_gets_the_rows_of_each_epoch_in_order() -> None:
    """Once each, and all of them before the run has finished (law X12)."""
    seen: Seen = []
    await run(numbers(partial(Write, seen)))
    assert seen == THREE


async def test_X9_an_epoch_is_durable_before_it_is_delivered() -> None:
    """What a committer has had is never missing in the state."""
    store = MemoryStore("line")
    durable: list[int] = []

    class Look(Committer[int]):
        def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
            durable.append(store.load().epoch)

    await run(numbers(Look), store)
    assert durable == [1, 2, 3]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X9_an_epoch_that_failed_comes_again_to_another_instance() -> None:
    """With the same number and the same rows."""
    seen: Seen = []
    await run(numbers(partial(Write, seen, [1, 1])))
    assert seen == THREE


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X9_the_next_run_begins_with_what_was_not_delivered() -> None:
    """A committer that fails too often crashes the run, and nothing is lost."""
    store = MemoryStore("line")
    seen: Seen = []
    with pytest.raises(TopologyCrashed, match=r"commit of write.*the sink is gone"):
        await run(numbers(partial(Write, seen, [1] * 10), max_restarts=2), store)
    assert (seen, [rows.epoch for rows in store.load().outbox]) == ([], [1])
    await run(numbers(partial(Write, seen)), store)
    assert seen == THREE
    assert not store.load().outbox


async def test_X9_what_was_delivered_is_forgotten_at_the_end() -> None:
    """Else the next run would bring it again."""
    store = MemoryStore("line")
    seen: Seen = []
    for _ in range(2):
        await run(numbers(partial(Write, seen)), store)
    assert seen == THREE


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X9_rows_of_an_attempt_that_is_forgotten_are_forgotten() -> None:
    """A message that fails beside the committer has its row written once."""
    seen: Seen = []
    topology = Topology("beside", epoch_messages=3, replay_delay=0.01)
    source = topology.spout("numbers", [0, 1, 2])
    topology.bolt("write", partial(Write, seen), source.shuffle())
    fails = [1]

    async def beside(value: int) -> None:
        await asyncio.sleep(0.1)
        if value == 1 and fails:
            fails.pop()
            raise ValueError("once")

    topology.bolt("beside", beside, source.shuffle())
    await run(topology)
    assert [row for _, rows in seen for row in rows] == [0, 1, 2]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X9_what_is_left_of_a_failed_tree_has_no_row() -> None:
    """The replay of its message has one (law X6)."""
    seen: Seen = []
    topology = Topology("left", replay_delay=0.01)
    source = topology.spout("numbers", [0])

    async def slow(value: int) -> int:
        await asyncio.sleep(0.1)
        return value

    topology.bolt("write", partial(Write, seen), topology.bolt("slow", slow, source.shuffle()).shuffle())
    fails = [1]

    def beside(value: int) -> None:
        if fails:
            fails.pop()
            raise ValueError("at once")

    topology.bolt("beside", beside, source.shuffle())
    await run(topology)
    assert seen == [(1, [0])]


async def test_X4_the_next_epoch_runs_while_one_is_delivered() -> None:
    """It ends after that."""
    happened: list[str] = []

    class Slow(Committer[int]):
        async def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
            happened.append(f"{epoch} begins")
            await asyncio.sleep(1)
            happened.append(f"{epoch} is there")

    topology = Topology("slow", epoch_messages=2)
    seen = topology.bolt("see", _noted(happened), topology.spout("numbers", [0, 1, 2, 3]).shuffle())
    topology.bolt("write", Slow, seen.shuffle())
    await run(topology)
    assert happened == [
        *("0", "1", "epoch 1 begins", "2", "3", "epoch 1 is there"),
        *("epoch 2 begins", "epoch 2 is there"),
    ]


def _noted(happened: list[str]) -> Callable[[int], int]:
    def see(value: int) -> int:
        happened.append(str(value))
        return value

    return see


@pytest.mark.simulated_time(allow_leaks=["errors"])
class Doubtful(MemoryStore):
    """Makes the second epoch durable, and raises."""

    def commit(self, commit: Commit) -> None:
        super().commit(commit)
        if commit.epoch == 2:
            raise StateUnusable("the disk says nothing")


async def test_X4_no_epoch_follows_one_that_was_not_written() -> None:
    """If it is durable all the same, its rows are delivered before any others: by the next run."""
    seen: Seen = []
    store, topology = Doubtful("line"), numbers(partial(Write, seen))
    with pytest.raises(TopologyCrashed):
        await run(topology, store, lingers=1.0)
    await run(topology, store)
    assert seen == THREE


async def test_X9_a_committer_that_is_killed_gets_its_epoch_again() -> None:
    """A death in the midst of a commit is no end of it."""
    seen: Seen = []
    async with numbers(partial(Write, seen)).run() as running:
        await asyncio.sleep(0.005)
        running.kill("write")
        await running.finished()
    assert seen == THREE


async def test_X9_rows_of_a_committer_that_is_gone_fail_the_start() -> None:
    """They would be lost otherwise."""
    store = MemoryStore("line")
    await _leave_rows(store)
    topology = Topology("numbers")
    topology.bolt("other", partial(Write, []), topology.spout("numbers", list(range(6))).shuffle())
    with pytest.raises(StateUnusable, match=r"committer 'write' has not had its rows of epoch 1"):
        await run(topology, store)


async def _leave_rows(store: MemoryStore) -> None:
    async with numbers(partial(Write, [])).run(state=store) as running:
        while not store.load().outbox:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        running.stop()
        running.stop()


async def test_X10_epochs_know_their_line() -> None:
    """It is that of the state, and each run's own without."""
    epochs: list[Epoch] = []

    class Line(Committer[int]):
        def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
            epochs.append(epoch)

    await run(numbers(Line, count=1), MemoryStore("a line"))
    await run(numbers(Line, count=1))
    await run(numbers(Line, count=1))
    assert epochs[0] == Epoch(1, "a line")
    assert epochs[1].line != epochs[2].line
    assert epochs[2].follows(epochs[1])  # nothing of that run is known any more


def test_X10_an_epoch_follows_what_a_sink_has_had() -> None:
    """By its number, within its line."""
    assert Epoch(3, "a").follows(None)
    assert Epoch(3, "a").follows(Epoch(2, "a"))
    assert not Epoch(3, "a").follows(Epoch(3, "a"))
    rewound = Epoch(4, "b", ancestors=[("a", 2)])
    assert rewound.follows(Epoch(2, "a"))
    with pytest.raises(ValueError, match="epoch 4 is of another line"):
        rewound.follows(Epoch(3, "a"))
    with pytest.raises(ValueError, match="began anew"):
        Epoch(3, "b").follows(Epoch(2, "a"))


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X11_a_bolt_that_acts_by_itself_does_so_in_each_attempt() -> None:
    """Its row is committed once all the same."""
    seen: Seen = []
    calls: list[int] = []
    topology = Topology("by itself", replay_delay=0.01)
    source = topology.spout("numbers", [0])

    def act(value: int) -> int:
        calls.append(value)
        return value

    topology.bolt("write", partial(Write, seen), topology.bolt("act", act, source.shuffle()).shuffle())
    fails = [1]

    async def beside(value: int) -> None:
        await asyncio.sleep(0.1)
        if fails:
            fails.pop()
            raise ValueError("once")

    topology.bolt("beside", beside, source.shuffle())
    await run(topology)
    assert (calls, seen) == ([0, 0], [(1, [0])])


async def test_X12_a_stop_commits_and_delivers_what_was_emitted() -> None:
    """The source is asked for no more."""
    seen: Seen = []
    store = MemoryStore("line")

    def endless() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    topology = Topology("endless", epoch_messages=1000, max_spout_pending=10)
    topology.bolt("write", partial(Write, seen), topology.spout("numbers", endless).shuffle())
    async with topology.run(state=store) as running:
        await asyncio.sleep(0.5)
        running.stop()
        await running.finished()
    rows = [row for _, rows in seen for row in rows]
    assert rows == list(range(running.statistics().components["numbers"].acked))
    assert rows


async def test_X12_rows_that_nobody_will_deliver_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Without ``state=`` a run that is cut short loses them."""
    with caplog.at_level(logging.ERROR):
        async with numbers(partial(Write, [])).run() as running:
            await asyncio.sleep(0.005)
            running.stop()
            running.stop()
    assert (
        "committer 'write' has not committed epoch 1 (2 rows); it is lost, as there is no state="
        in caplog.text
    )


def test_X13_a_value_is_changed_once_by_an_epoch() -> None:
    """By the rules of Trident's states."""
    once = transactional(None, 1, lambda before: (before or 0) + 3)
    assert transactional(once, 1, lambda before: 99) == once
    again = opaque(opaque(None, 1, lambda before: 3), 1, lambda before: (before or 0) + 4)
    assert (once.value, again.value) == (3, 4)
    with pytest.raises(ValueError, match="epoch 1 comes after epoch 2"):
        transactional(transactional(None, 2, lambda before: 0), 1, lambda before: 0)


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X9_rows_that_a_failed_commit_has_changed_come_again_as_they_were() -> None:
    """A committer may take the list apart."""
    calls: list[list[int]] = []

    class Takes(Committer[dict[str, int]]):
        def commit(self, epoch: Epoch, rows: Sequence[dict[str, int]]) -> None:
            left = cast("list[dict[str, int]]", rows)
            calls.append([each["n"] for each in left])
            left.pop(0)["n"] = 7
            left[0]["n"] = 8
            if len(calls) == 1:
                raise OSError("once")

    topology = Topology("taking")
    topology.bolt("write", Takes, topology.spout("rows", [{"n": 1}, {"n": 2}]).shuffle())
    await run(topology)
    assert calls == [[1, 2], [1, 2]]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X9_a_call_that_was_cancelled_with_a_host_that_stays_comes_again() -> None:
    """A host may catch a cancellation and drain, as at Ctrl-C."""
    seen: Seen = []

    class Slow(Write):
        async def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
            await asyncio.sleep(1)
            await super().commit(epoch, rows)

    async with numbers(partial(Slow, seen), count=2).run() as running:
        host = asyncio.current_task()
        assert host is not None
        asyncio.get_running_loop().call_later(0.5, _cancel_commit_and, host)
        try:
            await running.finished()
        except asyncio.CancelledError:
            host.uncancel()
        await running.finished()
    assert seen == [(1, [0, 1])]


def _cancel_commit_and(host: asyncio.Task[object]) -> None:
    host.cancel()
    for each in asyncio.all_tasks():
        if "commit" in each.get_name():
            each.cancel()


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_X4_what_cannot_be_noted_at_the_end_crashes_the_run_with_all_counted() -> None:
    """The crash is that of the commit, if there was one before."""
    store = MemoryStore("line")

    def full(*arguments: object) -> None:
        raise StateUnusable("the disk is full")

    left = numbers(partial(Write, [])).run(state=store)
    running = await left.__aenter__()
    await running.finished()
    store.note_delivered = full  # type: ignore[method-assign]
    with pytest.raises(TopologyCrashed, match="epoch 3: the disk is full"):
        await left.__aexit__(None, None, None)
    assert running.statistics().components["numbers"].acked == 6
