"""What is told of attempts that have failed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stormlet import Bolt, Collector, DeadLetter, FailureKind, Place, Topology, TreeState, TupleTimedOut
from stormlet.core.tuples import Tuple
from tests.cast import Forget, Hold
from tests.runtime.explain.reading import lines

pytestmark = pytest.mark.simulated_time


def refuse(value: object) -> None:
    raise LookupError(value)


async def test_a_tree_that_failed_twice_tells_of_both_and_when_it_is_replayed() -> None:
    """Exception, component and line of each attempt, and the seconds until the next one."""
    topology = Topology("again", drain_timeout=0, replay_delay=8, replay_delay_max=100)
    source = topology.spout("source")
    topology.bolt("refuse", refuse, source.shuffle())
    async with topology.run(seed=1) as running:
        tree = await running.emit(source, "a", attempts=3)
        await asyncio.sleep(12)
        explanation = tree.explain()
        same = running.explain(explanation.root or 0)
    assert explanation.state is TreeState.WAITING
    assert str(same) == str(explanation)
    assert explanation.replay_in is not None
    assert 0 < explanation.replay_in < 24
    failed = "failed in refuse[0]: LookupError('a'), raised in refuse (test_failed_attempts.py)"
    assert lines(explanation)[1:] == [
        f"attempt 1 failed after 0 s: {failed}",
        f"attempt 2 failed after 0 s: {failed}",
    ]
    assert lines(explanation)[0].startswith("message of 'source', 'a', waits for its replay in ")


async def test_a_message_of_a_generator_is_found_between_two_attempts() -> None:
    """By the root that a bolt has seen in its last attempt, as one of the host is."""
    roots: list[int] = []

    class Refuse(Bolt[object, None]):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            roots.extend(tup.roots)
            out.fail(tup, "no")

    topology = Topology("again", drain_timeout=0, replay_delay=8)
    topology.bolt("refuse", Refuse, topology.spout("numbers", [7]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(12)
        explanation = running.explain(roots[-1])
        (oldest,) = running.explain_oldest()
    assert (explanation.state, explanation.root) == (TreeState.WAITING, roots[-1])
    assert str(explanation) == str(oldest)
    assert len(roots) == 2


async def test_an_attempt_that_goes_on_tells_of_those_before() -> None:
    """An open tree is told with the number of its attempt and why the others failed."""

    class Once(Hold):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            if tup.attempt == 1:
                out.fail(tup, "not yet")
            else:
                super().execute(tup, out)

    topology = Topology("second", drain_timeout=0)
    source = topology.spout("source")
    topology.bolt("once", Once, source.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a", attempts=2)
        await asyncio.sleep(5)
        told = lines(tree.explain())
    assert told[0].endswith("(root, attempt 2)")
    assert told[-1] == "attempt 1 failed after 0 s: failed in once[0]: not yet"


async def test_a_timeout_tells_who_had_what_and_where_it_was() -> None:
    """With a recorder, the failure keeps the tuples that were outstanding, also after the tree was settled."""

    async def stall(value: object) -> None:
        await asyncio.Event().wait()

    topology = Topology("late", drain_timeout=0, message_timeout=10)
    source = topology.spout("source")
    topology.bolt("stall", stall, source.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a")
        with pytest.raises(TupleTimedOut):
            await tree
        explanation = tree.explain()
    (failure,) = explanation.failures
    assert explanation.state is TreeState.FAILED
    assert [each.place for each in failure.outstanding] == [Place.EXECUTING]
    assert lines(explanation) == [
        "message of 'source' failed",
        "attempt 1 failed after 15 s: timeout, held by 'stall'",
        (
            "'a' is executed by stall[0], delivered 15 s ago, by way of source[0]: stall (test_failed_attempts.py) > "
            "Event.wait (locks.py)"
        ),
    ]


async def test_without_a_recorder_a_timeout_names_the_components() -> None:
    """What the ledger knows stays true without a recorder (law L14)."""
    topology = Topology("late", drain_timeout=0, message_timeout=10)
    source = topology.spout("source")
    topology.bolt("keep", Hold, source.shuffle())
    async with topology.run() as running:
        running.record_edges(0)
        tree = await running.emit(source, "a")
        with pytest.raises(TupleTimedOut):
            await tree
        explanation = tree.explain()
    assert lines(explanation)[1:] == ["attempt 1 failed: timeout, held by 'keep'"]


async def test_an_unsettled_tuple_is_known_in_its_timeout() -> None:
    """Whoever reads the dead letter later learns that the bolt has not settled the tuple."""

    letters: list[DeadLetter] = []
    topology = Topology("forgets", drain_timeout=0, message_timeout=10, max_attempts=1)
    topology.bolt("forget", Forget, topology.spout("numbers", [7]).shuffle())
    async with topology.run(dead_letters=letters.append):
        await asyncio.sleep(60)
    (letter,) = letters
    assert letter.failure.kind is FailureKind.TIMEOUT
    assert [each.place for each in letter.failure.outstanding] == [Place.HELD]


async def test_a_message_that_the_dead_letters_have_not_taken_is_told() -> None:
    """The handler's stack shows where it waits."""

    async def bury(letter: DeadLetter) -> None:
        await asyncio.Event().wait()

    topology = Topology("buries", drain_timeout=0, max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("numbers", [7]).shuffle())
    async with topology.run(dead_letters=bury) as running:
        await asyncio.sleep(1)
        (explanation,) = running.explain_oldest()
    assert explanation.state is TreeState.BURYING
    assert lines(explanation)[:2] == [
        "message 0 of 'numbers', 7, was given up, and dead_letters= has not returned",
        "dead_letters= has not returned: bury (test_failed_attempts.py) > Event.wait (locks.py)",
    ]


async def test_replays_are_among_the_oldest() -> None:
    """Whoever asks what is stuck hears of messages that wait for a replay, too."""
    topology = Topology("waits", drain_timeout=0, replay_delay=10)
    topology.bolt("refuse", refuse, topology.spout("numbers", [7]).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(1)
        (explanation,) = running.explain_oldest()
    assert (explanation.state, explanation.value) == (TreeState.WAITING, 7)


async def test_a_replay_that_waits_for_room_is_told_with_the_full_queue() -> None:
    """It is due, and the consumer of the queue that is full is named with what it does."""

    async def first_fails(value: object) -> None:
        if value == 0:
            raise LookupError(value)
        await asyncio.Event().wait()

    topology = Topology("full", drain_timeout=0, queue_capacity=1, replay_delay=5)
    topology.bolt("slow", first_fails, topology.spout("numbers", range(10)).shuffle())
    async with topology.run() as running:
        await asyncio.sleep(20)
        told = running.explain_oldest(100)
    (replay,) = [each for each in told if each.state is TreeState.WAITING]
    assert lines(replay)[:2] == [
        "message 0 of 'numbers', 0, waits for its replay now: it waits for room",
        "slow[0] executes 1: first_fails (test_failed_attempts.py) > Event.wait (locks.py)",
    ]


async def test_a_tree_that_was_acked_in_the_end_tells_what_went_wrong_before() -> None:
    """The history stays with the tree."""
    seen: list[int] = []

    def second_time(value: Any) -> None:
        seen.append(value)
        if len(seen) == 1:
            raise LookupError("once")

    topology = Topology("in the end")
    source = topology.spout("source")
    topology.bolt("second", second_time, source.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a", attempts=2)
        await tree
    assert lines(tree.explain())[0] == "message of 'source' was acked"
    assert "LookupError('once')" in lines(tree.explain())[1]
