"""Complete latency of a chain of two bolts, one tree at a time, as the host sees it."""

from __future__ import annotations

import time

from stormlet.bench.event_loop import run
from stormlet.bench.quantiles import quantile
from stormlet.bench.workload import Figures, Workload, expect
from stormlet.topology import Topology


def latency(size: int) -> Figures:
    """From the call of ``emit`` until its tree is acked."""
    return run(_latency(size))


async def _latency(size: int) -> Figures:
    topology = Topology("bench")
    source = topology.spout("source", outputs=int)
    first = topology.bolt("first", _same, source.shuffle())
    topology.bolt("second", _same, first.shuffle())
    times: list[float] = []
    async with topology.run() as running:
        for number in range(size):
            began = time.perf_counter()
            await (await running.emit(source, number))
            times.append((time.perf_counter() - began) * 1e6)
        expect(running.statistics().components["second"].executed, size, "tuples executed")
    return {"median_us": quantile(times, 0.5), "p99_us": quantile(times, 0.99)}


def _same(number: int) -> int:
    return number


WORKLOADS = (Workload("latency", "two bolts, one tree at a time", latency, 20_000),)
