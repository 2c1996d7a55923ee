"""The session of a source of changes.

Theory of operation
-------------------
A peek gives whole transactions, in the order of their commits, from the first one that is not done, and changes
nothing: the same ones come again until the slot is advanced. So what lies between there and the last one that was given
is passed over, and a peek asks for at least twice as many messages as that has: what is read in vain is never more than
what is read, however long one message is open. No peek is made before all of the last one is given.

The slot can only be advanced to the end of a transaction. So the position of each message but the last of its
transaction is the end of the transaction before.

Nothing is given while the slot is advanced, or all that was read would go out while nobody answers, and then again.

WAL that has nothing for the publication must be let go, too, or the server keeps it for ever. When all that was given
is done, and a peek has found nothing more in all that was there before it, the slot is advanced to there.

With ``state=`` it begins behind the last change that was emitted, and the slot says only what the server may let go:
what is durable in the state. The transactions up to there are passed over. Those that are durable, as all are that a
process finds when it begins, are done at once. Those that another session of this process has emitted wait for the
first change behind them: when that is durable, they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Any, Final, NamedTuple

from stormlet.connect.driver.ending import end
from stormlet.connect.postgres.pgoutput import Begin, Commit, Decoder
from stormlet.connect.postgres.slot import Slot, lsn_text
from stormlet.connect.session import Delivery, Settlement, SourceContext
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import NotSettled

logger = logging.getLogger("stormlet.connect")

AT_ONCE: Final = 10_000
"""Messages for which a peek asks at least, as each one reads the WAL since the restart of the slot."""
MOST_AGAIN: Final = 50_000
"""Messages that are read again at most; behind a transaction with more, nothing is read until it is done."""
CHANGES: Final = (b"I", b"U", b"D", b"T")
LET_GO: Final = 5.0
"""Seconds between two times that WAL without changes is let go."""


class ChangeName(NamedTuple):
    """A change, such as the last one that was emitted: the position of its transaction, and its number there."""

    lsn: int = -1
    number: int = 0

    @classmethod
    def read(cls, name: str) -> ChangeName:
        """Read the name of its message."""
        high, low, number = name.rpartition("@")[2].split("/")
        return cls(int(high, 16) << 32 | int(low, 16), int(number))


class Given(NamedTuple):
    """A transaction that was given, and is not known to be done."""

    end: int
    messages: int


class ChangesSession:
    """See :class:`~stormlet.connect.session.Session`."""

    def __init__(
        self,
        context: SourceContext,
        slot: Slot,
        confirmed: int,
        *,
        poll: float,
        warn_bytes: int,
        is_durable: bool = False,
    ) -> None:
        """``is_durable``: all up to where it resumes is durable."""
        last = (context.resume or {}).get(slot.name)
        self._behind = ChangeName() if last is None else ChangeName.read(last)
        self._is_durable = is_durable
        self._slot = slot
        self._place = context.assigned(slot.name)
        self._component = context.component
        self._poll = poll
        self._warn_bytes = warn_bytes
        self._warned = False
        self._clock = asyncio.get_running_loop().time
        self._wake = asyncio.Event()
        self._interruption: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._paused = False
        self._telling = False
        self._decoder = Decoder()
        self._deliveries: Iterator[Delivery] = iter(())
        self._confirmed = confirmed
        self._given = deque[Given]()
        self._durable = confirmed
        """The end of the last transaction that was passed over and is durable."""
        self._last = confirmed
        """The end of the last transaction that was given."""
        self._seen = -1
        """A position up to which there was nothing more."""
        self._let_go_at = 0.0

    async def begin(self) -> None:
        """Read for the first time, so that what is wrong with the publication fails the start."""
        if self._behind.lsn > await self._slot.end():
            raise self._slot.refuse(
                f"the state goes on behind {lsn_text(self._behind.lsn)}, which its WAL has not reached: it is another "
                f"server, or an older copy; with `state forget` of {self._component!r} it begins where the slot does"
            )
        await self._look(connecting=True)

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - see Session
        """Return changes, as soon as there are any."""
        until = self._clock() + timeout
        while True:
            if not self._is_held and (found := list(islice(self._deliveries, most))):
                return found
            left = until - self._clock()
            if self._interruption.done() or left <= 0:
                return ()
            if self._is_held or not await self._looked():
                await self._wait(min(left, self._poll))

    @property
    def _is_held(self) -> bool:
        return self._paused or self._telling

    async def _wait(self, seconds: float) -> None:
        self._wake.clear()
        if self._interruption.done():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _looked(self) -> bool:
        """Look for more, unless :meth:`interrupt` comes first: a peek that is given up has changed nothing."""
        looking = asyncio.get_running_loop().create_task(self._look())
        try:
            first: list[asyncio.Future[Any]] = [looking, self._interruption]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end([looking])
        return not looking.cancelled() and looking.result()

    async def _look(self, *, connecting: bool = False) -> bool:
        if self._durable > self._confirmed and await self._slot.advance(self._durable):
            self._is_done(self._durable)
        end = await self._slot.end()
        if end == self._seen:
            await self._let_go()
            return False
        given = sum(each.messages for each in self._given)
        if given > MOST_AGAIN:
            return False
        most = given + max(given, AT_ONCE)
        rows = await self._slot.peek(most, connecting=connecting)
        if rows is None:
            return False
        if len(rows) < most:
            self._seen = end
        self._deliveries = self._read(rows)
        return True

    async def _let_go(self) -> None:
        """Let go of WAL that has nothing for anybody."""
        now = self._clock()
        if self._given or self._seen <= self._confirmed or now < self._let_go_at:
            return
        self._let_go_at = now + LET_GO
        if await self._slot.advance(self._seen):
            self._confirmed = max(self._confirmed, self._seen)

    def _read(self, rows: Sequence[bytes]) -> Iterator[Delivery]:
        """Make the deliveries of what was read, each when it is asked for."""
        last, behind = self._last, self._behind
        begin, passed = Begin(0, 0.0), True
        waiting: Delivery | None = None
        messages, numbers = 0, count()
        for row in rows:
            messages += 1
            if passed and row[:1] in CHANGES:
                continue
            said = self._decoder.read(row)
            if isinstance(said, Begin):
                begin, messages, numbers = said, 1, count()
                passed = said.lsn < max(last, behind.lsn)
            elif isinstance(said, Commit):
                self._ended(said.end, messages, begin.lsn, is_given=waiting is not None)
                if waiting is not None:
                    waiting.position = said.end
                    yield waiting
                    waiting = None
            else:
                for body in said:
                    if waiting is not None:
                        yield waiting
                    name = ChangeName(begin.lsn, next(numbers))
                    waiting = None if name <= behind else self._delivery(body, begin, name)

    def _ended(self, end: int, messages: int, lsn: int, *, is_given: bool) -> None:
        """A transaction has ended; ``is_given``: a change of it is given now."""
        if end <= self._last:  # it was given before
            return
        self._last = end
        if is_given or lsn <= self._behind.lsn:
            self._given.append(Given(end, messages))
        if not is_given and lsn <= self._behind.lsn and self._is_durable:
            self._durable = end

    def _delivery(self, body: bytes, begin: Begin, name: ChangeName) -> Delivery:
        return Delivery(
            body=body,
            name=f"{self._slot.name}@{lsn_text(name.lsn)}/{name.number}",
            published=begin.committed,
            place=self._place,
            position=self._last,
        )

    def interrupt(self) -> None:
        """Have a read that waits return."""
        self._wake.set()
        if not self._interruption.done():
            self._interruption.set_result(None)

    async def settle(self, settlement: Settlement) -> int:
        """Advance the slot."""
        for place, front in settlement.fronts:
            if not place.is_revoked and front.position > self._confirmed:
                await self._advance(front.position)
        return 0

    async def _advance(self, lsn: int) -> None:
        self._telling = True
        try:
            if not await self._slot.advance(lsn):
                raise NotSettled(f"another connection is at the replication slot {self._slot.name!r}")
        finally:
            self._telling = False
            self._wake.set()
        self._is_done(lsn)

    def _is_done(self, lsn: int) -> None:
        self._confirmed = max(self._confirmed, lsn)
        while self._given and self._given[0].end <= lsn:
            self._given.popleft()

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """Not called: there are no leases."""
        return ()

    async def pause(self, places: Collection[Prefix]) -> None:
        """Return nothing more."""
        self._paused = True

    async def resume(self, places: Collection[Prefix]) -> None:
        """Return changes again."""
        self._paused = False
        self._wake.set()

    async def lag(self) -> Mapping[str, int]:
        """Return the bytes of WAL that are not done, and warn if the server must keep too many of them."""
        lag, kept = await self._slot.lag()
        if kept >= self._warn_bytes and not self._warned:
            logger.warning(
                "%s: the server keeps %s bytes of WAL for the replication slot %r, which may fill its disk",
                self._component,
                f"{kept:,}",
                self._slot.name,
            )
        self._warned = kept >= self._warn_bytes or (self._warned and kept >= self._warn_bytes // 2)
        return {self._slot.name: lag}

    async def close(self) -> None:
        """Disconnect."""
        await self._slot.close()
