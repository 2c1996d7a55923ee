"""The task that keeps the leases of a source: it renews them after each third of their time (law R4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from stormlet.connect.driver import answers
from stormlet.connect.driver.connecting import LOSSES
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.status import Status
from stormlet.connect.session import Session
from stormlet.core.settlement.leases import Leases
from stormlet.core.shortened import counted


class Renewing:
    """Keeps the leases of one source task."""

    def __init__(
        self, leases: Leases, holding: Holding, status: Status, session: Callable[[], Session | None]
    ) -> None:
        """``session`` returns the one that stands, if one does."""
        self._leases = leases
        self._holding = holding
        self._status = status
        self._session = session
        self._clock = asyncio.get_running_loop().time

    async def keep(self) -> None:
        """Renew what is held, and withdraw what is lost, for ever."""
        leases = self._leases
        while True:
            at = leases.next_due()
            await asyncio.sleep(leases.seconds / 3 if at is None else max(0.0, at - self._clock()))
            asked = self._clock()
            due = leases.due(asked)
            if due.held_too_long:
                self._status.warn(
                    "%s held for max_hold=%g s, and given up to the broker",
                    counted(len(due.held_too_long), "message was", "messages were"),
                    leases.max_hold,
                )
            self._holding.withdraw([*due.lost, *due.held_too_long])  # at once: the broker may take its time
            if due.renew:
                self._holding.withdraw(await self._renew(due.renew, asked))

    async def _renew(self, ids: Sequence[str], asked: float) -> Sequence[str]:
        """Renew these; return those that are lost."""
        held = {id: each.receipt for id in ids if (each := self._holding.receipts.get(id)) is not None}
        session = self._session()
        answer: Sequence[Any] | None = None
        try:
            if session is not None:
                answer = await session.renew(list(held.values()))
        except LOSSES:
            session = None  # the reader learns of a loss, too
        if session is None:
            self._leases.not_renewed(held, self._clock())
            return []
        lost = answers.lost(session, answer)
        gone = dict.fromkeys(id for id, receipt in held.items() if receipt in lost)
        renewed = [id for id in held if id not in gone]
        self._leases.renewed(renewed, asked)
        self._status.renewals += len(renewed)
        return list(gone)
