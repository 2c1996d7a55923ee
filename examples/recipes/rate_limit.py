"""Call a service at most so many times per second, however fast the messages come.

A call waits for its slot inside the bolt; meanwhile the bounded queues hold everything before it back. All calls that
share a ``RateLimit`` share its slots, those of other tasks too. Guaranteed: slots are ``1 / rate`` seconds apart, no
two calls have the same one, and none starts before its own; replays wait for slots as well. On Spark each
partition has a ``RateLimit`` of its own, so that each needs its share of the rate.

A message's timeout runs while it waits. The last of ``max_spout_pending`` messages waits for ``max_spout_pending /
rate`` seconds, so keep that well below ``message_timeout``, or messages time out in the queue and are sent again.

::

    python -m stormlet run examples/recipes/rate_limit.py
"""

from __future__ import annotations

import asyncio

from stormlet import BasicBolt, Collector, TaskContext, Topology, Tuple

CALLS = 100
RATE = 100.0
"""Calls per second."""


class RateLimit:
    """Hands out slots, ``rate`` per second."""

    def __init__(self, rate: float) -> None:
        self._pause = 1 / rate
        self._next = 0.0

    async def slot(self) -> None:
        """Wait for the next free slot, in the order of asking."""
        now = asyncio.get_running_loop().time()
        start = max(now, self._next)
        self._next = start + self._pause
        await asyncio.sleep(start - now)


class Call(BasicBolt[int, str]):
    """Calls the service; many calls may be under way, but they start at the rate."""

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit

    def prepare(self, context: TaskContext) -> None:
        """Note the time."""
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()

    async def execute(self, tup: Tuple[int], out: Collector[str]) -> None:
        """One call."""
        await self.limit.slot()
        at = self.loop.time() - self.began
        await asyncio.sleep(0.05)  # stands for the service
        out.emit(f"{at:5.2f} s  call {tup.value}")


def limited(calls: int = CALLS, rate: float = RATE) -> Topology:
    """So many calls, ``rate`` of them per second."""
    limit = RateLimit(rate)
    topology = Topology("rate-limit", max_spout_pending=200, message_timeout=30.0)  # 200 / 100 per s: 2 s
    numbers = topology.spout("numbers", range(calls))
    called = topology.bolt("call", lambda: Call(limit), numbers.shuffle(), parallelism=2, concurrency=20)
    topology.bolt("print", print, called.global_())
    return topology
