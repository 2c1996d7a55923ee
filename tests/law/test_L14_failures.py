"""A failure says why (law L14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from weakref import ref

import pytest

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    Failure,
    FailureKind,
    Running,
    Stream,
    Topology,
    Tree,
    Tuple,
    TupleFailed,
    TupleTimedOut,
)
from stormlet.core.acks import Acks
from tests.cast import Batches, same, wait_for_ever
from tests.engines import Engine
from tests.law.puppets import Puppets, ackers, script, settle, until


async def failure_of(tree: Tree[Any]) -> Failure:
    """Why it fails."""
    with pytest.raises(TupleFailed) as caught:
        await tree
    return caught.value.failure


# FAILED.


@pytest.mark.simulated_time
async def test_L14_failed_names_component_task_and_reason() -> None:
    """What a bolt fails on purpose says which task it was, and what it said."""
    topology, puppets = Topology("failed"), Puppets()
    spout, stream = script(topology, "x", "y")
    topology.bolt("puppets", puppets, stream.shuffle(), parallelism=2)
    error = ValueError("y")
    async with topology.run() as running:
        await settle()
        for puppet in puppets.made:
            puppet.out.fail(puppet.got[0], f"no {puppet.got[0].value}", exception=error)
        await running.finished()
    tasks = {puppet.got[0].value: puppet.context.task for puppet in puppets.made}
    assert spout.failed == {
        each: Failure(FailureKind.FAILED, "puppets", tasks[each], f"no {each}", error) for each in "xy"
    }


def function(value: object) -> None:
    raise ValueError("broken")


def generator(value: object) -> Iterator[object]:
    yield 1
    raise ValueError("broken")


async def coroutine(value: object) -> None:
    await asyncio.sleep(1)
    raise ValueError("broken")


class Explicit(Bolt[Any, Any]):
    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        raise ValueError("broken")


class Basic(BasicBolt[Any, Any]):
    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        raise ValueError("broken")


class Batch(BatchBolt[Any, Any]):
    def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[Any]) -> None:
        raise ValueError("broken")


@pytest.mark.parametrize("logic", [function, generator, coroutine, Explicit, Basic, Batch])
@pytest.mark.simulated_time
async def test_L14_failed_names_the_exception(logic: Callable[..., Any]) -> None:
    """Whatever kind of bolt raises, the failure has its exception, component and task."""
    topology = Topology("raises")
    feed = topology.spout("feed")
    topology.bolt("bolt", logic, feed.shuffle())
    async with topology.run() as running:
        failure = await failure_of(await running.emit(feed, "x"))
        (task,) = running.statistics().components["bolt"].tasks or ()
    assert (failure.kind, failure.component, failure.task) == (FailureKind.FAILED, "bolt", task)
    assert repr(failure.exception) == "ValueError('broken')"


@pytest.mark.parametrize("logic", [function, generator, coroutine, Explicit, Basic, Batch])
@pytest.mark.simulated_time
async def test_L14_a_dead_letter_names_component_task_and_exception(
    engine: Engine, logic: Callable[..., Any]
) -> None:
    """Also that of a bolt behind another one."""
    topology = Topology("raises", max_attempts=2)
    passed = topology.bolt("pass", same, topology.spout("words", ["x"]).shuffle())
    topology.bolt("bolt", logic, passed.shuffle())
    ended = await engine.run_to_end(topology)
    (task,) = ended.statistics().components["bolt"].tasks or ()
    (letter,) = ended.dead_letters
    assert (letter.component, letter.value, letter.attempts) == ("words", "x", 2)
    for failure in (letter.failure, *letter.history):
        assert (failure.kind, failure.component, failure.task) == (FailureKind.FAILED, "bolt", task)
        assert repr(failure.exception) == "ValueError('broken')"


@pytest.mark.simulated_time
async def test_L14_the_exception_is_the_cause_of_what_an_await_raises() -> None:
    """The host sees the user's traceback beneath its own."""
    topology = Topology("raises")
    feed = topology.spout("feed")
    topology.bolt("bolt", function, feed.shuffle())
    async with topology.run() as running:
        with pytest.raises(TupleFailed) as caught:
            await (await running.emit(feed, "x"))
    assert caught.value.__cause__ is caught.value.failure.exception is not None


# TIMEOUT.


async def holders(running: Running, feed: Stream[Any]) -> tuple[str, ...]:
    """Who holds a message that times out."""
    with pytest.raises(TupleTimedOut) as caught:
        await (await running.emit(feed, "x"))
    assert (caught.value.failure.kind, caught.value.failure.component) == (FailureKind.TIMEOUT, None)
    return caught.value.failure.holders


@pytest.mark.simulated_time
async def test_L14_timeout_names_who_holds_tuples_of_the_tree() -> None:
    """Of three components the two that have not settled their copy are named, whichever task has it."""
    topology = Topology("held", message_timeout=10, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("done", lambda value: None, feed.shuffle())
    topology.bolt("first", Puppets(), feed.shuffle(), parallelism=3)
    topology.bolt("second", Puppets(), feed.all(), parallelism=2)
    async with topology.run() as running:
        assert await holders(running, feed) == ("first", "second")


@pytest.mark.simulated_time
async def test_L14_timeout_does_not_name_who_holds_other_trees() -> None:
    """Each tree has holders of its own."""
    topology, odd, even = Topology("two", message_timeout=10, drain_timeout=0), Puppets(), Puppets()
    feed = topology.spout("feed")
    topology.bolt("odd", odd, feed.shuffle())
    topology.bolt("even", even, feed.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(feed, number) for number in range(2)]
        await settle()
        odd[0].out.ack(odd.of(0))
        even[0].out.ack(even.of(1))
        assert [(await failure_of(tree)).holders for tree in trees] == [("even",), ("odd",)]


@pytest.mark.simulated_time
async def test_L14_timeout_names_all_holders_of_a_joined_tuple() -> None:
    """A tuple of two trees is held in the name of both."""
    topology, joiner = Topology("joined", message_timeout=10, drain_timeout=0), Puppets()
    feed = topology.spout("feed")
    topology.bolt("copies", Puppets(), topology.bolt("joiner", joiner, feed.shuffle()).shuffle())
    async with topology.run() as running:
        trees = [await running.emit(feed, number) for number in range(2)]
        await settle()
        joiner[0].out.emit("joined", anchors=joiner.got)
        joiner.ack_all()
        assert [(await failure_of(tree)).holders for tree in trees] == [("copies",)] * 2


@pytest.mark.parametrize("before", [0, 1, 5], ids=["in its call", "in the batch in hand", "far behind"])
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.simulated_time
async def test_L14_timeout_finds_tuples_in_hand(before: int, concurrency: int) -> None:
    """A tuple that is executed, or waits for its turn in a batch that its task has taken, is held there."""
    topology = Topology("in hand", message_timeout=10, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("stuck", wait_for_ever, feed.shuffle(), concurrency=concurrency)
    async with topology.run() as running:
        for number in range(before):
            await running.emit(feed, number)
        assert await holders(running, feed) == ("stuck",)


@pytest.mark.simulated_time
async def test_L14_timeout_finds_tuples_in_inboxes() -> None:
    """A tuple that its task has not even taken is held there too."""
    topology = Topology("in its inbox", message_timeout=10, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("stuck", wait_for_ever, feed.shuffle())
    async with topology.run() as running:
        await running.emit(feed, "first")
        await until(1)
        assert await holders(running, feed) == ("stuck",)


@pytest.mark.simulated_time
async def test_L14_timeout_finds_members_of_a_batch() -> None:
    """A tuple that waits for its batch to fill is held by that bolt."""
    topology = Topology("batch", message_timeout=10, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("collecting", partial(Batches, 100, 10_000.0), feed.shuffle())
    async with topology.run() as running:
        assert await holders(running, feed) == ("collecting",)


@pytest.mark.simulated_time
async def test_L14_timeout_of_what_nobody_holds_names_nobody() -> None:
    """If an ack was lost, there is no holder to name."""
    topology, puppets = Topology("lost", message_timeout=10, drain_timeout=0), Puppets()
    feed = topology.spout("feed")
    topology.bolt("puppets", puppets, feed.shuffle())
    async with topology.run() as running:
        tree = await running.emit(feed, "x")
        await settle()
        puppets[0].ack_all()
        outbox = running._tasks.bolts["puppets"][0].outbox
        outbox.acks = Acks()
        outbox.run = 0
        failure = await failure_of(tree)
    assert (failure.kind, failure.holders) == (FailureKind.TIMEOUT, ())


@pytest.mark.simulated_time
async def test_L14_the_holders_are_found_by_one_scan() -> None:
    """However many trees time out at once, and however long that takes, everything is scanned once; and nothing of it
    is kept."""
    topology = Topology("scan", message_timeout=10, drain_timeout=0)
    feed = topology.spout("feed")
    topology.bolt("puppets", Puppets(), feed.shuffle())
    async with topology.run() as running:
        (acker,) = ackers(running)
        scans: list[int] = []
        kept: list[ref[Any]] = []
        unsettled = acker._unsettled

        def scan() -> Any:
            begun = unsettled()
            scans.append(acker.ledger.expiring)
            kept.append(ref(begun))
            return begun

        acker._unsettled = scan
        trees = [await running.emit(feed, number) for number in range(900)]
        assert {(await failure_of(tree)).holders for tree in trees} == {("puppets",)}
        assert scans == [900]
        assert [scan() for scan in kept] == [None]


# The others.


@pytest.mark.simulated_time
async def test_L14_overflow_says_so() -> None:
    """A message that was refused for want of room fails with OVERFLOW, and no component is to blame."""
    topology = Topology("full", acker_high_water=1)
    spout, stream = script(topology, *"abc")
    topology.bolt("puppets", Puppets(), stream.shuffle())
    async with topology.run(drain_timeout=0):
        await settle()
        assert spout.failed == {"c": Failure(FailureKind.OVERFLOW)}


@pytest.mark.simulated_time
async def test_L14_shutdown_says_so() -> None:
    """What is still open at the deadline of a drain fails with SHUTDOWN."""
    topology = Topology("stopped", drain_timeout=5)
    spout, stream = script(topology, "x")
    topology.bolt("puppets", Puppets(), stream.shuffle())
    async with topology.run():
        await settle()
    assert spout.failed == {"x": Failure(FailureKind.SHUTDOWN)}
    assert spout.told[0][0] == pytest.approx(5, abs=0.01)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure(FailureKind.FAILED, "b", 3, "no such word"), ["failed", "'b'", "3", "no such word"]),
        (Failure(FailureKind.FAILED, "b", 3, exception=KeyError("k")), ["'b'", "KeyError('k')"]),
        (Failure(FailureKind.TIMEOUT, holders=("a", "b")), ["timeout", "'a'", "'b'"]),
        (Failure(FailureKind.TIMEOUT), ["timeout", "no component"]),
        (Failure(FailureKind.OVERFLOW), ["overflow"]),
        (Failure(FailureKind.TASK_LOST, "b", 3), ["task lost", "'b'", "3"]),
        (Failure(FailureKind.SHUTDOWN), ["shutdown"]),
    ],
    ids=lambda each: each.kind.name if isinstance(each, Failure) else "",
)
def test_L14_a_failure_reads_like_a_sentence(failure: Failure, words: list[str]) -> None:
    """What an await raises says all of it."""
    assert all(word in str(TupleFailed(failure)) for word in words)
