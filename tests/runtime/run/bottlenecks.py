"""Topologies whose bottleneck is known, as they are built with it, and others that are well."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import sleep
from typing import Any

from stormlet import (
    BatchBolt,
    BottleneckKind,
    Collector,
    Committer,
    EndOfStream,
    Epoch,
    Progress,
    Reject,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    Topology,
    Tuple,
)
from stormlet.state.memory import MemoryStore
from stormlet.testing import work
from tests.cast import AckLater, Silent, ignore, raise_value_error, refuse, same

(
    COMPUTES, AWAITS, THREADS, SKEW, SOURCE, PENDING, FAILURES, DEAD_LETTERS, EPOCHS, ACKERS, LOOP, OTHERS,
) = BottleneckKind  # fmt: skip

# Sources.


async def every(seconds: float, burst: int = 1) -> AsyncIterator[int]:
    """So many at once, and then a pause."""
    for number in itertools.count():
        await asyncio.sleep(seconds)
        for place in range(burst):
            yield number * burst + place


def computed(seconds: float) -> Iterator[int]:
    """Each takes code so long."""
    for number in itertools.count():
        work(seconds)
        yield number


class Reads(Spout[int]):
    """Reads one after another, knows how many there are, and says so."""

    def __init__(self, seconds: float, known: int = 1_000_000) -> None:
        self.seconds = seconds
        self.known = known
        self.done = 0

    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.report = context.report_progress

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        if self.done == self.known:
            raise EndOfStream
        await asyncio.sleep(self.seconds)
        self.done += 1
        self.report(Progress(self.done, self.known))
        out.emit(self.done, message_id=self.done)


class Untracked(Spout[int]):
    """Emits whenever it is asked, without message ids."""

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


# Bolts.


def awaits(seconds: float) -> Callable[[int], Awaitable[int]]:
    """A call that awaits so long."""

    async def wait(value: int) -> int:
        await asyncio.sleep(seconds)
        return value

    return wait


def computes(seconds: float) -> Callable[[int], int]:
    """A call whose code takes so long."""

    def compute(value: int) -> int:
        work(seconds)
        return value

    return compute


def both(computing: float, awaiting: float) -> Callable[[int], Awaitable[int]]:
    """Code, and then an await."""

    async def do(value: int) -> int:
        work(computing)
        await asyncio.sleep(awaiting)
        return value

    return do


def blocks(seconds: float) -> Callable[[int], int]:
    """A call that blocks its thread so long, in real time."""

    def block(value: int) -> int:
        sleep(seconds)
        return value

    return block


def fifth(value: int) -> int:
    """Four of five values have one key."""
    return value % 5 if value % 5 > 3 else 0


async def every_tenth(value: int) -> None:
    """Refuse every tenth; the others take a moment."""
    await asyncio.sleep(0.001)
    if value % 10 == 0:
        raise Reject(value)


async def slow_zero(value: int) -> None:
    """One value in four takes long."""
    await asyncio.sleep(0.1 if value % 4 == 0 else 0.001)


class Collects(BatchBolt[int, int]):
    """Batches of a hundred, or what has come in ten seconds."""

    size = 100
    within = 10.0

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None:
        """Return."""


class Writes(Committer[int]):
    """Takes some seconds to commit an epoch."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        await asyncio.sleep(self.seconds)


# Around them.


async def hold(part: float, running: Running) -> None:
    """The host's own code holds the loop for this part of the time."""
    while True:
        work(part * 0.05)
        await asyncio.sleep((1 - part) * 0.05)


async def feed(seconds: float, stream: Stream[int], running: Running) -> None:
    """The host emits, as soon as there is room."""
    for number in itertools.count():
        await asyncio.sleep(seconds)
        await running.emit(stream, number)


async def deactivate(running: Running) -> None:
    """No more tuples are asked for."""
    await asyncio.sleep(5)
    running.deactivate()


IN_THREADS = ("one thread", "four threads", "threads with time")
"""Topologies that run in real time: on a simulated loop no thread has code of a bolt (law B9)."""

Beside = Callable[[Running], Awaitable[None]]


@dataclass
class Built:
    """A topology and the code of its host."""

    topology: Topology
    beside: Beside | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


def chain(source: object, *bolts: tuple[str, object, dict[str, Any]], **options: Any) -> Built:
    """A spout ``lines`` and bolts one behind the other."""
    topology = Topology("chain", **options)
    stream: Stream[Any] = topology.spout("lines", source)  # type: ignore[call-overload]
    for id, logic, given in bolts:
        stream = topology.bolt(id, logic, stream.shuffle(), **given)  # type: ignore[call-overload]
    return Built(topology)


def one(id: str, logic: object, **given: Any) -> tuple[str, object, dict[str, Any]]:
    """A bolt of a chain."""
    return id, logic, given


def endless() -> Iterator[int]:
    """As fast as anybody asks."""
    return itertools.count()


def grouped(source: object, logic: object, grouping: str, *by: object, **given: Any) -> Built:
    """A spout and a bolt ``count`` with four tasks, by this grouping."""
    topology = Topology("grouped")
    stream: Stream[Any] = topology.spout("lines", source)  # type: ignore[call-overload]
    topology.bolt("count", logic, getattr(stream, grouping)(*by), parallelism=4, **given)
    return Built(topology)


def with_host(built: Built, beside: Beside) -> Built:
    """With code of the host beside it."""
    built.beside = beside
    return built


def with_letters(built: Built, seconds: float, *, one_by_one: bool = False) -> Built:
    """With a function that takes so long for each dead letter."""

    async def take(turn: asyncio.Lock, letter: object) -> None:
        if one_by_one:
            async with turn:
                await asyncio.sleep(seconds)
        else:
            await asyncio.sleep(seconds)

    built.options["dead_letters"] = partial(take, asyncio.Lock())
    return built


def with_blocking_letters(built: Built, seconds: float) -> Built:
    """With a function that holds the loop so long for each dead letter."""

    def take(letter: object) -> None:
        work(seconds)

    built.options["dead_letters"] = take
    return built


def branches(first: object, second: object) -> Built:
    """Two bolts with the tuples of one spout."""
    topology = Topology("branches")
    lines = topology.spout("lines", endless())
    for id, logic in (("left", first), ("right", second)):
        topology.bolt(id, logic, lines.shuffle())  # type: ignore[call-overload]
    return Built(topology)


def pipelines(*bolts: tuple[str, object], source: Callable[[], object] = endless, **options: Any) -> Built:
    """Each bolt has a spout of its own."""
    topology = Topology("pipelines", **options)
    for id, logic in bolts:
        topology.bolt(id, logic, topology.spout(f"to {id}", source()).shuffle())  # type: ignore[call-overload]
    return Built(topology)


def join(logic: object) -> Built:
    """A bolt that two spouts feed."""
    topology = Topology("join")
    inputs = [topology.spout(id, endless()).shuffle() for id in ("left", "right")]
    topology.bolt("join", logic, *inputs)  # type: ignore[call-overload]
    return Built(topology)


def fed(seconds: float, logic: object, **options: Any) -> Built:
    """The host emits what the bolt gets."""
    topology = Topology("fed", **options)
    stream: Stream[int] = topology.spout("requests")
    topology.bolt("answer", logic, stream.shuffle())  # type: ignore[call-overload]
    return Built(topology, partial(feed, seconds, stream))


def committing(seconds: float, source: object) -> Built:
    """A committer, and epochs of a second."""
    topology = Topology("committing", epoch_messages=100)
    topology.bolt("write", partial(Writes, seconds), topology.spout("lines", source).shuffle())  # type: ignore[call-overload]
    return Built(topology, options={"state": MemoryStore()})


LIMITED: dict[str, tuple[BottleneckKind, str, Callable[[], Built]]] = {
    # Bolts that await.
    "one call at a time": (AWAITS, "ask", lambda: chain(endless(), one("ask", awaits(0.01)))),
    "eight calls at a time": (
        AWAITS,
        "ask",
        lambda: chain(endless(), one("ask", awaits(0.1), concurrency=8)),
    ),
    "four tasks": (AWAITS, "ask", lambda: chain(endless(), one("ask", awaits(0.05), parallelism=4))),
    "in the middle": (
        AWAITS,
        "ask",
        lambda: chain(endless(), one("parse", computes(1e-4)), one("ask", awaits(0.02)), one("end", ignore)),
    ),
    "the second is slower": (
        AWAITS,
        "second",
        lambda: chain(endless(), one("first", awaits(0.01)), one("second", awaits(0.02))),
    ),
    "the first is slower": (
        AWAITS,
        "first",
        lambda: chain(endless(), one("first", awaits(0.02)), one("second", awaits(0.01))),
    ),
    "the last of three, by small queues": (
        AWAITS,
        "third",
        lambda: chain(
            endless(),
            one("first", awaits(0.005)),
            one("second", awaits(0.005)),
            one("third", awaits(0.02)),
            queue_capacity=5,
            max_spout_pending=None,
            message_timeout=None,
        ),
    ),
    "one of two branches": (AWAITS, "right", lambda: branches(awaits(0.005), awaits(0.02))),
    "a join": (AWAITS, "join", lambda: join(awaits(0.01))),
    "one of two pipelines": (
        AWAITS,
        "slow",
        lambda: pipelines(("slow", awaits(0.05)), ("fast", ignore), source=partial(every, 0.01)),
    ),
    "computes and awaits": (AWAITS, "ask", lambda: chain(endless(), one("ask", both(0.003, 0.01)))),
    "fed by the host": (AWAITS, "answer", lambda: fed(0.001, awaits(0.02), max_spout_pending=50)),
    "untracked": (
        AWAITS,
        "ask",
        lambda: chain(Untracked, one("ask", awaits(0.01)), queue_capacity=10),
    ),
    "without ackers": (
        AWAITS,
        "ask",
        lambda: chain(endless(), one("ask", awaits(0.01)), queue_capacity=10, ackers=0),
    ),
    # Code that fills the loop.
    "computes": (COMPUTES, "parse", lambda: chain(endless(), one("parse", computes(0.01)))),
    "computes in four tasks": (
        COMPUTES,
        "parse",
        lambda: chain(endless(), one("parse", computes(0.01), parallelism=4)),
    ),
    "computes in eight calls": (
        COMPUTES,
        "parse",
        lambda: chain(endless(), one("parse", both(0.01, 0.001), concurrency=8)),
    ),
    "computes more than the others": (
        COMPUTES,
        "parse",
        lambda: chain(
            endless(),
            one("first", computes(0.002)),
            one("parse", computes(0.01)),
            one("end", computes(0.001)),
        ),
    ),
    "computes for one key": (
        COMPUTES,
        "count",
        lambda: grouped(endless(), computes(0.005), "fields", fifth),
    ),
    "all together": (
        LOOP,
        "b",
        lambda: chain(endless(), *(one(id, computes(0.004 if id == "b" else 0.003)) for id in "abcd")),
    ),
    "the source computes": (SOURCE, "lines", lambda: chain(computed(0.01), one("parse", computes(0.001)))),
    # Threads.
    "one thread": (
        THREADS,
        "resize",
        lambda: chain(endless(), one("resize", blocks(0.02), executor="thread")),
    ),
    "four threads": (
        THREADS,
        "resize",
        lambda: chain(endless(), one("resize", blocks(0.02), executor="thread", concurrency=4)),
    ),
    # Uneven tasks.
    "one key": (SKEW, "count", lambda: grouped(endless(), awaits(0.01), "fields", fifth)),
    "the first task alone": (SKEW, "count", lambda: grouped(endless(), awaits(0.01), "global_")),
    "one slow task": (
        SKEW,
        "count",
        lambda: grouped(endless(), slow_zero, "fields", lambda value: value % 4),
    ),
    # What is not busy.
    "few may be pending": (
        PENDING,
        "lines",
        lambda: chain(endless(), one("ask", awaits(1.0), concurrency=100), max_spout_pending=10),
    ),
    "inputs that are held": (
        PENDING,
        "lines",
        lambda: chain(endless(), one("hold", partial(AckLater, 1.0)), max_spout_pending=20),
    ),
    "one message at a time": (
        PENDING,
        "lines",
        lambda: chain(endless(), *(one(id, awaits(0.1)) for id in "abc"), max_spout_pending=1),
    ),
    "one of two may have few": (
        PENDING,
        "to ask",
        lambda: pipelines(
            ("ask", awaits(1.0)), ("fast", awaits(0.0)), source=partial(every, 0.01), max_spout_pending=1
        ),
    ),
    "everything fails": (
        FAILURES,
        "store",
        lambda: chain(endless(), one("parse", same), one("store", raise_value_error), max_spout_pending=10),
    ),
    "all letters are taken slowly": (
        DEAD_LETTERS,
        "lines",
        lambda: with_letters(chain(endless(), one("parse", refuse), max_spout_pending=10), 5.0),
    ),
    "letters are taken one at a time": (
        DEAD_LETTERS,
        "lines",
        lambda: with_letters(
            chain(endless(), one("parse", computes(1e-4)), one("store", every_tenth), max_spout_pending=50),
            0.5,
            one_by_one=True,
        ),
    ),
    "letters hold the loop": (
        DEAD_LETTERS,
        "lines",
        lambda: with_blocking_letters(chain(endless(), one("parse", refuse), max_spout_pending=10), 0.05),
    ),
    "letters of a few hold the loop": (
        DEAD_LETTERS,
        "lines",
        lambda: with_blocking_letters(
            chain(computed(0.001), one("parse", computes(0.001)), one("store", every_tenth)), 0.2
        ),
    ),
    "the source computes, and letters take little": (
        SOURCE,
        "lines",
        lambda: with_blocking_letters(chain(computed(0.01), one("store", every_tenth)), 0.01),
    ),
    "a source that has more": (
        SOURCE,
        "lines",
        lambda: chain(partial(Reads, 0.1), one("parse", computes(0.001))),
    ),
    "ackers that are full": (
        ACKERS,
        "lines",
        lambda: chain(
            endless(),
            one("ask", awaits(0.5), concurrency=1000),
            acker_high_water=2,
            max_spout_pending=100,
            replay_delay_max=1.0,
            max_attempts=1000,
        ),
    ),
    "a committer": (EPOCHS, "write", lambda: committing(5.0, endless())),
    # Code that is not of the topology.
    "the host": (
        OTHERS,
        "",
        lambda: with_host(chain(every(0.1), one("parse", computes(0.001))), partial(hold, 0.7)),
    ),
    "the host, and a bolt that awaits": (
        OTHERS,
        "",
        lambda: with_host(chain(endless(), one("ask", awaits(0.01))), partial(hold, 0.7)),
    ),
}
"""By what is special of them: the kind and the component of their bottleneck, and the topology."""

WELL: dict[str, Callable[[], Built]] = {
    "a source that gives little": lambda: chain(every(0.5), one("ask", awaits(0.05))),
    "nothing comes": lambda: chain(Silent, one("ask", awaits(0.05))),
    "nearly busy": lambda: chain(every(0.1), one("ask", awaits(0.085))),
    "bursts": lambda: chain(every(9.7, 100), one("ask", awaits(0.05)), max_spout_pending=50),
    "bursts for which there is just time": lambda: chain(every(9.7, 17), one("ask", awaits(0.5))),
    "bursts of code": lambda: chain(every(10.0, 50), one("parse", computes(0.01))),
    "a source that has ended": lambda: chain(range(100), one("ask", awaits(0.01))),
    "a source at its end": lambda: chain(partial(Reads, 0.1, 100), one("ask", awaits(0.01))),
    "half of the loop": lambda: chain(every(0.02), one("parse", computes(0.01))),
    "a host with little code": lambda: with_host(
        chain(every(0.1), one("parse", computes(0.001))), partial(hold, 0.2)
    ),
    "fed now and then": lambda: fed(0.1, awaits(0.05)),
    "one key, and time": lambda: grouped(every(0.1), awaits(0.05), "fields", fifth),
    "not active": lambda: with_host(chain(endless(), one("ask", awaits(0.01))), deactivate),
    "batches": lambda: chain(every(0.05), one("collect", Collects)),
    "some fail": lambda: chain(every(0.5), one("store", refuse)),
    "few letters, taken slowly": lambda: with_letters(chain(every(0.5), one("store", refuse)), 5.0),
    "threads with time": lambda: chain(every(0.05), one("resize", blocks(0.01), executor="thread")),
    "epochs": lambda: committing(0.1, every(0.05)),
}
"""Others, by what is special of them; nothing limits them."""
