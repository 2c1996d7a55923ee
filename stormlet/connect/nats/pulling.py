"""Messages of a pull consumer: those that were asked for, and those that have come.

A pull asks for a number of messages until a time. It ends with the last of them, or with a status that says how many
did not come. Nothing answers a pull that got lost, so one whose time is over without a status is a lost connection.

A pull cannot be taken back. Who listens no more may still be given messages, which then come to nobody until their
lease is over. So pulls are short, and the end waits for them.

What is asked for and what has come is never more than there is credit for. Nobody renews the lease of a message that
waits here: it is let go when half of its time is over, and the server gives it again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from stormlet.connect.nats.connection import Connection, status_of
from stormlet.connect.nats.jetstream import NANO
from stormlet.errors import ConnectionLost

if TYPE_CHECKING:
    from nats.aio.msg import Msg

AT_ONCE: Final = 2000
"""Messages that are asked for at a time."""
PULL_BYTES: Final = 8 * 2**20
"""Bytes of the messages of one pull; a single one may be larger."""
LATE: Final = 5.0
"""Seconds after the end of a pull within which the server says that it has ended."""
LASTS: Final = 0.5
"""Seconds of a pull, and thus of the end of a source at which nothing comes."""


class Pulls:
    """The pulls of one consumer on one connection."""

    def __init__(self, connection: Connection, subject: str, lease: float) -> None:
        """``subject`` is the one that takes requests for messages."""
        self._connection = connection
        self._subject = subject
        self._patience = lease / 2
        self._inbox = connection.inbox()
        self._arrived: deque[tuple[float, Msg]] = deque()
        self._open = 0
        self._overdue_at = 0.0
        self._refused: ConnectionLost | None = None
        self._news = asyncio.Event()
        self._clock = asyncio.get_running_loop().time
        self._has_ended = False
        connection.when_lost(self._news.set)
        self._max_bytes = max(PULL_BYTES, 2 * connection.max_payload)

    async def begin(self) -> None:
        """Listen for what comes."""
        await self._connection.subscribe(self._inbox, self._came)

    async def end(self) -> None:
        """Ask for nothing more, and return when nothing can come any more."""
        self._has_ended = True
        self._news.set()
        with suppress(ConnectionLost):
            while self._open:
                self._news.clear()
                await self.wait(self._overdue_at)

    def take(self, most: int) -> list[Msg]:
        """Return what has come. A :meth:`wait` that follows is for what comes from now on."""
        self._news.clear()
        oldest = self._clock() - self._patience
        while self._arrived and self._arrived[0][0] < oldest:
            self._arrived.popleft()
        return [self._arrived.popleft()[1] for _ in range(min(most, len(self._arrived)))]

    def rest(self) -> list[Msg]:
        """Return all that has come, however old."""
        rest = [message for _, message in self._arrived]
        self._arrived.clear()
        return rest

    async def ask(self, most: int) -> None:
        """Have so many messages on their way or here: the credit, of which nothing more is held."""
        most = min(most, AT_ONCE)
        room = most - self._open - len(self._arrived)
        if room <= 0 or 2 * room < most or self._has_ended:
            return
        self._open += room
        self._overdue_at = max(self._overdue_at, self._clock() + LASTS + LATE)
        request = {"batch": room, "expires": int(LASTS * NANO), "max_bytes": self._max_bytes}
        await self._connection.tell(self._subject, msgspec.json.encode(request), self._inbox)

    async def wait(self, until: float) -> None:
        """Wait for anything new, no longer than until then. Raises :class:`~stormlet.errors.ConnectionLost`."""
        self._connection.check()
        if self._refused is not None:
            raise self._refused
        if self._open and self._clock() >= self._overdue_at:
            raise ConnectionLost(f"{self._connection.address}: the server does not answer a pull")
        with suppress(TimeoutError):
            async with asyncio.timeout_at(min(until, self._overdue_at) if self._open else until):
                await self._news.wait()

    async def _came(self, message: Msg) -> None:
        if message.reply:
            self._arrived.append((self._clock(), message))
            self._open = max(0, self._open - 1)
        else:
            self._over(message)
        self._news.set()

    def _over(self, message: Msg) -> None:
        """A pull has ended."""
        headers = message.headers or {}
        status, left = status_of(message), headers.get("Nats-Pending-Messages")
        self._open = 0 if left is None else max(0, self._open - int(left))
        if left is None and status not in ("404", "408"):
            # In an answer 503, newer servers have their subject in the place of a description.
            description = None if status == "503" else headers.get("Description")
            said = description or "no such consumer"
            self._refused = ConnectionLost(f"{self._connection.address}: {status} {said}")
