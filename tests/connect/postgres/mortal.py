"""A process that notes each row of a queue, until it is killed or asked to end.

``python mortal.py URL NOTES SINK``: with a SINK, a table with the key ``id``, the rows are written there, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from stormlet import Topology
from stormlet.connect import postgres

PENDING = 50
LEASE = 1.0


async def main(url: str, notes: str, sink: str) -> None:
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)

    async def note(body: bytes) -> bytes:
        await asyncio.sleep(0.002)
        os.write(file, body + b"\n")
        return body

    topology = Topology("mortal", max_spout_pending=PENDING)
    orders = topology.spout("orders", postgres.Queue(url, "orders", as_=bytes, lease=LEASE))
    noted = topology.bolt("note", note, orders.shuffle(), concurrency=4)
    if sink:
        write = postgres.Upsert[bytes](url, sink, key=["id"], row=lambda body: {"id": int(body)})
        topology.bolt("write", write, noted.shuffle())
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with topology.run():
        await asked.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
