"""The cost of rotations: the ledger's own step, and how long the loop is held when many trees expire at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.holds import HoldMeter
from benchmarks.workloads.memory_use import Numbers
from stormlet.bench.rounds import PauseMeter
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.core.ledger import Ledger
from stormlet.core.outcomes import Failure
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Tuple
from stormlet.model.components import Bolt, Collector
from stormlet.topology import Topology

TREES_PER_SECOND = 40_000
"""Less than half of what a spout emits in a second, so that all are in one bucket and time out at once."""
LEAST_TIMEOUT = 0.5


class Keep(Bolt[int, None]):
    """Never settles its inputs, and says when it has all of them."""

    def __init__(self, size: int, got_all: asyncio.Event) -> None:
        self._left = size
        self._got_all = got_all

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Leave the tree open."""
        self._left -= 1
        if not self._left:
            self._got_all.set()


class TimedOut:
    """The number of trees that have timed out, and the time of the first one."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.began = 0.0
        self.all = asyncio.Event()

    def another(self) -> None:
        """One more."""
        self.began = self.began or time.perf_counter()
        self._left -= 1
        if not self._left:
            self.all.set()


class Source(Numbers):
    """Counts what has failed."""

    def __init__(self, numbers: Sequence[int], timed_out: TimedOut) -> None:
        super().__init__(numbers)
        self._timed_out = timed_out

    def fail(self, message_id: object, failure: Failure) -> None:
        """Another one has timed out."""
        self._timed_out.another()


def rotation(size: int) -> Figures:
    """The slowest of the rotations that expire none of so many open trees."""
    ledger = Ledger(buckets=3)
    ledger.init([OpenTree(root=root, checksum=root, message_id=root) for root in range(1, size + 1)])
    slowest = max(_rotation(ledger) for _ in range(2))
    expect((len(ledger), ledger.expiring), (size, 0), "trees open and expiring")
    return {"rotation_us": slowest * 1e6}


def _rotation(ledger: Ledger) -> float:
    began = time.thread_time()
    ledger.rotate()
    return time.thread_time() - began


def expiry(size: int) -> Figures:
    """So many trees time out at once: what each takes, and for how long the loop is held at a time, from their first
    rotation on."""
    return run(_expiry(size))


async def _expiry(size: int) -> Figures:
    timeout = max(LEAST_TIMEOUT, size / TREES_PER_SECOND)
    topology = Topology("bench", max_spout_pending=None, message_timeout=timeout, drain_timeout=0)
    timed_out, got_all = TimedOut(size), asyncio.Event()
    numbers = topology.spout("numbers", partial(Source, list(range(size)), timed_out))
    topology.bolt("keep", partial(Keep, size, got_all), numbers.shuffle())
    with PauseMeter() as meter:
        holds = HoldMeter(meter)
        async with topology.run() as running:
            await got_all.wait()
            watcher = asyncio.create_task(holds.watch())
            await timed_out.all.wait()
            seconds = time.perf_counter() - timed_out.began
            watcher.cancel()
            expect(running.statistics().components["numbers"].failed, size, "trees timed out")
    return {
        "expiry_us_per_tree": seconds * 1e6 / size,
        "longest_hold_ms": holds.longest * 1e3,
        "longest_collecting_ms": holds.longest_collecting * 1e3,
    }


WORKLOADS = (
    Workload("rotation", "1,000,000 open trees, none times out", rotation, 1_000_000),
    Workload("expiry", "100,000 trees time out at once", expiry, 100_000),
)
