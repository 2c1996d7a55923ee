"""Write to Postgres exactly once.

A committer gets the rows of an epoch when they are durable in the file of the state, and again until ``commit`` has
returned: the same rows under the same number. One transaction here inserts them and notes the number, so that an epoch
which comes again is recognised by ``epoch.follows`` and passed over. The rows need no key of their own.

Guaranteed: each entry is in the table once, and its balance is that of all entries before it, also after ``kill -9``,
a connection that is cut while it commits, or a server that is away. While the server cannot be reached, ``write`` is
restarted, at most 50 times in ten minutes, and the sources wait. Once more, and the run crashes, with its rows in the
state; the next run begins with them.

Two runs may meet in Postgres: one that was killed, whose last transaction still goes on, and the next one. The row with
the note is locked until the transaction ends, so that the second one reads what the first one has noted.

``dsn`` is a URL; without it the environment says where Postgres is (``PGHOST``, ``PGUSER``, ``PGPASSWORD``, …). This
needs asyncpg, ``pip install 'stormlet[cli,postgres]'``, and a database, such as ``createdb shop`` makes.

::

    python -m stormlet run examples/recipes/postgres.py --arg dsn=postgresql://localhost/shop
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import asyncpg
import msgspec

from stormlet import Collector, Committer, Epoch, KeyedBolt, TaskContext, Topology, Tuple, Value

TABLES = """
CREATE TABLE IF NOT EXISTS entries (number bigint, account text, cents bigint, balance bigint);
CREATE TABLE IF NOT EXISTS stormlet_epochs (sink text PRIMARY KEY, line text NOT NULL, epoch bigint NOT NULL)
"""
BEGIN = "INSERT INTO stormlet_epochs VALUES ($1, '', 0) ON CONFLICT DO NOTHING"
LAST = "SELECT epoch, line FROM stormlet_epochs WHERE sink = $1 FOR UPDATE"
NOTE = "UPDATE stormlet_epochs SET line = $2, epoch = $3 WHERE sink = $1"
INSERT = "INSERT INTO entries VALUES ($1, $2, $3, $4)"


class Transfer(msgspec.Struct, frozen=True):
    """Money that an account gets or gives."""

    number: int
    account: str
    cents: int


class Entry(msgspec.Struct, frozen=True):
    """A row of the ledger."""

    number: int
    account: str
    cents: int
    balance: int


def transfers(count: int) -> Iterator[Transfer]:
    """The spout: transfers of fifty accounts."""
    for number in range(count):
        yield Transfer(number, f"account {number * 7919 % 50}", number % 1000 - 300)


class Balance(KeyedBolt[str, Transfer, Entry]):
    """Keeps the balance of each account."""

    cents = Value(int, 0)

    def execute(self, tup: Tuple[Transfer], out: Collector[Entry]) -> None:
        """Add, and emit the entry."""
        transfer = tup.value
        self.cents += transfer.cents
        out.emit(Entry(transfer.number, transfer.account, transfer.cents, self.cents))


class Ledger(Committer[Entry]):
    """Writes entries."""

    pool: asyncpg.Pool
    sink: str

    def __init__(self, dsn: str = "") -> None:
        self.dsn = dsn

    async def prepare(self, context: TaskContext) -> None:
        """Connect. The pool connects again where a connection was cut between two epochs."""
        self.sink = f"{context.topology}/{context.component}"
        self.pool = await asyncpg.create_pool(
            self.dsn or None,
            min_size=1,
            max_size=1,
            init=self.make_tables,
            command_timeout=60,
            # Else Postgres may say that it has an epoch, and lose it when its machine fails.
            server_settings={"synchronous_commit": "on"},
        )

    async def make_tables(self, db: asyncpg.Connection) -> None:
        """Make what is missing. The first note is of no epoch: there must be a row that can be locked."""
        await db.execute(TABLES)
        await db.execute(BEGIN, self.sink)

    async def commit(self, epoch: Epoch, rows: Sequence[Entry]) -> None:
        """Insert the entries of an epoch, unless they are there."""
        async with self.pool.acquire() as db, db.transaction():
            last = await db.fetchrow(LAST, self.sink)
            if epoch.follows(Epoch(last["epoch"], last["line"])):
                await db.executemany(INSERT, [msgspec.structs.astuple(row) for row in rows])
                await db.execute(NOTE, self.sink, epoch.line, epoch.number)

    async def cleanup(self) -> None:
        """Disconnect."""
        await self.pool.close()


def ledger(dsn: str = "", count: int = 10_000) -> Topology:
    """Write transfers and balances to the Postgres server at ``dsn``."""
    topology = Topology("ledger", state="ledger.state")
    given = topology.spout("transfers", partial(transfers, count))
    entries = topology.bolt("balance", Balance, given.fields("account"), parallelism=2)
    topology.bolt("write", partial(Ledger, dsn), entries.global_(), max_restarts=50, restart_window=600)
    return topology
