"""A process that counts the changes of each row, until it is killed: ``python counted_changes.py URL STATE``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Hashable
from typing import Any

from stormlet import Collector, KeyedBolt, Topology, Tuple, Value
from stormlet.connect import postgres
from tests.connect.postgres.kit import PUBLICATION, SLOT


class Count(KeyedBolt[int, postgres.Change, None]):
    """Counts by the id of the row."""

    count = Value(int, 0)

    def execute(self, tup: Tuple[postgres.Change], out: Collector[None]) -> None:
        self.count += 1


def row_of(change: postgres.Change) -> Hashable:
    """The id."""
    return change.row["id"]


def counting(url: str, state: str, **options: Any) -> Topology:
    """From Postgres into a state."""
    topology = Topology("counting", state=state, epoch_seconds=0.1, max_spout_pending=50)
    given = {"create": True, "settle_every": 0.1, "poll": 0.05, **options}
    source = postgres.Changes(url, slot=SLOT, publication=PUBLICATION, **given)
    topology.bolt("count", Count, topology.spout("changes", source).fields(row_of))
    return topology


async def main(url: str, state: str) -> None:
    async with counting(url, state).run():
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
