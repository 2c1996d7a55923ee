"""Bolts that await, and bolts in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.topology import Topology

CONCURRENCY = 100


def awaiting(size: int, *, concurrency: int) -> Figures:
    """Each call lets the loop turn once before it goes on."""
    return run(_through(size, _turn, "loop", concurrency))


def in_a_thread(size: int) -> Figures:
    """Each call is made in another thread."""
    return run(_through(size, _same, "thread", 1))


async def _through(
    size: int, function: Callable[..., object], executor: Literal["loop", "thread"], concurrency: int
) -> Figures:
    topology = Topology("bench")
    seen: list[object] = []
    numbers = topology.spout("numbers", range(size))
    results = topology.bolt(
        "call", function, numbers.shuffle(), executor=executor, concurrency=concurrency, outputs=int
    )
    topology.bolt("see", seen.append, results.shuffle())
    began = time.perf_counter()
    async with topology.run() as running:
        await running.finished()
        seconds = time.perf_counter() - began
        expect(running.statistics().components["numbers"].acked, size, "messages acked")
    expect(len(seen), size, "numbers seen")
    expect(set(seen) == set(range(size)), True, "every number seen")
    return {"tuples_per_s": 2 * size / seconds}


async def _turn(number: int) -> int:
    await asyncio.sleep(0)
    return number


def _same(number: int) -> int:
    return number


WORKLOADS = (
    Workload("async-bolt", "an async bolt, one call at a time", partial(awaiting, concurrency=1), 40_000),
    Workload(
        "async-bolt-100",
        "an async bolt, 100 calls at a time",
        partial(awaiting, concurrency=CONCURRENCY),
        40_000,
    ),
    Workload("threads", "a bolt in threads", in_a_thread, 100_000),
)
