"""Bolts that await, the same calls made by hand, which are their limits, and bolts in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Literal

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


def by_tasks(size: int) -> Figures:
    """An asyncio task for each call, a hundred at a time by a semaphore."""
    return run(_by_hand(size, _under_semaphore))


def by_workers(size: int) -> Figures:
    """A hundred coroutines that take one number after another."""
    return run(_by_hand(size, _by_workers))


def in_a_loop(size: int) -> Figures:
    """One call after another in one coroutine."""
    return run(_by_hand(size, _one_by_one))


ByHand = Callable[[Iterator[int], list[int]], Coroutine[Any, Any, None]]
"""Makes the calls with these numbers, and adds what they give to a list."""


async def _by_hand(size: int, call: ByHand) -> Figures:
    seen: list[int] = []
    began = time.perf_counter()
    await call(iter(range(size)), seen)
    seconds = time.perf_counter() - began
    expect(len(seen), size, "numbers seen")
    expect(set(seen) == set(range(size)), True, "every number seen")
    return {
        "tuples_per_s": 2 * size / seconds
    }  # as many as the topology has: a number comes, and another is seen


async def _one_by_one(numbers: Iterator[int], seen: list[int]) -> None:
    for number in numbers:
        seen.append(await _turn(number))


async def _by_workers(numbers: Iterator[int], seen: list[int]) -> None:
    await asyncio.gather(*(_one_by_one(numbers, seen) for _ in range(CONCURRENCY)))


async def _under_semaphore(numbers: Iterator[int], seen: list[int]) -> None:
    semaphore = asyncio.Semaphore(CONCURRENCY)

    async def call(number: int) -> None:
        try:
            seen.append(await _turn(number))
        finally:
            semaphore.release()

    running: set[asyncio.Task[None]] = set()
    for number in numbers:
        await semaphore.acquire()
        task = asyncio.create_task(call(number))
        running.add(task)  # else it might be collected
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


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
    Workload("calls-by-loop", "one async call after another, by hand", in_a_loop, 200_000, "limit"),
    Workload("calls-by-tasks", "100 async calls, tasks under a semaphore", by_tasks, 100_000, "limit"),
    Workload("calls-by-workers", "100 async calls, worker coroutines by hand", by_workers, 400_000, "limit"),
    Workload("threads", "a bolt in threads", in_a_thread, 100_000),
)
