"""A process that reads a topic and writes a line for each message: ``worker.py SERVERS TOPIC OUTPUT PROTOCOL``.

It ends by SIGTERM, as a program in production does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from stormlet import Topology, Tuple
from stormlet.connect.kafka import Topics
from stormlet.model.components import BatchBolt, Collector

PENDING = 500
SETTLE_EVERY = 0.2
BATCH, PAUSE = 100, 0.01
MOST_A_SECOND = BATCH / PAUSE


class Write(BatchBolt[bytes, None]):
    """Writes the lines of a batch before they are acked. Each takes a moment, so that trees are open, and so that one
    process has not read everything before another one is up."""

    size = BATCH
    within = 0.01

    def __init__(self, output: int) -> None:
        self._output = output

    async def execute_batch(self, tups: list[Tuple[bytes]], out: Collector[None]) -> None:
        await asyncio.sleep(PAUSE)
        os.write(self._output, b"".join(tup.value + b"\n" for tup in tups))


async def main(servers: str, topic: str, output: str, protocol: str) -> None:
    """Run until SIGTERM."""
    file = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    source = Topics[bytes](
        f"kafka://{servers}",
        [topic],
        group=f"readers of {topic}",
        as_=bytes,
        protocol=protocol,
        settle_every=SETTLE_EVERY,
        client={"session.timeout.ms": 6000} if protocol == "classic" else {},
    )
    topology = Topology("worker", max_spout_pending=PENDING)
    read = topology.spout("read", source)
    topology.bolt("write", lambda: Write(file), read.shuffle())
    async with topology.run():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
