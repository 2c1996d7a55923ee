"""All that the broker is to be told, and the task that tells it, away from the way of the tuples (law R3, R6).

``ack`` and ``fail`` only note. What was noted while a settlement was under way is the next one, so that under load it
has hundreds of messages, and none waits when there is little to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from stormlet.connect.driver import answers
from stormlet.connect.driver.status import Status
from stormlet.connect.session import Rejection, Session, Settlement
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import NotSettled

RETRY = 0.1
"""Seconds before the broker is told again what it did not take."""


class Settling:
    """The settlements of one source task."""

    def __init__(self, status: Status, gather: float, *, survive: bool) -> None:
        self.places: dict[Prefix, None] = {}
        """The partitions that belong to this task."""
        self.told = asyncio.Event()
        """Set when the broker knows everything, or the connection is lost."""
        self.told.set()
        self._status = status
        self._gather = gather
        self.survive = survive
        """True if a receipt is good at the next connection, too."""
        self.caught_up = asyncio.Event()
        """Set when this connection's broker knows what was settled before it was made."""
        self.caught_up.set()
        self._is_noted = False
        """True while ``_noted`` is set. Asking the event would cost a call of Python for each message."""
        self._noted = asyncio.Event()
        self._next = Settlement()
        self._under_way: Settlement | None = None
        self._hurry = asyncio.Event()

    # Noting.

    def done(self, receipt: Any) -> None:
        """A message is done."""
        self._next.done.append(receipt)
        self.note()

    def give_back(self, receipt: Any) -> None:
        """A message is to be delivered again, to anybody."""
        self._next.returned.append(receipt)
        self.note()

    def reject(self, receipt: Any, reason: str) -> None:
        """A message is for the broker's own dead letters."""
        self._next.rejected.append(Rejection(receipt, reason))
        self.note()

    def note(self) -> None:
        """Something is to be told, such as a front that has moved."""
        if not self._is_noted:
            self._is_noted = True
            self._noted.set()
            self.told.clear()

    def catch_up(self) -> None:
        """A connection was made anew: it is told at once what is noted."""
        self.caught_up.clear()
        self.note()

    def forget(self) -> int:
        """The connection is lost: unless its receipts survive, what was noted means nothing. Returns how many."""
        if self._under_way is not None:
            self._take_back(self._under_way)
        if self.survive:
            return 0
        forgotten, self._next = len(self._next), Settlement()
        self._note_no_more()
        self.told.set()
        return forgotten

    def _note_no_more(self) -> None:
        self._is_noted = False
        self._noted.clear()

    def _take_back(self, settlement: Settlement) -> None:
        """Nothing is known of it: it is to be told again. Fronts are asked for anew."""
        self._under_way = None
        self._next.done[:0] = settlement.done
        self._next.returned[:0] = settlement.returned
        self._next.rejected[:0] = settlement.rejected

    # Telling.

    def hurry(self) -> None:
        """Gather no more: the end has come."""
        self._hurry.set()

    @property
    def untold(self) -> int:
        """Receipts and fronts that the broker does not know of."""
        under_way = 0 if self._under_way is None else len(self._under_way)
        return under_way + len(self._next) + len(self._fronts())

    async def tell(self, session: Session, balance: Callable[[Session], Awaitable[None]]) -> None:
        """Tell the broker whatever is noted, until the connection is lost, which raises; ``balance`` pauses and resumes
        partitions meanwhile."""
        was_refused = False
        while True:
            await self._noted.wait()
            if self._gather and self.caught_up.is_set() and not (was_refused or self._hurry.is_set()):
                await self._pause(self._gather)
            self._note_no_more()
            try:
                await self._tell(session)
                was_refused = False
            except NotSettled:
                was_refused = True
                self.note()
                self.caught_up.set()  # or nothing would be read for as long as the broker does not take it
                await asyncio.sleep(RETRY)
            self.caught_up.set()
            await balance(session)
            if not self._is_noted:
                self.told.set()

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return

    async def _tell(self, session: Session) -> None:
        settlement, self._next = self._next, Settlement()
        settlement.fronts = self._fronts()
        if not settlement:
            return
        self._under_way = settlement
        try:
            answer = await session.settle(settlement)
        except BaseException:
            if self._under_way is settlement:
                self._take_back(settlement)
            raise
        if self._under_way is settlement:  # else the connection was lost meanwhile
            self._under_way = None
            self._count(settlement, answers.not_taken(session, answer))

    def _count(self, settlement: Settlement, refused: int) -> None:
        status = self._status
        status.stale += refused
        status.settled += len(settlement.done) - refused
        status.returned += len(settlement.returned)
        status.rejected += len(settlement.rejected)
        for place, front in settlement.fronts:
            status.settled += place.committed(front)

    def _fronts(self) -> list[tuple[Prefix, Any]]:
        fronts = ((place, place.to_commit()) for place in self.places)
        return [(place, front) for place, front in fronts if front is not None]
