"""Complete latency of a chain of two bolts at half of the load that it can take.

It is measured from the moment when a message was due, not from when it was emitted: who emits late does not hide the
wait.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from functools import partial
from math import inf

from stormlet.bench.workload import Figures, Workload, expect, quantile, run
from stormlet.errors import EndOfStream
from stormlet.model.components import Spout, SpoutCollector
from stormlet.topology import Topology

MOST_AT_ONCE = 50
"""Emits of one call of ``next_tuple``, when many are due."""
LOAD = 0.5


class Paced(Spout[int]):
    """Emits so many messages a second, as the clock says, and notes how late their acks are, in µs."""

    def __init__(self, count: int, per_second: float, latencies: array[float]) -> None:
        self._count = count
        self._interval = 1 / per_second
        self._next = 0
        self._began = time.perf_counter()
        self._latencies = latencies

    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        """Emit what is due, or wait for it."""
        if self._next == self._count:
            raise EndOfStream
        early = self._began + self._next * self._interval - time.perf_counter()
        if early > 0:
            await asyncio.sleep(early)
        for number in range(self._next, min(self._next + MOST_AT_ONCE, self._due(), self._count)):
            out.emit(number, message_id=number)
            self._next = number + 1

    def ack(self, message_id: object) -> None:
        """Note how long that took."""
        assert isinstance(message_id, int)
        due = self._began + message_id * self._interval
        self._latencies.append((time.perf_counter() - due) * 1e6)

    def _due(self) -> int:
        if not self._interval:
            return self._count
        return int((time.perf_counter() - self._began) / self._interval) + 1


def half_load(size: int) -> Figures:
    """First as fast as possible, then at half of that rate."""
    return run(_half_load(size))


async def _half_load(size: int) -> Figures:
    most, _ = await _run_at(inf, size)
    _, latencies = await _run_at(most * LOAD, size)
    return {
        "messages_per_s": most * LOAD,
        "median_us": quantile(latencies, 0.5),
        "p99_us": quantile(latencies, 0.99),
    }


async def _run_at(per_second: float, size: int) -> tuple[float, array[float]]:
    """Messages per second, and their latencies."""
    latencies = array("d")
    topology = Topology("bench")
    paced = topology.spout("paced", partial(Paced, size, per_second, latencies))
    first = topology.bolt("first", _same, paced.shuffle())
    topology.bolt("second", _same, first.shuffle())
    began = time.perf_counter()
    async with topology.run() as running:
        await running.finished()
        seconds = time.perf_counter() - began
    expect(len(latencies), size, "messages acked")
    return size / seconds, latencies


def _same(number: int) -> int:
    return number


WORKLOADS = (Workload("half-load", "two bolts at half of their maximum load", half_load, 100_000),)
