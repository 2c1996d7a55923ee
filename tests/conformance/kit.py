"""The components that the conformance cases are made of; the names are those of Storm's own tests.

Times are simulated seconds since the loop began, which is when these topologies start.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    EndOfStream,
    Failure,
    FailureKind,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    TaskStatistics,
    Topology,
    Tuple,
)
from tests.helpers import now

T = TypeVar("T")

A_MOMENT = 0.001
"""Seconds: no timer of these tests is that short, so everything that can happen at once has happened after it."""


# Time.


async def until(moment: float) -> None:
    """Sleep until exactly this moment."""
    loop = asyncio.get_running_loop()
    there = loop.create_future()
    loop.call_at(moment, there.set_result, None)
    await there


async def settle() -> None:
    """Let everything happen that waits for no clock (Storm's ``trackedWait``)."""
    await asyncio.sleep(A_MOMENT)


# Spouts.


class Feeder(Spout[Any]):
    """Storm's FeederSpout: emits what the test feeds it, one value a call, and notes every outcome and its
    moment."""

    def __init__(self) -> None:
        self.acked: list[object] = []
        self.failed: list[object] = []
        self.outcomes: list[tuple[str, object]] = []
        """Acks and fails in their order, as ``("ack", message_id)``."""
        self.failures: dict[object, Failure] = {}
        self.settled_at: dict[object, float] = {}
        self.asked: list[float] = []
        """The moment of every ``next_tuple``."""
        self.out: SpoutCollector[Any] | None = None
        self._fed = deque[tuple[object, object, str]]()

    def feed(self, value: object, message_id: object = None, stream: str = "default") -> None:
        """Have this emitted as soon as the topology asks for it; without an id it is untracked."""
        self._fed.append((value, message_id, stream))
        if self.out is not None:
            self.out.wake()

    def take_acked(self) -> int:
        """How many messages were acked since the last call."""
        taken, self.acked = len(self.acked), []
        return taken

    def open(self, context: TaskContext, out: SpoutCollector[Any]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        self.asked.append(now())
        if self._fed:
            value, message_id, stream = self._fed.popleft()
            out.emit(value, message_id=message_id, stream=stream)

    def ack(self, message_id: object) -> None:
        self.acked.append(message_id)
        self._settled("ack", message_id)

    def fail(self, message_id: object, failure: Failure) -> None:
        self.failed.append(message_id)
        self.failures[message_id] = failure
        self._settled("fail", message_id)

    def _settled(self, verb: str, message_id: object) -> None:
        self.outcomes.append((verb, message_id))
        self.settled_at[message_id] = now()

    def causes(self) -> dict[object, FailureKind]:
        """Why each message failed, by id."""
        return {message_id: failure.kind for message_id, failure in self.failures.items()}


class Numbers(Feeder):
    """A source of its own: 0, 1, 2 … up to ``last``, under ids of the same numbers."""

    def __init__(self, last: int | None = None, tracked: bool = True) -> None:
        super().__init__()
        self.emitted = 0
        self._last = last
        self._tracked = tracked

    def next_tuple(self, out: SpoutCollector[Any]) -> None:
        if self._last is not None and self.emitted > self._last:
            raise EndOfStream
        out.emit(self.emitted, message_id=self.emitted if self._tracked else None)
        self.emitted += 1


def given(component: T) -> Callable[[], T]:
    """A factory that gives this object: for one task whose insides the test wants to see."""
    return lambda: component


def mocked(*values: T) -> Callable[[TaskContext], Iterator[T]]:
    """The data of Storm's MockedSources: the first task of the spout emits it all."""

    def source(context: TaskContext) -> Iterator[T]:
        if context.task_index == 0:
            yield from values

    return source


# Bolts.


class Ack(Bolt[Any, Any]):
    """Acks each input."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.ack(tup)


class Identity(Bolt[Any, Any]):
    """Emits each input, anchored, then acks it."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value, anchors=tup)
        out.ack(tup)


class Unanchored(Bolt[Any, Any]):
    """Emits each input unanchored, then acks it."""

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        out.emit(tup.value)
        out.ack(tup)


class AckEveryOther(Bolt[Any, Any]):
    """Acks its first input, its third, and so on, and never settles the others."""

    def __init__(self) -> None:
        self._ignores = True

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self._ignores = not self._ignores
        if not self._ignores:
            out.ack(tup)


class Agg(Bolt[Any, Any]):
    """Holds inputs; with every n-th it emits one tuple anchored to all n, then acks them."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._held: list[Tuple[Any]] = []

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self._held.append(tup)
        if len(self._held) == self._n:
            out.emit([each.value for each in self._held], anchors=self._held)
            for each in self._held:
                out.ack(each)
            self._held = []


class Branch(Bolt[Any, Any]):
    """Emits n anchored tuples for each input, then acks it."""

    def __init__(self, n: int) -> None:
        self._n = n

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        for number in range(self._n):
            out.emit(number, anchors=tup)
        out.ack(tup)


class Hold(Bolt[Any, Any]):
    """Holds every input for the test to settle."""

    def __init__(self) -> None:
        self.held: list[Tuple[Any]] = []
        self.out: Collector[Any] | None = None

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self.out = out
        self.held.append(tup)

    def ack(self, *values: object) -> None:
        """Ack the held inputs with these values, or all of them."""
        assert self.out is not None, "nothing was executed"
        for tup in [each for each in self.held if not values or each.value in values]:
            self.held.remove(tup)
            self.out.ack(tup)

    def ack_first(self) -> None:
        """Ack the input that is held longest."""
        assert self.out is not None, "nothing was executed"
        self.out.ack(self.held.pop(0))

    def fail(self, value: object) -> None:
        """Fail the held input with this value."""
        assert self.out is not None, "nothing was executed"
        tup = next(each for each in self.held if each.value == value)
        self.held.remove(tup)
        self.out.fail(tup)


class Count(BasicBolt[Hashable, Any]):
    """Storm's TestWordCounter: emits each key with how often this task has seen it."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}

    def execute(self, tup: Tuple[Hashable], out: Collector[Any]) -> None:
        self._counts[tup.value] = self._counts.get(tup.value, 0) + 1
        out.emit((tup.value, self._counts[tup.value]))


class GlobalCount(BasicBolt[Any, int]):
    """Storm's TestGlobalCount: emits how many inputs this task has seen."""

    def __init__(self) -> None:
        self._count = 0

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        self._count += 1
        out.emit(self._count)


class TaskIndex(BasicBolt[Any, int]):
    """Emits the index of its task for each input."""

    def prepare(self, context: TaskContext) -> None:
        self._index = context.task_index

    def execute(self, tup: Tuple[Any], out: Collector[int]) -> None:
        out.emit(self._index)


def collect(topology: Topology, *streams: Stream[Any]) -> list[Any]:
    """Everything that is emitted on these streams, in the order of its arrival at one task."""
    seen: list[Any] = []

    def note(value: object) -> None:
        seen.append(value)

    topology.bolt(f"reads {streams[0].id}", note, *(stream.global_() for stream in streams))
    return seen


# Topologies and their runs.


def one_bolt(spout: Spout[Any], bolt: Callable[..., Any], **configuration: Any) -> Topology:
    """The spout ``s1``, shuffled to one task of the bolt ``b1``: their tasks are 2 and 3 where there is one
    acker."""
    topology = Topology("one bolt", **configuration)
    topology.bolt("b1", bolt, topology.spout("s1", given(spout)).shuffle())
    return topology


def of_tasks(running: Running, component: str) -> Sequence[TaskStatistics]:
    """The statistics of each task of a component."""
    tasks = running.statistics().components[component].tasks
    assert tasks is not None
    return list(tasks.values())
