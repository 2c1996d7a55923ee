"""Small runs in which messages fail, are replayed, given up and left over, and tasks die (law N1)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    Failure,
    Reject,
    ReliableSpout,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
    TupleFailed,
)
from stormlet.errors import EndOfStream
from tests.law.books import Books, Forced

MESSAGES = 8
QUICK: dict[str, Any] = {
    "replay_delay": 0.1,
    "max_attempts": 2,
    "message_timeout": 4.0,
    "drain_timeout": 20.0,
    "queue_capacity": 4,
}


class Flaky:
    """The last bolt: value 1 fails at its first attempt, 2 at every one, 3 for good."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._attempts: Counter[int] = Counter()

    def __call__(self, value: int) -> None:
        self._attempts[value] += 1
        kind = value % 100
        if kind == 3:
            raise Reject("never")
        if kind == 2 or (kind == 1 and self._attempts[value] == 1):
            raise ValueError(value)
        self._books.processed.append(value)

    async def slowly(self, value: int) -> None:
        await asyncio.sleep(0.05)
        self(value)


def twice(value: int) -> int:
    return value


async def replays(books: Books) -> None:
    """A generator's values, and a sink that takes time."""

    async def sink(letter: DeadLetter) -> None:
        await asyncio.sleep(0.3)
        books.letters.append(letter)

    topology = Topology("replays", ackers=2, **QUICK)
    source = topology.spout("source", partial(books.source, MESSAGES))
    passed = topology.bolt("pass", twice, source.shuffle(), parallelism=2)
    topology.bolt("flaky", Flaky(books), passed.shuffle())
    async with books.run(topology, dead_letters=sink) as running:
        await running.finished()


async def async_source(books: Books) -> None:
    """An async generator before calls that run beside each other, which is stopped."""

    async def source() -> AsyncIterator[int]:
        for value in books.source(MESSAGES):
            yield value
            await asyncio.sleep(0.02)
        await asyncio.sleep(1000)

    topology = Topology("async source", **QUICK)
    stream = topology.spout("source", source)
    topology.bolt("flaky", Flaky(books).slowly, stream.shuffle(), concurrency=3)
    async with books.run(topology, dead_letters=books.letters.append) as running:
        await asyncio.sleep(2)
        running.stop()
        await running.finished()


class Known(Spout[int]):
    """Knows its messages by their ids."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._values = iter(range(100, 100 + MESSAGES))

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        value = next(self._values, None)
        if value is None:
            raise EndOfStream
        out.emit(value, message_id=value)
        self._books.taken.append(value)

    def ack(self, message_id: object) -> None:
        pass

    async def fail(self, message_id: object, failure: Failure) -> None:
        await asyncio.sleep(0)
        self._books.told.append(message_id)


async def spout_class(books: Books) -> None:
    topology = Topology("spout class", **QUICK)
    source = topology.spout("source", partial(Known, books))
    topology.bolt("flaky", Flaky(books), source.shuffle())
    async with books.run(topology) as running:
        await running.finished()


class Reliable(ReliableSpout[int]):
    """Emits several at once, which the engine replays."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._is_done = False

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self._is_done:
            raise EndOfStream
        self._is_done = True
        out.emit_many(range(MESSAGES), message_ids=range(MESSAGES))
        self._books.taken.extend(range(MESSAGES))

    def ack(self, message_id: object) -> None:
        pass

    def fail(self, message_id: object, failure: Failure) -> None:
        self._books.told.append(message_id)


async def reliable_spout(books: Books) -> None:
    topology = Topology("reliable", **QUICK)
    source = topology.spout("source", partial(Reliable, books))
    topology.bolt("flaky", Flaky(books), source.shuffle())
    async with books.run(topology, dead_letters=books.letters.append) as running:
        await running.finished()


class Forgetful(Bolt[int, None]):
    """Loses 2, and holds 3 until it is flushed; raises at 4."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        if tup.value == 4:
            raise ValueError(4)
        if tup.value == 3:
            self._held.append(tup)
        elif tup.value != 2:
            self._books.processed.append(tup.value)
            out.ack(tup)

    def flush(self, out: Collector[None]) -> None:
        while self._held:
            self._books.processed.append(self._held[-1].value)
            out.ack(self._held.pop())


async def host(books: Books) -> None:
    """Messages of the host, some of which time out."""
    topology = Topology("host", **QUICK)
    source = topology.spout("source")
    topology.bolt("forgetful", partial(Forgetful, books), source.shuffle())
    async with books.run(topology) as running:
        waiting: list[asyncio.Task[None]] = []
        for value in range(MESSAGES):
            tree = await running.emit(source, value, attempts=2)
            waiting.append(asyncio.create_task(_await_tree(books, tree, value)))
        await asyncio.wait(waiting)
        await running.emit(source, 2)


async def _await_tree(books: Books, tree: Any, value: int) -> None:
    books.taken.append(value)
    books.trees.append(tree)
    with suppress(TupleFailed, Forced):
        await tree


async def left_over(books: Books) -> None:
    """A deadline that cuts off what the bolt has lost, and a second request to stop."""
    topology = Topology("left over", **{**QUICK, "message_timeout": None, "drain_timeout": 1.0})
    source = topology.spout("source", partial(books.source, MESSAGES))
    fed = topology.spout("fed")
    topology.bolt("forgetful", partial(Forgetful, books), source.shuffle(), fed.shuffle())
    async with books.run(topology, dead_letters=books.letters.append) as running:
        books.trees.append(await running.emit(fed, 2))
        books.taken.append("host's")
        await asyncio.sleep(0.5)


async def interrupted(books: Books) -> None:
    """The block is left by an exception while all is under way."""
    topology = Topology("interrupted", **QUICK)
    source = topology.spout("source", partial(books.source, MESSAGES))
    fed = topology.spout("fed")
    topology.bolt("flaky", Flaky(books).slowly, source.shuffle(), fed.shuffle())
    with suppress(KeyError):
        async with books.run(topology, dead_letters=books.letters.append) as running:
            books.trees.append(await running.emit(fed, 2))
            books.taken.append("host's")
            await asyncio.sleep(0.12)
            raise KeyError


class Fragile(Bolt[int, int]):
    """Dies of its third tick, and of value 5 once; passes on what it gets."""

    ticks = 0

    def tick(self, out: Collector[int]) -> None:
        self.ticks += 1
        if self.ticks == 3:
            raise OSError("tick")

    async def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        await asyncio.sleep(0.03)
        out.emit(tup.value, anchors=tup)
        out.ack(tup)

    async def cleanup(self) -> None:
        await asyncio.sleep(0.01)


async def deaths(books: Books) -> None:
    """Every kind of task dies and is restarted."""
    topology = Topology("deaths", ackers=2, max_restarts=20, **QUICK)
    source = topology.spout("source", partial(books.source, MESSAGES))
    known = topology.spout("known", partial(Known, books))
    fragile = topology.bolt("fragile", Fragile, source.shuffle(), tick=0.1)
    flaky = Flaky(books)
    topology.bolt("flaky", flaky, fragile.shuffle(), known.shuffle(), on_error="restart")
    async with books.run(topology, dead_letters=books.letters.append) as running:
        for component in ("source", "known", "fragile", "flaky", "__acker"):
            await asyncio.sleep(0.04)
            running.kill(component)
        await running.finished()


class Batches(BatchBolt[int, None]):
    """Batches of three."""

    size = 3
    within = 0.5

    def __init__(self, books: Books) -> None:
        self._books = books

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        values = [tup.value for tup in tups]
        if 2 in values and len(values) > 1:
            raise ValueError(values)
        self._books.processed.extend(values)


async def batches(books: Books) -> None:
    topology = Topology("batches", ackers=1, **QUICK)
    source = topology.spout("source", partial(books.source, MESSAGES))
    topology.bolt("batches", partial(Batches, books), source.shuffle(), executor="thread")
    async with books.run(topology, dead_letters=books.letters.append) as running:
        await running.finished()


SCENARIOS: Sequence[Callable[[Books], Awaitable[None]]] = (
    replays,
    async_source,
    spout_class,
    reliable_spout,
    host,
    left_over,
    interrupted,
    deaths,
    batches,
)
