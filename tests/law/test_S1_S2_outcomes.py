"""The outcomes of a spout's messages (law S1, S2)."""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from stormlet import Failure, Spout, SpoutCollector, TaskContext, Topology
from stormlet.errors import EndOfStream
from stormlet.state.memory import MemoryStore
from tests.cast import Counting, ignore
from tests.helpers import now, run_to_end


class Exclusive:
    """Fails the test when two calls of its owner overlap."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._inside: str | None = None

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        assert self._inside is None, f"{name} runs inside {self._inside}"
        self._inside = name
        self.calls.append(name)
        try:
            yield
        finally:
            self._inside = None


# S1: who gets the outcome, and one call at a time.


@pytest.mark.simulated_time
async def test_S1_the_task_that_emitted_gets_the_ack_or_the_fail() -> None:
    """Each of three tasks hears of exactly the messages that it emitted itself."""
    emitted, heard = defaultdict[int, list[object]](list), defaultdict[int, list[object]](list)

    class Numbered(Counting):
        def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
            self.task = context.task_index

        def next_tuple(self, out: SpoutCollector[int]) -> None:
            super().next_tuple(out)
            emitted[self.task].append(("fail" if self.next == 2 else "ack", self.next - 1))

        def ack(self, message_id: object) -> None:
            heard[self.task].append(("ack", message_id))

        def fail(self, message_id: object, failure: Failure) -> None:
            heard[self.task].append(("fail", message_id))

    def refuse_one(value: int) -> None:
        if value == 1:
            raise ValueError(value)

    topology = Topology("three")
    topology.bolt("refuse", refuse_one, topology.spout("numbers", Numbered, parallelism=3).shuffle())
    await run_to_end(topology)
    assert emitted.keys() == {0, 1, 2}
    assert {task: sorted(map(str, each)) for task, each in heard.items()} == {
        task: sorted(map(str, each)) for task, each in emitted.items()
    }


@pytest.mark.simulated_time
@pytest.mark.parametrize("ackers", [0, 1])
async def test_S1_synchronous_calls_never_overlap(ackers: int) -> None:
    """No outcome is told inside another call, not even one that is known during the emit."""
    exclusive = Exclusive()

    class Strict(Counting):
        def next_tuple(self, out: SpoutCollector[int]) -> None:
            with exclusive.call("next_tuple"):
                super().next_tuple(out)

        def ack(self, message_id: object) -> None:
            with exclusive.call("ack"):
                pass

    topology = Topology("strict", ackers=ackers)
    topology.bolt("ignore", ignore, topology.spout("numbers", Strict).shuffle())
    await run_to_end(topology)
    assert exclusive.calls.count("ack") == Strict.count


@pytest.mark.simulated_time
async def test_S1_asynchronous_calls_never_overlap() -> None:
    """An outcome waits until the awaits of the call before it are over, in every direction."""
    exclusive = Exclusive()

    class Slow(Spout[int]):
        numbers = itertools.count()

        async def next_tuple(self, out: SpoutCollector[int]) -> None:
            with exclusive.call("next_tuple"):
                number = next(self.numbers)
                if number >= 6:
                    raise EndOfStream
                await asyncio.sleep(0.1)
                out.emit(number, message_id=number)
                await asyncio.sleep(0.1)

        async def ack(self, message_id: object) -> None:
            with exclusive.call("ack"):
                await asyncio.sleep(0.3)

        async def fail(self, message_id: object, failure: Failure) -> None:
            with exclusive.call("fail"):
                await asyncio.sleep(0.3)

    async def even(value: int) -> None:
        await asyncio.sleep(0.05)
        if value % 2:
            raise ValueError(value)

    topology = Topology("slow")
    topology.bolt("even", even, topology.spout("numbers", Slow).shuffle(), concurrency=3)
    await run_to_end(topology)
    assert {"next_tuple", "ack", "fail"} == set(exclusive.calls)


class Listening(Spout[int]):
    """Gives three numbers, then waits; hears of them in its own time."""

    resumable = True
    calls: Exclusive

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.numbers = [0, 1, 2]

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        with self.calls.call("next_tuple"):
            while self.numbers:
                number = self.numbers.pop(0)
                out.emit(number, message_id=number)
            await asyncio.sleep(1000)

    async def ack(self, message_id: object) -> None:
        with self.calls.call("ack"):
            await asyncio.sleep(0.1)
            self.calls.calls.append(f"acked {message_id}")


@pytest.mark.simulated_time
async def test_S1_a_spout_that_waits_hears_of_an_epoch() -> None:
    """Its ``next_tuple`` is cancelled for that, and each call is awaited (law S7, X3)."""
    Listening.calls = calls = Exclusive()
    topology = Topology("epochs")
    topology.bolt("see", ignore, topology.spout("numbers", Listening).shuffle())
    async with topology.run(state=MemoryStore()):
        await asyncio.sleep(5)
    assert [each for each in calls.calls if each.startswith("acked")] == ["acked 0", "acked 1", "acked 2"]


# S2: emitting inside ack and fail.


class Doubling(Spout[int]):
    """Every outcome of a message emits two more, down to depth 0; ``settled`` counts all."""

    depth = 6
    settled = 0

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.out = out
        self.open_messages = 1
        out.emit(self.depth, message_id=self.depth)

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.open_messages:
            raise EndOfStream

    def ack(self, message_id: object) -> None:
        type(self).settled += 1
        depth = int(str(message_id))
        self.open_messages -= 1
        for _ in range(2 if depth else 0):
            self.out.emit(depth - 1, message_id=depth - 1)
            self.open_messages += 1

    def fail(self, message_id: object, failure: Failure) -> None:
        self.ack(message_id)


@pytest.mark.simulated_time
@pytest.mark.parametrize("refused", [False, True])
async def test_S2_emits_in_ack_and_fail_cannot_deadlock(refused: bool) -> None:
    """With room for one message and one tuple, outcomes that emit two more each still all come through."""

    class Twice(Doubling):
        settled = 0

    async def slow(value: int) -> None:
        await asyncio.sleep(0.01)
        if refused:
            raise ValueError(value)

    topology = Topology("doubling", max_spout_pending=1, queue_capacity=1)
    topology.bolt("slow", slow, topology.spout("numbers", Twice).shuffle())
    await asyncio.wait_for(run_to_end(topology), 60)
    assert Twice.settled == 2 ** (Twice.depth + 1) - 1


@pytest.mark.simulated_time
async def test_S2_an_asynchronous_ack_may_emit_before_and_after_its_await() -> None:
    """What it emits is processed while it is still suspended, and afterwards."""
    executed: list[tuple[str, float]] = []

    class Chatty(Spout[str]):
        asked = False

        def open(self, context: TaskContext, out: SpoutCollector[str]) -> None:
            self.out = out

        def next_tuple(self, out: SpoutCollector[str]) -> None:
            if self.asked:
                raise EndOfStream
            self.asked = True
            out.emit("first", message_id=1)

        async def ack(self, message_id: object) -> None:
            if message_id == 1:
                self.out.emit("before", message_id=2)
                await asyncio.sleep(5)
                self.out.emit("after", message_id=3)

    topology = Topology("chatty")
    spout = topology.spout("chatty", Chatty)
    topology.bolt("note", lambda value: executed.append((value, now())), spout.shuffle())
    await run_to_end(topology)
    assert executed == [("first", 0), ("before", 0), ("after", 5)]
