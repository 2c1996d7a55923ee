"""A topology with a bit of everything, and a diary of all that happens in it (law L16).

``python tests/law/busy.py SEED`` prints the diary of one run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    DeadLetter,
    Failure,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    To,
    Topology,
    Tuple,
    TupleFailed,
)
from stormlet.errors import EndOfStream
from stormlet.testing import run_simulated

SENTENCE = "the cow jumped over the moon an apple a day keeps the doctor away four score"


class Diary:
    """What happens, in order."""

    def __init__(self, burn: int = 0) -> None:
        self.lines: list[str] = []
        self._burn = burn

    def write(self, who: str, *what: object) -> None:
        """Note the simulated time, who, and what; burn real time now and then, if asked to."""
        self.lines.append(" ".join(map(str, (asyncio.get_running_loop().time(), who, *what))))
        if len(self.lines) % 97 == 0:
            sum(range(self._burn))

    def read(self, who: str, tup: Tuple[Any]) -> None:
        """Note a tuple and all its ids."""
        self.write(who, "<-", tup.component, tup.task, tup.value, tup.attempt, *tup.edges().items())


# Spouts.


class Numbers(Spout[int]):
    """Emits every other number up to 40; a failed one is not emitted again."""

    def __init__(self, diary: Diary) -> None:
        self._diary = diary

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self._who, self._next = f"numbers[{context.task_index}]", context.task_index

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self._next > 40:
            raise EndOfStream
        self._diary.write(self._who, "->", out.emit(self._next, message_id=self._next))
        self._next += 2

    def ack(self, message_id: object) -> None:
        self._diary.write(self._who, "ack", message_id)

    def fail(self, message_id: object, failure: Failure) -> None:
        self._diary.write(self._who, "fail", message_id, failure)


def words() -> Iterator[str]:
    yield from SENTENCE.split()


async def slow_words() -> AsyncIterator[str]:
    for word in SENTENCE.split():
        await asyncio.sleep(0.01 * len(word))
        yield word.upper()


# Bolts.


def letters(diary: Diary, word: str) -> Iterator[object]:
    diary.write("letters", word)
    if word == "moon":
        raise ValueError(word)
    yield from word
    yield To(len(word), stream="lengths")


class Hold(Bolt[Any, Any]):
    """Joins three inputs at a time; fails a few."""

    def __init__(self, diary: Diary) -> None:
        self._diary = diary
        self._held: list[Tuple[Any]] = []

    def prepare(self, context: TaskContext) -> None:
        self._who = f"hold[{context.task_index}]"

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self._diary.read(self._who, tup)
        self._held.append(tup)
        if len(self._held) == 3:
            self._release(out)

    def _release(self, out: Collector[Any]) -> None:
        out.emit(str([tup.value for tup in self._held]), anchors=self._held)
        for tup in self._held:
            (out.fail if tup.value in (10, 30) else out.ack)(tup)
        self._held.clear()

    def tick(self, out: Collector[Any]) -> None:
        self._diary.write(self._who, "tick")

    def flush(self, out: Collector[Any]) -> None:
        self._diary.write(self._who, "flush")
        self._release(out)


class Slow(BasicBolt[Any, Any]):
    """Takes its time, and for some inputs too much."""

    def __init__(self, diary: Diary) -> None:
        self._diary = diary

    async def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self._diary.read("slow", tup)
        await asyncio.sleep(len(str(tup.value)) % 7 * 0.1 + 5 * (tup.value == "apple"))
        out.emit(tup.value)


class Pairs(BatchBolt[Any, Any]):
    """Takes two at a time."""

    size = 2
    within = 0.5

    def __init__(self, diary: Diary) -> None:
        self._diary = diary

    def execute_batch(self, tups: Sequence[Tuple[Any]], out: Collector[Any]) -> None:
        for tup in tups:
            self._diary.read("pairs", tup)
            if tup.value == 3:
                out.fail(tup, "no threes")


def countdown(diary: Diary, number: int) -> int | None:
    diary.write("countdown", number)
    return number - 1 if number else None


# The topology.


def topology_of(diary: Diary, **options: Any) -> tuple[Topology, Stream[Any]]:
    """Every kind of spout, bolt and grouping; failures, replays, timeouts, joins and a cycle. Also the
    stream that the host emits to."""
    defaults = {"ackers": 3, "message_timeout": 3.0, "queue_capacity": 4, "max_attempts": 2}
    topology = Topology("busy", **{**defaults, **options})
    numbers = topology.spout("numbers", lambda: Numbers(diary), parallelism=2, max_spout_pending=5)
    first, second = topology.spout("words", words), topology.spout("slow words", slow_words)
    feed = topology.spout("feed")
    letter = topology.bolt(
        "letters",
        partial(letters, diary),
        first.shuffle(),
        second.partial_key(),
        parallelism=3,
        outputs={"default": None, "lengths": None},
    )
    hold = topology.bolt("hold", lambda: Hold(diary), letter.fields(), numbers.all(), parallelism=2, tick=0.7)
    slow = topology.bolt(
        "slow", lambda: Slow(diary), hold.shuffle(), first.local_or_shuffle(), parallelism=2, concurrency=3
    )
    threads = topology.bolt("threads", lambda value: value, slow.none(), executor="thread", parallelism=2)
    topology.bolt("pairs", lambda: Pairs(diary), threads.global_(), feed.all(), parallelism=2)
    loop = topology.bolt("countdown", partial(countdown, diary), letter.named("lengths").shuffle())
    topology.connect(loop, loop.shuffle())
    return topology, feed


async def run(diary: Diary, seed: int | None, **options: Any) -> None:
    """Run it to its end, with a host that emits too."""
    topology, feed = topology_of(diary, **options)

    def bury(letter: DeadLetter) -> None:
        diary.write("dead", letter.value, letter.failure)

    async with topology.run(seed=seed, dead_letters=bury) as running:
        for number in range(5):
            try:
                await (await running.emit(feed, number))
            except TupleFailed as error:
                diary.write("host", error)
        await asyncio.sleep(20)
    diary.write("end", running.statistics())


def diary_of(seed: int | None, *, loop_seed: int = 0, burn: int = 0, **options: Any) -> list[str]:
    """The diary of one run under simulated time."""
    diary = Diary(burn)
    run_simulated(run(diary, seed, **options), seed=loop_seed)
    return diary.lines


if __name__ == "__main__":
    print(*diary_of(int(sys.argv[1])), sep="\n")
