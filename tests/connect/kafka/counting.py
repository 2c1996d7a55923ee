"""A process that counts what a topic has and writes the counts to another: ``counting.py SERVERS FROM TO STATE``.

It takes its time, so that it can be killed at work, and ends by SIGTERM, as a program in production does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from time import sleep

import msgspec

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.connect.kafka import Commit, Topics

KEYS = 10


class Counted(msgspec.Struct, frozen=True):
    """A message, and its place among those of its key."""

    number: int
    count: int


class Count(KeyedBolt[int, int, Counted]):
    """Counts by key."""

    total = Value(int, 0)

    def execute(self, tup: Tuple[int], out: Collector[Counted]) -> None:
        self.total += 1
        out.emit(Counted(tup.value, self.total))


class CountSlowly(Count):
    """A thousand messages a second at most."""

    def execute(self, tup: Tuple[int], out: Collector[Counted]) -> None:
        sleep(0.001)
        super().execute(tup, out)


def by_key(number: int) -> int:
    """One of ten."""
    return number % KEYS


def counting(
    servers: str, read: str, written: str, state: str, count: type[Count] = Count, **options: object
) -> Topology:
    """From Kafka to Kafka."""
    url = f"kafka://{servers}"
    topology = Topology("counting", state=state, epoch_seconds=0.1, max_spout_pending=500)
    source = Topics[int](url, [read], group=f"readers of {read}", as_=int, **options)
    numbers = topology.spout("numbers", source, parallelism=2)
    counts = topology.bolt("count", count, numbers.fields(by_key), parallelism=2)
    sink = Commit(url, written, Counted, key=lambda row: str(by_key(row.number)), transactional_id=written)
    topology.bolt("write", sink, counts.global_(), max_restarts=50, restart_window=600)
    return topology


async def main(servers: str, read: str, written: str, state: str) -> None:
    """Run until SIGTERM."""
    async with counting(servers, read, written, state, CountSlowly).run():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
