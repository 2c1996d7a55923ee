"""Small topologies that simulations disturb."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

from stormlet import (
    BatchBolt,
    Bolt,
    Collector,
    Committer,
    EndOfStream,
    Epoch,
    Failure,
    FailureKind,
    KeyedBolt,
    Reject,
    ReliableSpout,
    Spout,
    SpoutCollector,
    SqliteTable,
    Topology,
    Tuple,
    Value,
)
from tests.cast import Count


def sentences() -> Iterator[str]:
    yield from ("the cow jumped", "over the", "moon")


def split(sentence: str) -> Iterator[str]:
    yield from sentence.split()


def word_count() -> Topology:
    """Sentences, words, counts."""
    topology = Topology("word-count")
    lines = topology.spout("sentences", sentences)
    words = topology.bolt("split", split, lines.shuffle(), parallelism=2)
    topology.bolt("count", Count, words.fields(), parallelism=2)
    return topology


class Numbers(Spout[int]):
    """Emits numbers, again and again until they are acked."""

    def __init__(self) -> None:
        self.left = list(range(5))
        self.waiting = set[object]()

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.left:
            number = self.left.pop()
            self.waiting.add(number)
            out.emit(number, message_id=number)
        elif not self.waiting:
            raise EndOfStream
        else:
            out.pause_until_settled()

    def ack(self, message_id: object) -> None:
        self.waiting.discard(message_id)

    def fail(self, message_id: object, failure: Failure) -> None:
        self.waiting.discard(message_id)
        if isinstance(message_id, int) and failure.kind is not FailureKind.SHUTDOWN:
            self.left.append(message_id)


class Pairs(BatchBolt[int, int]):
    """Adds up batches."""

    size = 2
    within = 1.0

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        out.emit(sum(tup.value for tup in tups))


class Join(Bolt[int, int]):
    """Holds one input until the next one, and emits both together."""

    def __init__(self) -> None:
        self.held: Tuple[int] | None = None
        self.seen = 0

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.seen += 1
        if self.held is None:
            self.held = tup
            return
        out.emit(self.held.value + tup.value, anchors=[self.held, tup])
        out.ack(self.held)
        out.ack(tup)
        self.held = None

    def flush(self, out: Collector[int]) -> None:
        if self.held is not None:
            out.ack(self.held)
            self.held = None

    def finish(self, out: Collector[int]) -> None:
        out.emit(self.seen)


async def slowly(number: int) -> int:
    return number


def everything() -> Topology:
    """Two spouts of both kinds, replicas, batches, joins, concurrent calls, a finish, two ackers."""
    topology = Topology("everything", ackers=2)
    numbers = topology.spout("numbers", Numbers, parallelism=2)
    more = topology.spout("more", range(4))
    slow = topology.bolt("slow", slowly, numbers.shuffle(), more.shuffle(), concurrency=3)
    pairs = topology.bolt("pairs", Pairs, slow.all(), parallelism=2)
    joined = topology.bolt("join", Join, pairs.shuffle(), numbers.fields())
    topology.bolt("end", Join, joined.global_(), slow.shuffle())
    return topology


def cycle() -> Topology:
    """A bolt whose output comes back to it until it has been round, with a bolt beside it that counts the rounds."""
    topology = Topology("cycle", ackers=2)
    depths = topology.spout("depths", range(5))
    down = topology.bolt("down", lambda depth: iter([depth] * 2), depths.shuffle(), parallelism=2)
    up = topology.bolt("up", lambda depth: depth - 1 if depth > 2 else None, down.fields())
    topology.connect(down, up.shuffle())
    topology.bolt("count", Join, up.all(), down.global_())
    return topology


def from_the_start_once(resume: int | None = None) -> Iterator[int]:
    for number in range(0 if resume is None else resume + 1, 8):
        if number == 3 and resume is None:
            raise OSError("the connection is gone")
        yield number


async def awaited(resume: int | None = None) -> AsyncIterator[int]:
    for number in range(0 if resume is None else resume + 1, 6):
        yield number


def resuming() -> Topology:
    """Generators that go on after their last message, one that breaks off by itself and one that dies when killed."""
    topology = Topology("resuming", ackers=3)
    broken = topology.spout("broken", from_the_start_once)
    killed = topology.spout("killed", awaited)
    slow = topology.bolt("slow", slowly, broken.partial_key(), killed.shuffle(), concurrency=4, parallelism=2)
    topology.bolt("pairs", Pairs, slow.local_or_shuffle(), broken.all())
    return topology


class Readings(ReliableSpout[int]):
    """Emits numbers, which the engine keeps, and gives up by itself the one that it cannot read."""

    def __init__(self) -> None:
        self.left = list(range(6))
        self.settled = list[object]()

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        if not self.left:
            raise EndOfStream
        number = self.left.pop()
        if number == 4:
            await out.dead_letter(number, Failure(FailureKind.FAILED, reason="unreadable"), message_id=number)
        else:
            out.emit(number, message_id=number)

    def ack(self, message_id: object) -> None:
        self.settled.append(message_id)

    def fail(self, message_id: object, failure: Failure) -> None:
        self.settled.append(message_id)


def third(number: int) -> int:
    return number // 3


class Ticking(Join):
    """Lets go of what it holds now and then."""

    def tick(self, out: Collector[int]) -> None:
        self.flush(out)


def keyed() -> Topology:
    """Key functions behind a spout that gives one value at a time, behind bolts, and where messages are replayed; bolts
    that tick, and batches by key."""
    topology = Topology("keyed")
    numbers = topology.spout("numbers", range(9))
    readings = topology.spout("readings", Readings)
    thirds = topology.bolt("thirds", third, numbers.fields(third), parallelism=2)
    pairs = topology.bolt("pairs", Pairs, thirds.partial_key(third), readings.fields(third), parallelism=2)
    topology.bolt("ticking", Ticking, pairs.shuffle(), numbers.partial_key(third), parallelism=2, tick=0.5)
    return topology


def odd(number: int) -> int:
    if number == 2:
        raise Reject("it is even")
    return number


def reliable() -> Topology:
    """A spout class whose messages the engine keeps, some of which are given up at once."""
    topology = Topology("reliable", ackers=2, max_attempts=2)
    readings = topology.spout("readings", Readings, parallelism=2)
    checked = topology.bolt("odd", odd, readings.shuffle(), parallelism=2)
    topology.bolt("pairs", Pairs, checked.shuffle(), readings.fields())
    return topology


class Tally(KeyedBolt[str, str, str]):
    """Counts words in a state."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
        self.total += 1
        out.emit(tup.value)


class Bring(Committer[str]):
    """Brings words to a sink, in its own time, once for each epoch."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    async def commit(self, epoch: Epoch, rows: Sequence[str]) -> None:
        await asyncio.sleep(0.01)
        if epoch.follows(self.sink.last):
            self.sink.rows += rows
            self.sink.last = epoch


class Sink:
    """A database outside, which has a row and the note of its epoch in one step."""

    def __init__(self) -> None:
        self.last: Epoch | None = None
        self.rows: list[str] = []


WORDS = ["the", "cow", "jumped", "over", "the", "moon", "and", "over", "the", "cow"] * 3


def durable(sink: Sink | None = None, **options: Any) -> Topology:
    """A count of words in a file, which are brought to a sink and to a table."""
    topology = Topology("durable", state="no folder/of this name/counts.state", epoch_messages=5, **options)
    counted = topology.bolt("count", Tally, topology.spout("words", WORDS).fields(), parallelism=2)
    topology.bolt("bring", partial(Bring, sink or Sink()), counted.shuffle())
    topology.bolt("keep", SqliteTable("words", str), counted.shuffle())
    return topology
