"""A process that notes each message of a place, until it is killed or asked to end.

``python mortal.py KIND URL NAME NOTES LEASE SINK``: KIND is the class of the place, such as
``tests.connect.nats.kit:Server``, LEASE its seconds. With ``sink`` the messages are written beside it, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pkgutil import resolve_name

from stormlet import Topology
from tests.connect.place import Place

PENDING = 50


async def main(place: Place, notes: str, lease: str, sink: str) -> None:
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)

    async def note(body: str) -> str:
        await asyncio.sleep(0.002)
        os.write(file, body.encode() + b"\n")
        return body

    topology = Topology("mortal", max_spout_pending=PENDING)
    leases = {"lease": float(lease)} if place.has_leases else {}
    orders = topology.spout("orders", place.source(as_=str, **leases))
    noted = topology.bolt("note", note, orders.shuffle(), concurrency=4)
    if sink:
        topology.bolt("write", place.sink(), noted.shuffle())
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with topology.run():
        await asked.wait()


if __name__ == "__main__":
    kind, url, name, *rest = sys.argv[1:]
    asyncio.run(main(resolve_name(kind)(url, name), *rest))
