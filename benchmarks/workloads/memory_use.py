"""The memory of a pending tree and of full queues."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.memory import peak_mib, resident_bytes
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.tuples import Tuple
from stormlet.errors import EndOfStream
from stormlet.model.components import Bolt, Collector, Spout, SpoutCollector
from stormlet.topology import Topology

SLOWNESS = 1000
"""Rounds of an empty loop: some ten microseconds, several times what the rest of the way costs."""


class Keep(Bolt[int, None]):
    """Never settles its inputs, and says when there are no more."""

    def __init__(self, got_all: asyncio.Event) -> None:
        self._got_all = got_all

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Leave the tree open."""

    def flush(self, out: Collector[None]) -> None:
        """Nothing moves any more."""
        self._got_all.set()


class Numbers(Spout[int]):
    """Emits integers, under themselves as message ids or untracked."""

    def __init__(self, numbers: Sequence[int], *, tracked: bool = True) -> None:
        self._numbers = iter(numbers)
        self._tracked = tracked

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        """Emit the next integer."""
        for number in self._numbers:
            out.emit(number, message_id=number if self._tracked else None)
            return
        raise EndOfStream


def pending(size: int) -> Figures:
    """Memory per pending tree with an integer message id, without its value and the tuple that a bolt holds of it:
    what tracked messages take that a bolt holds, less what untracked ones take. Where the system reports it, what is
    resident, too, which counts what was allocated past Python."""
    numbers = list(range(size))
    run(_held(numbers[:1000], tracked=True))  # what is loaded and made once is no tree's
    resident = run(_held(numbers, tracked=True)).resident
    traced, untracked = (_traced(numbers, tracked=tracked) for tracked in (True, False))
    figures = {"bytes_per_tree": (traced - untracked) / size}
    if resident is not None:
        figures["resident_bytes_per_tree"] = (resident - untracked) / size
    return figures


def flat(size: int) -> Figures:
    """Peak memory after a tenth and after all of so many tuples, with a slow last bolt and nothing but the bounded
    queues to hold the spout back (law B6)."""
    return run(_flat(size))


def _traced(numbers: Sequence[int], *, tracked: bool) -> int:
    tracemalloc.start()
    try:
        return run(_held(numbers, tracked=tracked)).traced
    finally:
        tracemalloc.stop()


class Growth(NamedTuple):
    """By how many bytes this process has grown."""

    traced: int
    resident: int | None


async def _held(numbers: Sequence[int], *, tracked: bool) -> Growth:
    topology = Topology("bench", max_spout_pending=None, message_timeout=None, drain_timeout=0)
    got_all = asyncio.Event()
    spout = topology.spout("numbers", partial(Numbers, numbers, tracked=tracked))
    topology.bolt("keep", partial(Keep, got_all), spout.shuffle())
    gc.collect()
    before = resident_bytes()
    async with topology.run() as running:
        await got_all.wait()
        components = running.statistics().components
        expect(components["keep"].pending, len(numbers), "tuples held")
        expect(components["__acker"].pending, len(numbers) if tracked else 0, "open trees")
        gc.collect()
        after = resident_bytes()
        traced, _ = tracemalloc.get_traced_memory()
    return Growth(traced, None if before is None or after is None else after - before)


async def _flat(size: int) -> Figures:
    peaks: list[float] = []

    def slow(number: int) -> None:
        for _ in range(SLOWNESS):
            pass
        if number in (size // 20, size // 2 - 1):
            peaks.append(peak_mib())

    topology = Topology("bench", max_spout_pending=None)
    numbers = topology.spout("numbers", range(size // 2))
    passed_on = topology.bolt("pass on", _same, numbers.shuffle())
    topology.bolt("slow", slow, passed_on.shuffle())
    async with topology.run() as running:
        await running.finished()
        expect(running.statistics().components["slow"].executed, size // 2, "tuples executed")
    return {"peak_mib_early": peaks[0], "peak_mib": peaks[1]}


def _same(number: int) -> int:
    return number


WORKLOADS = (
    Workload("pending", "a pending tree", pending, 100_000),
    Workload("flat", "500,000 tuples into a slow bolt", flat, 500_000, needs="resource"),
)
