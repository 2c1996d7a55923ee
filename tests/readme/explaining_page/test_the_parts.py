"""The page "Why is it stuck?": what an explanation says."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from stormlet import BatchBolt, Bolt, Collector, DeadLetter, Explanation, Place, Topology, TreeState, Tuple
from tests.cast import Forget, Hold, ignore
from tests.helpers import until
from tests.readme.explaining_page.kit import (
    explained,
    lines,
    no_answer,
    one_bolt,
    wait_for_ever,
)


@pytest.mark.simulated_time
async def test_the_order() -> None:
    """Of a tree that is open, every tuple that has not been settled, those first that most likely keep it open:"""
    topology = Topology("order", drain_timeout=0)
    source = topology.spout("source")
    topology.bolt("waits", wait_for_ever, source.shuffle())
    topology.bolt("keeps", Hold, source.shuffle())
    topology.bolt("acks", ignore, source.shuffle())
    async with topology.run() as running:
        trees = [await running.emit(source, value) for value in "ab"]
        await asyncio.sleep(1)
        told = [[(each.name, each.place) for each in tree.explain().outstanding] for tree in trees]
    held = ("keeps[0]", Place.HELD)
    assert told[0] == [("waits[0]", Place.EXECUTING), held]
    assert told[1] == [held, ("waits[0]", Place.QUEUED)]


async def by_task(value: object) -> None:
    await asyncio.create_task(no_answer())


async def by_gather(value: object) -> None:
    await asyncio.gather(no_answer(), asyncio.sleep(0))


async def by_wait_for(value: object) -> None:
    await asyncio.wait_for(no_answer(), 1000)


async def by_generator(value: object) -> None:
    async for _ in answers():
        pass


async def answers() -> AsyncIterator[int]:
    await no_answer()
    yield 1


def test_executed() -> None:
    """`is executed by` a task: a call of user code has it; the stack leads from your function to what it awaits,
    through tasks, `gather`, async generators and, from Python 3.12 on, `wait_for`; with `executor="thread"` it is that
    of the thread
    """
    ways: list[Callable[[object], Awaitable[None]]] = [
        wait_for_ever,
        by_task,
        by_gather,
        by_generator,
        *([by_wait_for] if sys.version_info >= (3, 12) else []),
    ]
    for way in ways:
        (outstanding,) = asyncio.run(in_real_time(way)).outstanding
        assert outstanding.place is Place.EXECUTING
        functions = [each.function for each in outstanding.stack]
        assert (functions[0], functions[-2:]) == (getattr(way, "__name__", ""), ["no_answer", "Event.wait"])
    begun, go_on = threading.Event(), threading.Event()

    def block(value: object) -> None:
        begun.set()
        go_on.wait()

    (outstanding,) = asyncio.run(in_real_time(block, begun, go_on, executor="thread")).outstanding
    assert [each.function for each in outstanding.stack[:2]] == ["block", "Event.wait"]


async def in_real_time(
    bolt: Any, begun: threading.Event | None = None, go_on: threading.Event | None = None, **options: Any
) -> Any:
    """What is told once the call has begun, and awaits what never comes."""
    async with one_bolt(bolt, **options) as (running, source):
        tree = await running.emit(source, "a")
        try:
            if begun is not None:
                await asyncio.to_thread(begun.wait)
            else:
                await until(lambda: "no_answer" in str(tree.explain()))
            return tree.explain()
        finally:
            if go_on is not None:
                go_on.set()


class Batches(BatchBolt[object, None]):
    size = 100
    within = 20.0

    def execute_batch(self, tups: Sequence[Tuple[object]], out: Collector[None]) -> None:
        """Ack them."""


@pytest.mark.simulated_time
async def test_held() -> None:
    """`is held by` a task: `execute` has returned without settling it: the bolt acks it later, or lacks an
    `out.ack(tup)`; of a `BatchBolt` it is said how full the batch is, and when it is due
    """
    for bolt in (Hold, Forget):
        assert lines(await explained(bolt, "a"))[1] == (
            "'a' is held by bolt[0], by way of source[0]: execute has returned without settling it; "
            "the bolt acks it later, or lacks an out.ack(tup)"
        )

    class Acks(Forget):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            super().execute(tup, out)
            out.ack(tup)

    assert (await explained(Acks, "a")).state is TreeState.ACKED
    assert lines(await explained(Batches, "a", "b"))[1] == (
        "'b' is held by bolt[0], by way of source[0]: in a batch that has 2 of 100 and is due in 7.5 s"
    )


@pytest.mark.simulated_time
async def test_nowhere() -> None:
    """`is no longer at` a task: it was delivered there, and no task has it: please report that"""
    async with one_bolt(Hold, record=1) as (running, source):
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        (task,) = running._tasks.all_bolts  # pyright: ignore[reportPrivateUsage] - there is no way that is known
        task.account.held.clear()
        (outstanding,) = tree.explain().outstanding
    assert str(outstanding).startswith("'a' is no longer at bolt[0]")


@pytest.mark.simulated_time
async def test_queued() -> None:
    """`is queued at` a task: how many the task takes before it"""
    assert (
        "'d' is queued at bolt[0], behind 2 others"
        in lines(await explained(wait_for_ever, "a", "b", "c", "d"))[1]
    )


class Ticks(Hold):
    async def tick(self, out: Collector[None]) -> None:
        await no_answer()


def many(value: object) -> Iterator[object]:
    yield from range(10)


@pytest.mark.simulated_time
async def test_meanwhile() -> None:
    """Below stands what those tasks do instead: the call that they are in, a `tick` that does not return, a restart, or
    the queue for room in which they wait; then what that queue's consumer does, and so on.
    """
    waits = "wait_for_ever (kit.py) > no_answer (kit.py) > Event.wait (locks.py)"
    assert lines(await explained(wait_for_ever, "a", "b"))[2] == f"bolt[0] executes 'a': {waits}"
    async with one_bolt(Ticks, tick=1.0) as (running, source):
        await asyncio.sleep(2)
        tree = await running.emit(source, "a")
        await asyncio.sleep(1)
        assert lines(tree.explain())[2].startswith("bolt[0] is in tick: Ticks.tick (test_the_parts.py) > ")
    async with one_bolt(ignore, run={"restart_delay": 10}) as (running, source):
        running.kill("bolt")
        await asyncio.sleep(1)
        tree = await running.emit(source, "a")
        assert lines(tree.explain())[2] == "bolt[0] has died, and is about to be restarted"
    topology = Topology("full", drain_timeout=0, queue_capacity=2)
    source = topology.spout("source")
    first = topology.bolt("first", many, source.shuffle())
    second = topology.bolt("second", many, first.shuffle())
    topology.bolt("slow", wait_for_ever, second.shuffle())
    async with topology.run() as running:
        tree = await running.emit(source, "a")
        await asyncio.sleep(3)
        told = lines(tree.explain())
    assert told[-3:] == [
        "first[0] waits for room in the queue of second[0], which has 2 tuples, of 2",
        "second[0] waits for room in the queue of slow[0], which has 2 tuples, of 2",
        f"slow[0] executes 0: {waits}",
    ]


def refuse(value: object) -> None:
    raise LookupError(value)


@pytest.mark.simulated_time
async def test_between_two_attempts() -> None:
    """Of a message between two attempts: why each attempt failed, in which line of your code an exception was raised,
    and when the next attempt comes.
    """
    async with one_bolt(refuse, run={"replay_delay": 8, "replay_delay_max": 100, "seed": 1}) as (
        running,
        source,
    ):
        tree = await running.emit(source, "a", attempts=3)
        await asyncio.sleep(12)
        told = tree.explain()
    assert lines(told)[0].startswith("message of 'source', 'a', waits for its replay in ")
    line = refuse.__code__.co_firstlineno + 1
    failed = f"failed in bolt[0]: LookupError('a'), raised in refuse (test_the_parts.py:{line})"
    assert [each.strip() for each in str(told).splitlines()[1:]] == [
        f"attempt 1 failed: {failed}",
        f"attempt 2 failed: {failed}",
    ]


@pytest.mark.simulated_time
async def test_many_attempts() -> None:
    """Of more than seven attempts it tells the first three and the last three, and counts the others."""
    run = {"replay_delay": 1, "replay_delay_max": 1, "seed": 1}
    tellings = set[str]()
    async with one_bolt(refuse, run=run) as (running, source):
        tree = await running.emit(source, "a", attempts=150)
        while not tree.done:
            tellings.add(attempts_of(tree.explain()))
            await asyncio.sleep(0.5)
    assert {"1 2 3 4 5 6 7", "1 2 3 and 2 others 6 7 8", "1 2 3 and 123 others 127 128 129"} < tellings
    assert attempts_of(tree.explain()) == "1 2 3 and 144 others 148 149 150"


def attempts_of(explanation: Explanation) -> str:
    """The numbers of the failed attempts that are told of."""
    found = re.findall(r"attempt (\d+) failed|(\d+) more attempts failed", str(explanation))
    return " ".join(number or f"and {more} others" for number, more in found)


@pytest.mark.simulated_time
async def test_given_up() -> None:
    """Of one that was given up: where `dead_letters=` is, if it has not returned."""

    async def bury(letter: DeadLetter) -> None:
        await no_answer()

    topology = Topology("buries", drain_timeout=0, max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("numbers", [7]).shuffle())
    async with topology.run(dead_letters=bury) as running:
        await asyncio.sleep(1)
        (told,) = running.explain_oldest()
    assert lines(told)[:2] == [
        "message 0 of 'numbers', 7, was given up, and dead_letters= has not returned",
        "dead_letters= has not returned: bury (test_the_parts.py) > no_answer (kit.py) > Event.wait (locks.py)",
    ]


class Loose(Bolt[object, object]):
    def execute(self, tup: Tuple[object], out: Collector[object]) -> None:
        out.emit("loose", anchors=())
        out.ack(tup)


@pytest.mark.simulated_time
async def test_unanchored() -> None:
    """A tuple that was emitted without anchors belongs to no tree, so that no explanation names it."""
    topology = Topology("loose", drain_timeout=0)
    source = topology.spout("source")
    topology.bolt("keep", Hold, topology.bolt("loose", Loose, source.shuffle()).shuffle())
    async with topology.run() as running:
        await (await running.emit(source, "a"))
        assert running.statistics().components["keep"].pending == 1
        assert list(running.explain_oldest()) == []
