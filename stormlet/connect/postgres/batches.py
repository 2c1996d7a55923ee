"""Rows of a batch: those that are taken, and those that never will be.

One statement writes a batch, all of it or nothing. If its data are at fault, nobody says which row that was: so each
half is written by itself, until a row is alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from stormlet.connect.postgres.connection import Connection, translated
from stormlet.connect.session import DONE, Item, Written

R = TypeVar("R")

AT_FAULT: Final = ("21", "22", "23", "44")
"""Classes of errors that are of the data: cardinality, data, integrity, and the check of a view."""


class BatchSession:
    """See :class:`~stormlet.connect.session.SinkSession`."""

    def __init__(
        self,
        connection: Connection,
        row: Callable[[Item], Sequence[Any]],
        insert: Callable[[Sequence[Sequence[Any]]], Awaitable[None]],
    ) -> None:
        """``row`` makes the row of an item; ``insert`` writes rows, and raises asyncpg's errors."""
        self._connection = connection
        self._row = row
        self._insert = insert

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        """Write these by as few statements as their data allow."""
        rows = [self._try(item) for item in items]
        written = [each if isinstance(each, Written) else DONE for each in rows]
        good = [number for number, each in enumerate(rows) if not isinstance(each, Written)]
        with translated(self._connection.address):
            await self._halves([(number, rows[number]) for number in good], written)
        return written

    def _try(self, item: Item) -> Any:
        try:
            return self._row(item)
        except Exception as error:  # of the user's function, or a value without JSON
            return _never(error)

    async def _halves(self, rows: Sequence[tuple[int, Any]], written: list[Written]) -> None:
        if not rows:
            return
        try:
            await self._insert([row for _, row in rows])
        except Exception as error:
            if not _is_at_fault(error):
                raise
            if len(rows) == 1:
                written[rows[0][0]] = _never(error)
                return
            half = len(rows) // 2
            await self._halves(rows[:half], written)
            await self._halves(rows[half:], written)

    async def close(self) -> None:
        """Disconnect."""
        await self._connection.close()


def _is_at_fault(error: Exception) -> bool:
    from asyncpg import DataError, InterfaceError

    state = str(getattr(error, "sqlstate", None) or "")
    client = isinstance(error, InterfaceError) and isinstance(
        error, ValueError
    )  # a value does not fit its column
    return client or isinstance(error, DataError) or state.startswith(AT_FAULT)


def _never(error: Exception) -> Written:
    return Written(f"it cannot be written: {type(error).__name__}: {error}", permanent=True)


def columns_of(rows: Sequence[Sequence[R]]) -> list[list[R]]:
    """Return the columns of rows."""
    return [list(column) for column in zip(*rows, strict=True)]
