"""What `python -m stormlet soak tests/testing/soaked.py` runs: every kind of component, at full load, for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count

from stormlet import (
    BatchBolt,
    Collector,
    Failure,
    Reject,
    Spout,
    SpoutCollector,
    Topology,
    Tuple,
)
from tests.cast import Count
from tests.testing.chaos.topologies import Join

WORDS = 1000
POISON = 50_021
"""Each so many numbers there is one that no replay can help."""


def sentences() -> Iterator[str]:
    """Six words each, for ever."""
    for number in count():
        yield " ".join(f"word{(number * 7 + place * 13) % WORDS}" for place in range(6))


async def readings(resume: int | None = None) -> AsyncIterator[int]:
    """A connection that can be taken up again."""
    for number in count(0 if resume is None else resume + 1):
        if number % 100 == 0:
            await asyncio.sleep(0.001)
        yield number


class Numbers(Spout[int]):
    """Emits numbers, each again until it is acked or refused."""

    def __init__(self) -> None:
        self.fresh = count()
        self.again: list[int] = []

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        number = self.again.pop() if self.again else next(self.fresh)
        out.emit(number, message_id=number)

    def fail(self, message_id: object, failure: Failure) -> None:
        if isinstance(message_id, int) and not failure.permanent:
            self.again.append(message_id)


def split(sentence: str) -> Iterator[str]:
    yield from sentence.split()


class Batches(BatchBolt[int, int]):
    """Adds up batches."""

    size = 50
    within = 0.2

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        out.emit(sum(tup.value for tup in tups))


async def look_up(number: int) -> int:
    if number % POISON == POISON - 1:
        raise Reject("nobody knows this number")
    await asyncio.sleep(0.001)
    return number


def parse(number: int) -> int:
    """In a thread."""
    if number % 997 == 996:
        int(f"number {number}")
    return number


class Hasty(Join):
    """Waits for another input only for a while."""

    def tick(self, out: Collector[int]) -> None:
        self.flush(out)


def halve(number: int) -> int | None:
    """Goes round in a cycle."""
    return number // 2 if 0 < number < 16 else None


def build() -> Topology:
    topology = Topology("soaked", ackers=2, message_timeout=3.0, max_spout_pending=500)
    lines = topology.spout("sentences", sentences)
    read = topology.spout("readings", readings)
    numbers = topology.spout("numbers", Numbers, parallelism=2)
    words = topology.bolt("split", split, lines.shuffle(), parallelism=2)
    counts = topology.bolt("count", Count, words.fields(), parallelism=4)
    topology.bolt("batches", Batches, counts.partial_key(), parallelism=2)
    known = topology.bolt("look-up", look_up, numbers.shuffle(), read.shuffle(), concurrency=20)
    parsed = topology.bolt("parse", parse, known.shuffle(), executor="thread")
    joined = topology.bolt("join", Hasty, parsed.shuffle(), known.fields(), tick=0.2)
    halved = topology.bolt("halve", halve, joined.global_())
    topology.connect(halved, halved.shuffle())
    topology.bolt("end", Hasty, joined.all(), halved.local_or_shuffle(), parallelism=2, tick=0.2)
    return topology
