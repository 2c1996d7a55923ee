"""Spout classes whose messages the engine keeps and replays."""

from __future__ import annotations

import asyncio

import pytest

from stormlet import (
    Bolt,
    Collector,
    DeadLetter,
    EndOfStream,
    Failure,
    FailureKind,
    Reject,
    ReliableSpout,
    SpoutCollector,
    Topology,
    Tuple,
)
from tests.cast import Forget, ignore
from tests.helpers import run_to_end


class Numbers(ReliableSpout[int]):
    """Emits 0, 1, 2 under ids of its own, and notes what it is told of them."""

    def __init__(self) -> None:
        self.left = [0, 1, 2]
        self.told: list[tuple[object, FailureKind | None]] = []

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        number = self.left.pop(0)
        out.emit(number, message_id=f"id {number}", origin=("row", number))

    def ack(self, message_id: object) -> None:
        self.told.append((message_id, None))

    def fail(self, message_id: object, failure: Failure) -> None:
        self.told.append((message_id, failure.kind))


class Unstable(Bolt[int, None]):
    """Fails 1 at the first attempt and rejects 2; notes what it saw."""

    def __init__(self, seen: list[tuple[int, int, object]]) -> None:
        self.seen = seen

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        self.seen.append((tup.value, tup.attempt, tup.origin))
        if tup.value == 1 and tup.attempt == 1:
            out.fail(tup, "again")
        elif tup.value == 2:
            raise Reject("never")
        else:
            out.ack(tup)


def topology_of(spout: Numbers, seen: list[tuple[int, int, object]], **options: object) -> Topology:
    topology = Topology("reliable", **options)
    numbers = topology.spout("numbers", lambda: spout)
    topology.bolt("unstable", lambda: Unstable(seen), numbers.shuffle())
    return topology


@pytest.mark.simulated_time
async def test_it_hears_only_final_outcomes() -> None:
    """A failed attempt is replayed with its origin and told to nobody; what is given up fails once."""
    spout, seen = Numbers(), list[tuple[int, int, object]]()
    letters: list[DeadLetter] = []
    running = await run_to_end(topology_of(spout, seen), dead_letters=letters.append)
    assert seen == [(0, 1, ("row", 0)), (1, 1, ("row", 1)), (2, 1, ("row", 2)), (1, 2, ("row", 1))]
    assert spout.told == [("id 0", None), ("id 2", FailureKind.FAILED), ("id 1", None)]
    assert [(each.message_id, each.value, each.origin) for each in letters] == [("id 2", 2, ("row", 2))]
    numbers = running.statistics().components["numbers"]
    assert (numbers.acked, numbers.failed, numbers.replayed, numbers.dead_letters) == (2, 2, 1, 1)
    assert numbers.pending == 0


@pytest.mark.simulated_time
async def test_it_fails_after_the_dead_letter_is_kept() -> None:
    """The spout is told when the sink has the letter, not before; the message is pending until then."""
    spout, order = Numbers(), list[str]()

    async def keep(letter: DeadLetter) -> None:
        await asyncio.sleep(3)
        assert ("id 2", FailureKind.FAILED) not in spout.told
        order.append("kept")

    topology = topology_of(spout, [])
    async with topology.run(dead_letters=keep) as running:
        await asyncio.sleep(2)
        assert running.statistics().components["numbers"].pending == 1
        await running.finished()
    assert order == ["kept"]
    assert spout.told[-1] == ("id 2", FailureKind.FAILED)


@pytest.mark.simulated_time
async def test_a_spout_may_take_back_what_is_given_up() -> None:
    """With ``buries = False`` there are no dead letters: ``fail`` alone tells, after the same attempts."""

    class Keeps(Numbers):
        buries = False

    spout, letters = Keeps(), list[DeadLetter]()
    running = await run_to_end(topology_of(spout, []), dead_letters=letters.append)
    assert spout.told == [("id 0", None), ("id 2", FailureKind.FAILED), ("id 1", None)]
    assert letters == []
    numbers = running.statistics().components["numbers"]
    assert (numbers.failed, numbers.replayed, numbers.dead_letters, numbers.pending) == (2, 1, 0, 0)


@pytest.mark.simulated_time
async def test_what_is_left_over_fails_with_shutdown() -> None:
    """At the deadline of a drain each message is told of as left over, and goes to the sink."""
    spout, letters = Numbers(), list[DeadLetter]()
    topology = Topology("left over", drain_timeout=1, message_timeout=None)
    topology.bolt("hold", Forget, topology.spout("numbers", lambda: spout).shuffle())
    async with topology.run(dead_letters=letters.append) as running:
        await asyncio.sleep(1)
    assert spout.told == [(f"id {number}", FailureKind.SHUTDOWN) for number in range(3)]
    assert running.statistics().left_over == len(letters) == 3
    assert running.statistics().components["numbers"].pending == 0


@pytest.mark.simulated_time
async def test_without_an_id_nothing_is_kept() -> None:
    """What it emits untracked is tracked by nobody (law L10)."""

    class Untracked(Numbers):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            if not self.left:
                raise EndOfStream
            out.emit(self.left.pop())

    spout = Untracked()
    topology = Topology("untracked")
    topology.bolt("ignore", ignore, topology.spout("numbers", lambda: spout).shuffle())
    running = await run_to_end(topology)
    assert spout.told == []
    assert running.statistics().components["numbers"].acked == 0
