"""The session of a source with a table that is a queue.

One connection claims rows and hears of new ones; another settles them meanwhile. A notification only wakes: rows that
come without one are found by the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from secrets import randbits
from typing import Any, Final, NamedTuple

from stormlet.connect.postgres.connection import Connection
from stormlet.connect.postgres.table import Statements
from stormlet.connect.session import Delivery, Settlement
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import ConnectionLost

AT_ONCE: Final = 1000
"""Rows that are claimed by one statement."""
SHORTEST: Final = 0.01


class Receipt(NamedTuple):
    """A row, and the number of the claim that has it."""

    id: int
    lease: int


class WithoutBody(Delivery):
    """A row whose body is NULL, of which nothing can be made."""


class QueueSession:
    """See :class:`~stormlet.connect.session.Session`."""

    def __init__(
        self, reader: Connection, control: Connection, table: str, *, lease: float, poll: float
    ) -> None:
        self._reader = reader
        self._control = control
        self._table = table
        self._statements = Statements(table)
        self._lease = timedelta(seconds=lease)
        self._poll = poll
        self._news = asyncio.Event()
        self._interrupted = False
        self._clock = asyncio.get_running_loop().time

    async def begin(self) -> None:
        """Hear of new rows."""
        await self._reader.listen(self._table, self._news.set)

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - see Session
        """Claim rows; wait for some if there are none."""
        until = self._clock() + timeout
        while not self._interrupted:
            self._news.clear()
            if found := await self._claim(min(most, AT_ONCE)):
                return found
            left = until - self._clock()
            if left <= 0 or self._interrupted:
                break
            await self._wait(min(left, self._poll))
        return []

    async def _wait(self, seconds: float) -> None:
        if self._reader.is_lost:
            raise ConnectionLost(f"{self._reader.address}: the connection was closed")
        (row,) = await self._reader.rows(self._statements.next)
        if row["seconds"] is not None:  # a lease runs out then
            seconds = max(min(seconds, row["seconds"]), SHORTEST)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def _claim(self, most: int) -> list[Delivery]:
        claim = randbits(62)
        rows = await self._reader.rows(self._statements.claim, most, self._lease, claim)
        return [self._delivery(row, claim) for row in sorted(rows, key=lambda row: int(row["id"]))]

    def _delivery(self, row: Mapping[str, Any], claim: int) -> Delivery:
        body = row["body"]
        made = Delivery
        if body is None:
            made, body = WithoutBody, b""
        return made(
            body=body if isinstance(body, bytes) else str(body).encode(),
            receipt=Receipt(row["id"], claim),
            name=f"{self._table}@{row['id']}",
            key=row["key"],
            deliveries=row["deliveries"],
            published=row["created"],
        )

    def interrupt(self) -> None:
        """Claim no more."""
        self._interrupted = True
        self._news.set()

    async def settle(self, settlement: Settlement) -> int:
        """Delete, give back, and give up; what another claim has meanwhile is left as it is."""
        reasons = [each.reason.replace("\0", "") for each in settlement.rejected]
        told = len(settlement.done) + len(settlement.returned) + len(reasons)
        taken = await self._tell(self._statements.done, settlement.done)
        taken += await self._tell(self._statements.give_back, settlement.returned)
        taken += await self._tell(
            self._statements.give_up, [each.receipt for each in settlement.rejected], reasons
        )
        return told - taken

    async def _tell(self, statement: str, receipts: Sequence[Receipt], *more: object) -> int:
        if not receipts:
            return 0
        return await self._control.count(statement, *_columns(receipts), *more)

    async def renew(self, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Begin the leases of these anew, except for those that another claim has."""
        rows = await self._control.rows(self._statements.renew, *_columns(receipts), self._lease)
        ours = {Receipt(row["id"], row["lease"]) for row in rows}
        return [each for each in receipts if each not in ours]

    async def pause(self, places: Collection[Prefix]) -> None:
        """Not called: each row is settled by itself."""

    async def resume(self, places: Collection[Prefix]) -> None:
        """Not called, as :meth:`pause`."""

    async def lag(self) -> Mapping[str, int]:
        """Return the number of rows that are neither done nor given up."""
        (row,) = await self._control.rows(self._statements.lag)
        return {self._table: row["lag"]}

    async def close(self) -> None:
        """Disconnect."""
        await self._reader.close()
        await self._control.close()


def _columns(receipts: Sequence[Receipt]) -> tuple[list[int], list[int]]:
    return [each.id for each in receipts], [each.lease for each in receipts]
