"""A process that notes the id of each row that was inserted, in order, until it is killed.

``python mortal_changes.py URL NOTES``; a line ``-`` is the beginning of a process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from stormlet import Topology
from stormlet.connect import postgres
from tests.connect.postgres.kit import PUBLICATION, SLOT

PENDING = 50
SETTLE_EVERY = 0.1


async def main(url: str, notes: str) -> None:
    file = os.open(notes, os.O_WRONLY | os.O_APPEND)
    os.write(file, b"-\n")

    async def note(change: postgres.Change) -> None:
        await asyncio.sleep(0.001)
        os.write(file, b"%d\n" % change.row["id"])

    topology = Topology("mortal", max_spout_pending=PENDING)
    source = postgres.Changes(
        url, slot=SLOT, publication=PUBLICATION, create=True, settle_every=SETTLE_EVERY, poll=0.05
    )
    topology.bolt("note", note, topology.spout("changes", source).shuffle())
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with topology.run():
        await asked.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
