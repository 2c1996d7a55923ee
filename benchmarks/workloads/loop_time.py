"""The wait of a host's coroutine for its turn in the loop of a topology at full load (law F2)."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import Counter
from functools import partial

from benchmarks.holds import HoldMeter
from stormlet.bench.rounds import PauseMeter
from stormlet.bench.word_count import Count, check, sentences, split
from stormlet.bench.workload import Figures, Workload, quantile, run
from stormlet.topology import Topology


def host_wait(size: int) -> Figures:
    """From ``sleep(0)`` until the coroutine goes on, beside a word count; and the CPU time of that, without the garbage
    collector's, which other processes have no part in."""
    return run(_host_wait(size))


async def _host_wait(size: int) -> Figures:
    topology = Topology("bench")
    counts: list[Counter[str]] = []
    lines = topology.spout("sentences", sentences(size))
    words = topology.bolt("split", split, lines.shuffle())
    topology.bolt("count", partial(Count, counts), words.fields())
    waits = array("d")
    with PauseMeter() as meter:
        holds = HoldMeter(meter)
        async with topology.run() as running:
            beside = [asyncio.create_task(each) for each in (_wait_again_and_again(waits), holds.watch())]
            await running.finished()
            for each in beside:
                each.cancel()
    check(sum(counts, Counter[str]()), size)
    return {
        "median_us": quantile(waits, 0.5),
        "p99_us": quantile(waits, 0.99),
        "longest_us": max(waits),
        "held_p99_us": quantile(holds.seconds, 0.99) * 1e6,
    }


async def _wait_again_and_again(waits: array[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0)
        waits.append((time.perf_counter() - began) * 1e6)


WORKLOADS = (Workload("host-wait", "a host's coroutine beside a word count", host_wait, 100_000),)
