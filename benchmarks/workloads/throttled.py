"""Storm's topologies that measure the waiting: ``BackPressureTopo`` and ``LowThroughputTopo``."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from benchmarks.workloads.storm import ConstSpout
from stormlet.bench.workload import Figures, Workload, expect, quantile, run
from stormlet.core.tuples import Tuple
from stormlet.errors import EndOfStream
from stormlet.model.components import Bolt, Collector, Spout, SpoutCollector
from stormlet.runtime.run.handle import Running
from stormlet.topology import Topology

BOLT_SLEEP = 0.001
SPOUT_SLEEP = 0.01
CAPACITY = 1024
LOOK_EVERY = 0.01


class ThrottledBolt(Bolt[str, None]):
    """Acks first, then sleeps."""

    async def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        """For so long, no other tuple is taken."""
        out.ack(tup)
        await asyncio.sleep(BOLT_SLEEP)


class ThrottledSpout(Spout[float]):
    """Emits the time, then sleeps."""

    def __init__(self, count: int) -> None:
        self._left = count

    async def next_tuple(self, out: SpoutCollector[float]) -> None:
        """Emit, then sleep."""
        if not self._left:
            raise EndOfStream
        self._left -= 1
        out.emit(time.perf_counter(), message_id=self._left)
        await asyncio.sleep(SPOUT_SLEEP)


def back_pressure(size: int) -> Figures:
    """A bolt that takes a thousand tuples a second at the most: whether the spout is held back, by the bounded queue
    alone (law B6)."""
    return run(_back_pressure(size))


def low_throughput(size: int) -> Figures:
    """A hundred tuples a second: how long each is on its way to the bolt."""
    return run(_low_throughput(size))


async def _back_pressure(size: int) -> Figures:
    topology = Topology("bench", max_spout_pending=None, queue_capacity=CAPACITY)
    spout = topology.spout("const", partial(ConstSpout, size))
    topology.bolt("throttled", ThrottledBolt, spout.local_or_shuffle())
    queued: list[int] = []
    began = time.perf_counter()
    async with topology.run() as running:
        watcher = asyncio.create_task(_watch(running, queued))
        await running.finished()
        seconds = time.perf_counter() - began
        watcher.cancel()
        expect(running.statistics().components["throttled"].executed, size, "tuples executed")
    expect(max(queued) <= 2 * CAPACITY, True, f"no more than twice {CAPACITY} queued, at most {max(queued)}")
    return {"messages_per_s": size / seconds, "most_queued": max(queued)}


async def _watch(running: Running, queued: list[int]) -> None:
    while True:
        queued.append(running.statistics().components["throttled"].pending)
        await asyncio.sleep(LOOK_EVERY)


async def _low_throughput(size: int) -> Figures:
    topology = Topology("bench")
    latencies: list[float] = []
    spout = topology.spout("throttled", partial(ThrottledSpout, size))

    def note(emitted: float) -> None:
        latencies.append((time.perf_counter() - emitted) * 1e6)

    topology.bolt("note", note, spout.local_or_shuffle())
    async with topology.run() as running:
        await running.finished()
    expect(len(latencies), size, "tuples executed")
    return {"median_us": quantile(latencies, 0.5), "p99_us": quantile(latencies, 0.99)}


WORKLOADS = (
    Workload("back-pressure", "Storm's back-pressure, a bolt that sleeps 1 ms", back_pressure, 3_000),
    Workload("low-throughput", "Storm's low throughput, a tuple every 10 ms", low_throughput, 200),
)
