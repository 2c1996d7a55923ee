"""Tables of Postgres as queues, as sinks, and the changes of others, by asyncpg: ``pip install 'stormlet[postgres]'``.

:class:`Queue` is the source, :class:`Put` its counterpart, and :class:`Upsert` writes the rows of any table.
:class:`Changes` is a source of what anybody does to tables::

    orders = topology.spout("orders", postgres.Queue("postgresql://app@db/shop", "orders", as_=Order))
    store = postgres.Upsert[Charge]("postgresql://app@db/shop", "charges", key=["id"])
    topology.bolt("store", store, charges.shuffle())

From the ground up::

    connection  one connection to a server, and what its errors mean
    table       the table of a queue: its columns, and the statements that settle a row once
    session     the session of a source
    queue       the source
    batches     rows of a batch: those that are taken, and those that never will be
    put         the sink that adds to a queue
    upsert      the sink that writes rows
    pgoutput    what a transaction has changed
    slot        a replication slot: found or made, read, and advanced
    capture     the session of a source of changes
    changes     the source of changes

Rows that must be there exactly once come by a committer: ``examples/recipes/postgres.py``.
"""

from __future__ import annotations

from stormlet.connect.postgres.changes import Changes, ChangesSettings
from stormlet.connect.postgres.pgoutput import Change
from stormlet.connect.postgres.put import Put
from stormlet.connect.postgres.queue import Queue, QueueSettings
from stormlet.connect.postgres.table import queue_table
from stormlet.connect.postgres.upsert import Upsert

__all__ = [
    "Change",
    "Changes",
    "ChangesSettings",
    "Put",
    "Queue",
    "QueueSettings",
    "Upsert",
    "queue_table",
]
