"""Components of the conformance cases beside those of the shared cast; the names are those of Storm's own tests.

Times are simulated seconds since the loop began, which is when these topologies start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar

from stormlet import (
    BasicBolt,
    Bolt,
    Collector,
    EndOfStream,
    Running,
    Spout,
    SpoutCollector,
    Stream,
    TaskContext,
    TaskStatistics,
    Topology,
    Tuple,
)
from tests.cast import Feeder, given

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


def mocked(*values: T) -> Callable[[TaskContext], Iterator[T]]:
    """The data of Storm's MockedSources: the first task of the spout emits it all."""

    def source(context: TaskContext) -> Iterator[T]:
        if context.task_index == 0:
            yield from values

    return source


# Bolts.


class AckEveryOther(Bolt[Any, Any]):
    """Acks its first input, its third, and so on, and never settles the others."""

    def __init__(self) -> None:
        self._ignores = True

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        self._ignores = not self._ignores
        if not self._ignores:
            out.ack(tup)


class Branch(Bolt[Any, Any]):
    """Emits n anchored tuples for each input, then acks it."""

    def __init__(self, n: int) -> None:
        self._n = n

    def execute(self, tup: Tuple[Any], out: Collector[Any]) -> None:
        for number in range(self._n):
            out.emit(number, anchors=tup)
        out.ack(tup)


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
