"""A process that notes each message of a queue, until it is killed or asked to end.

``python mortal.py URL QUEUE NOTES SINK``: with a SINK the messages are published to that queue, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from stormlet import Topology
from stormlet.connect import rabbitmq

PENDING = 50


async def main(url: str, queue: str, notes: str, sink: str) -> None:
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)

    async def note(body: bytes) -> bytes:
        await asyncio.sleep(0.002)
        os.write(file, body + b"\n")
        return body

    topology = Topology("mortal", max_spout_pending=PENDING)
    orders = topology.spout("orders", rabbitmq.Queue[bytes](url, queue, as_=bytes))
    noted = topology.bolt("note", note, orders.shuffle(), concurrency=4)
    if sink:
        topology.bolt("tell", rabbitmq.Publish[bytes](url, routing_key=sink), noted.shuffle())
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with topology.run():
        await asked.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
