"""Bugs that users make, each in a small topology, and beside it the same topology without the bug.

Bolts write to a list, which stands for the world outside; what must hold of it after each run is the assertion that
only the user can make, in ``on_seed``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    EndOfStream,
    Failure,
    FailureKind,
    KeyedBolt,
    Spout,
    SpoutCollector,
    TaskContext,
    Topology,
    Tuple,
    Value,
)
from stormlet.testing import FaultKind, SeedResult

NUMBERS = range(12)
HARMLESS = {FaultKind.SLOW, FaultKind.CROWD, FaultKind.DELAY}
World = list[Any]
Logic = Callable[..., Any]


@dataclass
class Case:
    """A topology, and what must hold of the world after a run."""

    topology: Topology
    world: World
    holds: Callable[[World], bool]
    of_calm_runs: bool = False
    """True if it need hold only where nothing fails: outputs of ``finish`` are in nobody's tree."""

    def check(self, result: SeedResult) -> None:
        """For ``on_seed``: the world is empty again afterwards."""
        seen = self.world.copy()
        self.world.clear()
        calm = not result.counts["replayed"] and all(fault.kind in HARMLESS for fault in result.faults)
        assert self.holds(seen) or (self.of_calm_runs and not calm), seen


def nothing(world: World) -> bool:
    """There is nothing to be said of the world."""
    return True


def all_there(world: World) -> bool:
    """Each number is there, perhaps more than once."""
    return set(world) == set(NUMBERS)


def each_once(world: World) -> bool:
    """Each number is there once."""
    return sorted(world) == list(NUMBERS)


def case(
    bolt: Logic,
    world: World,
    holds: Callable[[World], bool] = nothing,
    *,
    source: object = NUMBERS,
    below: Logic | None = None,
    **options: Any,
) -> Case:
    """A spout, the bolt, and perhaps another one below it. Nothing is ever given up."""
    topology = Topology("case", max_attempts=10_000)
    stream = topology.bolt("bolt", bolt, topology.spout("numbers", source).shuffle(), **options)
    if below is not None:
        topology.bolt("below", below, stream.global_())
    return Case(topology, world, holds)


async def write(value: object, world: World) -> None:
    """A service that takes a moment."""
    await asyncio.sleep(0.01)
    world.append(value)


# Acks and anchors.


def forgets_one_in_a_hundred(right: bool) -> Case:
    """An ``if`` without its ``else``."""

    class Saves(Bolt[int, None]):
        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            if right or tup.value % 100 != 99:
                out.ack(tup)

    return case(Saves, [], source=range(100))


class AcksFirst(Bolt[int, None]):
    """Acks before its work."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        out.ack(tup)
        await write(tup.value, self.world)


class AcksLast(AcksFirst):
    """Acks after it."""

    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        await write(tup.value, self.world)
        out.ack(tup)


def acks_before_its_work(right: bool) -> Case:
    """The work after the ack is lost if the task dies there."""
    world: World = []
    return case(lambda: (AcksLast if right else AcksFirst)(world), world, all_there)


def acks_twice(right: bool) -> Case:
    """Anchors to an input that it has acked: ``AlreadySettled``, always, and nothing comes out."""

    class Doubles(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            if right:
                out.emit(2 * tup.value, anchors=tup)
            out.ack(tup)
            if not right:
                out.emit(2 * tup.value, anchors=tup)

    world: World = []
    return case(Doubles, world, lambda seen: len(seen) >= len(NUMBERS), below=world.append)


def unanchored_emit(right: bool) -> Case:
    """A failure further down is not replayed."""

    class Passes(Bolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            if right:
                out.emit(tup.value, anchors=tup)
            else:
                out.emit(tup.value)
            out.ack(tup)

    world: World = []
    return case(Passes, world, all_there, below=world.append)


class DropsBatches(Bolt[int, None]):
    """Acks what it has not written yet."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.batch: list[int] = []

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        self.batch.append(tup.value)
        out.ack(tup)
        if len(self.batch) == 4:
            self.finish(out)

    def finish(self, out: Collector[None]) -> None:
        self.world.extend(self.batch)
        self.batch.clear()


class WritesBatches(BatchBolt[int, None]):
    """Acks what it has written."""

    size = 4

    def __init__(self, world: World) -> None:
        self.world = world

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        self.world.extend(tup.value for tup in tups)


def batch_that_drops(right: bool) -> Case:
    """Inputs that were acked and not written die with the task."""
    world: World = []
    return case(lambda: (WritesBatches if right else DropsBatches)(world), world, all_there)


class Orders(Spout[int]):
    """Emits numbers, and those that fail not again."""

    def __init__(self) -> None:
        self.left = list(NUMBERS)
        self.waiting = set[object]()

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.left:
            self.waiting.add(self.left[-1])
            out.emit(self.left[-1], message_id=self.left.pop())
        elif not self.waiting:
            raise EndOfStream
        else:
            out.pause_until_settled()

    def ack(self, message_id: object) -> None:
        self.waiting.discard(message_id)

    def fail(self, message_id: object, failure: Failure) -> None:
        self.waiting.discard(message_id)


class ReplayedOrders(Orders):
    """Emits them again."""

    def fail(self, message_id: object, failure: Failure) -> None:
        super().fail(message_id, failure)
        if isinstance(message_id, int) and failure.kind is not FailureKind.SHUTDOWN:
            self.left.append(message_id)


def spout_without_replay(right: bool) -> Case:
    """``fail`` is there, and does not emit again."""
    world: World = []
    return case(world.append, world, all_there, source=ReplayedOrders if right else Orders)


class JoinsAnything(Bolt[int, tuple[int, int]]):
    """Takes the second input with a key for the counterpart of the first, a replay of the first too."""

    joins_own_replay = True

    def __init__(self) -> None:
        self.waiting: dict[int, Tuple[int]] = {}

    def execute(self, tup: Tuple[int], out: Collector[tuple[int, int]]) -> None:
        key = abs(tup.value)
        first = self.waiting.pop(key, None)
        if first is None:
            self.waiting[key] = tup
        elif not self.joins_own_replay and first.value == tup.value:
            out.ack(first)
            self.waiting[key] = tup
        else:
            out.emit((min(first.value, tup.value), max(first.value, tup.value)), anchors=(first, tup))
            out.ack(first)
            out.ack(tup)

    def flush(self, out: Collector[tuple[int, int]]) -> None:
        """Let go of replays of what was joined before: their counterparts do not come again."""
        while self.waiting:
            _, tup = self.waiting.popitem()
            out.ack(tup)


class Joins(JoinsAnything):
    """Holds the replay instead."""

    joins_own_replay = False


def joins_its_own_replay(right: bool) -> Case:
    """A join that takes any second input for the counterpart of the first."""
    topology, world = Topology("case", max_attempts=10_000), World()
    orders = topology.spout("orders", range(1, 9))
    payments = topology.spout("payments", range(-8, 0))
    slow = topology.bolt("slow", pass_slowly, payments.shuffle())
    joined = topology.bolt("join", Joins if right else JoinsAnything, orders.global_(), slow.global_())
    topology.bolt("below", world.append, joined.shuffle())
    return Case(topology, world, lambda seen: all(order == -payment for payment, order in seen))


async def pass_slowly(number: int) -> int:
    """A payment takes some days."""
    await asyncio.sleep(1.0)
    return number


# Work that is not waited for, and waits without end.


def work_left_to_a_task(right: bool) -> Case:
    """Fire and forget."""
    world: World = []

    async def save(number: int) -> None:
        work = asyncio.create_task(write(number, world))
        if right:
            await work

    return case(save, world)


def background_task_for_ever(right: bool) -> Case:
    """A task of the bolt's that nobody ends."""

    class Refreshes(BasicBolt[int, None]):
        async def prepare(self, context: TaskContext) -> None:
            self.refreshing = asyncio.create_task(self.refresh())

        async def refresh(self) -> None:
            await asyncio.Event().wait()

        def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            """Nothing that matters."""

        async def cleanup(self) -> None:
            if right:
                self.refreshing.cancel()
                with suppress(asyncio.CancelledError):
                    await self.refreshing

    return case(Refreshes, [])


def lock_never_released(right: bool) -> Case:
    """``acquire`` without ``release``."""

    class Locks(BasicBolt[int, None]):
        async def prepare(self, context: TaskContext) -> None:
            self.lock = asyncio.Lock()

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            await self.lock.acquire()
            if right:
                self.lock.release()

    return case(Locks, [], concurrency=2)


def waits_for_ever(right: bool) -> Case:
    """For an event that nobody sets."""

    async def wait(number: int) -> None:
        event = asyncio.Event()
        if right or number != 7:
            event.set()
        await event.wait()

    return case(wait, [])


# State between two calls.


def dict_changed_during_an_await(right: bool) -> Case:
    """A loop over a dict that another call adds to meanwhile."""

    class Counts(BasicBolt[int, None]):
        def __init__(self) -> None:
            self.counts = Counter[int]()

        async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
            await asyncio.sleep(0.5)
            self.counts[tup.value] += 1

        async def tick(self, out: Collector[None]) -> None:
            for _ in list(self.counts) if right else self.counts:
                await asyncio.sleep(0.3)

    return case(Counts, [], concurrency=2, tick=0.6)


def mutated_value(right: bool) -> Case:
    """One list, emitted again and again."""

    class Gathers(BasicBolt[int, list[int]]):
        def __init__(self) -> None:
            self.seen: list[int] = []

        def execute(self, tup: Tuple[int], out: Collector[list[int]]) -> None:
            self.seen.append(tup.value)
            out.emit(self.seen.copy() if right else self.seen)

    return case(Gathers, [])


class LosesUpdates(BasicBolt[int, int]):
    """Reads before an ``await`` and writes after it."""

    def __init__(self) -> None:
        self.total = 0

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        total = self.total
        await asyncio.sleep(0.01)
        self.total = total + tup.value

    def finish(self, out: Collector[int]) -> None:
        out.emit(self.total)


class Adds(LosesUpdates):
    """Reads and writes in one go."""

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        await asyncio.sleep(0.01)
        self.total += tup.value


def lost_update_across_an_await(right: bool) -> Case:
    """Calls that run beside each other overwrite what the other has written."""
    world: World = []
    totals = case(Adds if right else LosesUpdates, world, below=world.append, concurrency=4)
    return replace(totals, holds=lambda seen: seen == [sum(NUMBERS)], of_calm_runs=True)


def order_under_concurrency(right: bool) -> Case:
    """The last one wins, and which is last is chance."""

    async def look_up(number: int) -> int:
        await asyncio.sleep(number % 3)
        return number

    class Last(BasicBolt[int, int]):
        def __init__(self) -> None:
            self.last = -1

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.last = max(self.last, tup.value) if right else tup.value

        def finish(self, out: Collector[int]) -> None:
            out.emit(self.last)

    topology, world = Topology("case", max_attempts=10_000), World()
    found = topology.bolt("look up", look_up, topology.spout("numbers", NUMBERS).shuffle(), concurrency=4)
    last = topology.bolt("last", Last, found.global_())
    topology.bolt("below", world.append, last.shuffle())
    return Case(topology, world, lambda seen: seen == [max(NUMBERS)], of_calm_runs=True)


# What replays show.


def not_idempotent(right: bool) -> Case:
    """A payment that is made again with each replay."""
    world: World = []

    async def pay(number: int) -> None:
        if not right or number not in world:
            await write(number, world)

    return case(pay, world, each_once)


def counts_again(right: bool) -> Case:
    """A count that does not ask whether it has counted this one."""
    world: World = []

    def count(number: int) -> None:
        if not right or number not in world:
            world.append(number)

    return case(count, world, lambda seen: len(seen) == len(NUMBERS))


def keeps_state_in_an_attribute(right: bool) -> Case:
    """A total that is taken from an attribute, which no epoch undoes."""

    class Count(KeyedBolt[int, int, int]):
        total = Value(int, 0)

        def __init__(self) -> None:
            self.seen = Counter[int]()

        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            self.seen[self.key] += 1
            self.total = self.total + 1 if right else self.seen[self.key]
            out.emit(tup.value)

    topology = Topology("case", max_attempts=10_000, state="case.state", epoch_messages=3)
    counted = topology.bolt("bolt", Count, topology.spout("numbers", NUMBERS).fields(_parity))
    topology.bolt("below", nothing_of, counted.shuffle())
    return Case(topology, [], nothing)


def _parity(number: int) -> int:
    return number % 2


def nothing_of(number: int) -> None:
    """Do nothing with it."""


def swallowed_exception(right: bool) -> Case:
    """``except`` around what fails now and then, and a message that is acked all the same."""
    world: World = []
    called = set[int]()

    def call(number: int) -> int:
        if number % 5 == 3 and number not in called:
            called.add(number)
            raise ConnectionError("no answer")
        return number

    def save(number: int) -> None:
        try:
            world.append(call(number))
        except ConnectionError:
            if right:
                raise

    def holds(seen: World) -> bool:
        called.clear()
        return all_there(seen)

    return case(save, world, holds)
