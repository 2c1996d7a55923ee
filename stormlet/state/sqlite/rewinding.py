"""The way back to an epoch before the last one."""

from __future__ import annotations

from stormlet.errors import StateUnusable
from stormlet.state.interfaces import Rewound
from stormlet.state.refusals import refuse_unkept
from stormlet.state.sqlite.database import Database
from stormlet.state.sqlite.layout import EpochRow, begin_line
from stormlet.state.sqlite.reading import first_epoch, last_epoch
from stormlet.state.sqlite.user_tables import user_tables


def rewind(database: Database, epoch: int) -> Rewound:
    """Forget all epochs after this one, and begin another line (law X10). Raises
    :class:`~stormlet.errors.StateUnusable` for an epoch that is not kept."""
    with database.transaction():
        last = last_epoch(database)
        refuse_unkept(database.path, epoch, first_epoch(database), last)
        dropped = {
            table: _drop(database, table, epoch) for table in ("log", "positions", "outbox", "letters")
        }
        database.run("DELETE FROM epochs WHERE number > ?", epoch)
        begin_line(database, epoch)
    return Rewound(epoch, last - epoch, dropped["outbox"], dropped["letters"], user_tables(database))


def _drop(database: Database, table: str, epoch: int) -> int:
    return database.run(f"DELETE FROM {table} WHERE epoch > ?", epoch)


def epoch_at(database: Database, moment: float) -> int:
    """The last epoch that was durable at a moment, in seconds since 1970. Raises
    :class:`~stormlet.errors.StateUnusable` if it is not kept."""
    rows = database.rows(EpochRow, "epochs", "ORDER BY number")
    # Not the one that a file begins with: a slip in a year would take everything away.
    before = [row.number for row in rows if row.closed_at is not None and row.closed_at <= moment]
    if not before:
        raise StateUnusable(
            f"{database.path} has no epoch of that time; its first is epoch {first_epoch(database)}: name one by its "
            f"number"
        )
    return before[-1]
