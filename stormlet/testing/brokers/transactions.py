"""Writers of transactions at a twin: the last one under a name has fenced those before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from stormlet.connect.twins import Row
from stormlet.core.state.outgoing import Epoch
from stormlet.errors import BrokerGivenUp, ConnectionLost


class Transactions:
    """Transactions that a broker knows, by their name."""

    def __init__(self) -> None:
        self.writers: dict[str, TwinTransactions] = {}
        """The one that may write."""
        self.notes: dict[str, Epoch] = {}
        """The last epoch whose rows are there."""


class TwinTransactions:
    """One writer, from its beginning on the only one of its name."""

    def __init__(
        self,
        name: str,
        known: Transactions,
        publish: Callable[[Row], None],
        answer_time: Callable[[], float],
    ) -> None:
        """``publish`` puts a row in its topic, ``answer_time`` is the seconds that an answer takes."""
        self._name = name
        self._known = known
        self._publish = publish
        self._answer_time = answer_time
        self._lost = False
        known.writers[name] = self

    def lose(self) -> None:
        """The connection is lost."""
        self._lost = True

    async def write(self, epoch: Epoch, rows: Sequence[Row]) -> None:
        """Write the rows of an epoch, unless they are there; the answer may be lost with the connection when it was
        done."""
        await self._answer()
        known = self._known
        if known.writers.get(self._name) is not self:
            raise BrokerGivenUp(f"the writer {self._name!r} has been fenced by a newer instance")
        if epoch.follows(known.notes.get(self._name)):
            for row in rows:
                self._publish(row)
            known.notes[self._name] = epoch
        await self._answer()

    async def _answer(self) -> None:
        await asyncio.sleep(self._answer_time() / 2)
        if self._lost:
            raise ConnectionLost("the connection was reset")

    async def close(self) -> None:
        """Leave."""
        self._lost = True
