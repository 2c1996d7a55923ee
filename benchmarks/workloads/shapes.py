"""Trees of other shapes: wide ones, and such that share tuples."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.tuples import Tuple
from stormlet.model.components import Bolt, Collector
from stormlet.report.statistics import Statistics
from stormlet.topology import Topology

WIDTH = 100


class Join(Bolt[int, tuple[int, int]]):
    """Joins the equal numbers of two streams."""

    def __init__(self) -> None:
        self._waiting: dict[int, Tuple[int]] = {}

    def execute(self, tup: Tuple[int], out: Collector[tuple[int, int]]) -> None:
        """Emit a pair, anchored to both of its halves, when the second one comes."""
        other = self._waiting.pop(tup.value, None)
        if other is None:
            self._waiting[tup.value] = tup
            return
        out.emit((other.value, tup.value), anchors=(other, tup))
        out.ack(other)
        out.ack(tup)


def fan_out(size: int, *, ackers: int) -> Figures:
    """Each message becomes a hundred tuples."""
    return run(_fan_out(size, ackers))


def join(size: int) -> Figures:
    """Tuples that belong to two trees."""
    return run(_join(size))


async def _fan_out(size: int, ackers: int) -> Figures:
    topology = Topology("bench", ackers=ackers)
    numbers = topology.spout("numbers", range(size))
    many = topology.bolt("multiply", _multiply, numbers.shuffle())
    topology.bolt("drop", _drop, many.shuffle())
    seconds, statistics = await _timed(topology)
    expect(statistics.components["numbers"].acked, size, "messages acked")
    expect(statistics.components["drop"].executed, size * WIDTH, "tuples executed")
    return {"tuples_per_s": size * (1 + WIDTH) / seconds}


async def _join(size: int) -> Figures:
    topology = Topology("bench")
    left = topology.spout("left", range(size))
    right = topology.spout("right", range(size))
    pairs = topology.bolt("join", Join, left.fields(), right.fields())
    topology.bolt("drop", _drop, pairs.shuffle())
    seconds, statistics = await _timed(topology)
    for side in ("left", "right"):
        expect(statistics.components[side].acked, size, f"messages of {side} acked")
    expect(statistics.components["drop"].executed, size, "pairs executed")
    return {"tuples_per_s": size * 3 / seconds}


async def _timed(topology: Topology) -> tuple[float, Statistics]:
    began = time.perf_counter()
    async with topology.run() as running:
        await running.finished()
        return time.perf_counter() - began, running.statistics()


def _multiply(number: int) -> Iterator[int]:
    for each in range(WIDTH):
        yield number + each


def _drop(value: object) -> None:
    """A null bolt."""


WORKLOADS = (
    Workload("fan-out", "fan-out 1:100, acked", partial(fan_out, ackers=1), 10_000),
    Workload("fan-out-unacked", "fan-out 1:100, ackers=0", partial(fan_out, ackers=0), 10_000),
    Workload("join", "a join, anchored to both sides", join, 80_000),
)
