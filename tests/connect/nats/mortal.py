"""A process that notes each message of a stream, until it is killed or asked to end.

``python mortal.py URL STREAM NOTES SINK``: with a SINK, a subject, the messages are published there, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from stormlet import Topology
from stormlet.connect import nats

PENDING = 50
LEASE = 1.0


async def main(url: str, stream: str, notes: str, sink: str) -> None:
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)

    async def note(body: bytes) -> bytes:
        await asyncio.sleep(0.002)
        os.write(file, body + b"\n")
        return body

    topology = Topology("mortal", max_spout_pending=PENDING)
    source = nats.Stream(url, stream, consumer="mortal", as_=bytes, lease=LEASE)
    noted = topology.bolt("note", note, topology.spout("orders", source).shuffle(), concurrency=4)
    if sink:
        topology.bolt("tell", nats.Publish[bytes](url, sink, message_id=bytes.decode), noted.shuffle())
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with topology.run():
        await asked.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
