"""The reader of a source task: it asks a session for messages while there is room, and takes in what comes.

*A read is never cancelled* while its connection stands: a message that was on its way then is delivered to nobody. So
the reader is a task of its own beside the spout, and fills a buffer that an ``ack`` or a ``fail`` does not wait for.

It holds nobody up: it takes messages in for a slice's time at most, and then others have their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from stormlet.connect.driver import answers
from stormlet.connect.driver.arrivals import Arrivals
from stormlet.connect.driver.burying import Burying
from stormlet.connect.driver.ending import end
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.partitions import Partitions
from stormlet.connect.driver.status import Status
from stormlet.connect.session import Delivery, Session
from stormlet.core.settlement.credit import Credit
from stormlet.errors import EndOfStream
from stormlet.model.components import SpoutCollector, TaskContext
from stormlet.report.connections import ConnectionState

RECEIVE = 5.0
"""Seconds for which a session is asked to wait for messages."""
ROOM = 0.5
"""Seconds after which a reader without room looks again: a withdrawn message makes room without a word."""
AT_ONCE = 100
"""Deliveries that are decoded before others have their turn, where that is not a slice's time before."""


class Reading:
    """The reader of one source task."""

    def __init__(
        self,
        context: TaskContext,
        out: SpoutCollector[Any],
        *,
        credit: Credit,
        holding: Holding,
        burying: Burying,
        partitions: Partitions,
        status: Status,
        arrivals: Arrivals,
    ) -> None:
        self.is_out = asyncio.Event()
        """Set while no session is read."""
        self.is_out.set()
        self._out = out
        self._credit = credit
        self._holding = holding
        self._burying = burying
        self._partitions = partitions
        self._status = status
        self._arrivals = arrivals
        self._slice = context.config.slice
        self._clock = asyncio.get_running_loop().time
        self._active = False
        self._draining = False

    # As the spout has it.

    def go_on(self) -> None:
        """Read on."""
        self._active = True
        self._partitions.go_on()
        self._holding.may_have_room()

    def pause(self) -> None:
        """Ask for nothing more until :meth:`go_on`."""
        self._active = False
        self._partitions.rest()

    def drain(self) -> None:
        """Ask for nothing more, ever, and give back what comes of the last read."""
        self._draining = True
        self._holding.may_have_room()

    # Asking.

    async def read(self, session: Session) -> None:
        """Read while there is room, until the source or the run comes to its end. Raises what says that the connection
        is lost. Nobody cancels that while the connection stands."""
        self.is_out.clear()
        try:
            await self._read_on(session)
        finally:
            self.is_out.set()

    async def _read_on(self, session: Session) -> None:
        """Read on, and ask for more while what has come is taken in."""
        asked: asyncio.Task[Sequence[Delivery]] | None = None
        try:
            while asked is not None or not self._draining:
                asked = asked or self._ask(session, ())
                if asked is None:
                    await self._holding.wait_for_room(ROOM)
                    continue
                deliveries = answers.deliveries(session, await asked)
                asked = self._ask(session, deliveries)
                await self._take_in(deliveries)
                deliveries = ()  # or these would stay in memory until others come
                await self._partitions.balance(session)
        except EndOfStream:
            self._holding.all_are_read = True
            self._out.wake()
        finally:
            if asked is not None:  # the connection is lost, or the end has come
                await end([asked])

    def _ask(self, session: Session, come: Sequence[Delivery]) -> asyncio.Task[Sequence[Delivery]] | None:
        """Ask for messages if there is room for some beside those that have come and are not taken in yet."""
        if self._draining:
            return None
        if not self._active:
            self._status.become(ConnectionState.PAUSED)
            return None
        buffer = self._holding.buffer
        size = buffer.bytes + sum([len(delivery.body) for delivery in come])
        waiting = len(buffer) + len(come) + len(self._burying)
        most = self._credit.left(self._out.pending, waiting, size)
        if not most:
            return None
        self._status.become(ConnectionState.READY)
        return asyncio.get_running_loop().create_task(session.receive(most, RECEIVE))

    # Taking in.

    async def _take_in(self, deliveries: Sequence[Delivery]) -> None:
        first = 0
        while first < len(deliveries):
            now = self._clock()
            some = deliveries[first : first + AT_ONCE]
            looked_at = self._arrivals.take(some, now, now + self._slice)
            if self._draining:
                self._holding.give_back_unbegun()
            self._status.received += looked_at
            first += looked_at
            self._out.wake()
            if first < len(deliveries):
                await asyncio.sleep(0)
        self._holding.receipts.taken_in()
