"""Write to a database in batches, one transaction each.

``BatchBolt`` collects up to ``size`` inputs, or what has come ``within`` seconds, and acks them together when the
transaction is committed. ``executor="thread"`` keeps the blocking driver off the event loop: connection, statements and
closing run in one thread of the task.

Guaranteed: what is acked is committed, and a batch that fails is rolled back and replayed whole. A batch whose commit
succeeded may be replayed too, if something else of its trees fails; so the write is an upsert by primary key, and
writing a reading twice changes nothing.

::

    python -m stormlet run examples/recipes/database.py
    python -m stormlet run examples/recipes/database.py --arg path=readings.db
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from stormlet import BatchBolt, Collector, TaskContext, Topology, Tuple

CREATE = """
CREATE TABLE IF NOT EXISTS readings (station INTEGER, hour INTEGER, celsius REAL, PRIMARY KEY (station, hour))
"""
UPSERT = """
INSERT INTO readings VALUES (?, ?, ?) ON CONFLICT (station, hour) DO UPDATE SET celsius = excluded.celsius
"""


class Reading(msgspec.Struct, frozen=True):
    """A temperature; station and hour identify it."""

    station: int
    hour: int
    celsius: float


def measure(stations: int, hours: int) -> Iterator[Reading]:
    """The spout: readings of every station for every hour."""
    for hour in range(hours):
        for station in range(stations):
            yield Reading(station, hour, 20.0 + station % 7 - hour % 5)


class Write(BatchBolt[Reading, None]):
    """Writes readings. One task: SQLite takes one writer at a time."""

    size = 500
    within = 0.5
    db: sqlite3.Connection

    def __init__(self, path: str) -> None:
        self.path = path
        self.transactions = 0

    def prepare(self, context: TaskContext) -> None:
        """Connect."""
        self.db = sqlite3.connect(self.path)
        self.db.execute(CREATE)

    def execute_batch(self, tups: Sequence[Tuple[Reading]], out: Collector[None]) -> None:
        """Write all of the batch or, after an exception, nothing of it."""
        rows = [(tup.value.station, tup.value.hour, tup.value.celsius) for tup in tups]
        with self.db:
            self.db.executemany(UPSERT, rows)
        self.transactions += 1

    def finish(self, out: Collector[None]) -> None:
        """All is written: report."""
        (count,) = self.db.execute("SELECT count(*) FROM readings").fetchone()
        print(f"{count:,} readings after {self.transactions} transactions")

    def cleanup(self) -> None:
        """Disconnect."""
        self.db.close()


def stored(path: str = "", stations: int = 100, hours: int = 100) -> Topology:
    """Write readings to the SQLite file at ``path``; by default a temporary one, gone when it is closed."""
    topology = Topology("database", message_timeout=10.0)
    readings = topology.spout("measure", partial(measure, stations, hours))
    topology.bolt("write", partial(Write, path), readings.global_(), executor="thread")
    return topology
