"""Queues of a twin: each message is settled by its receipt, which belongs to a connection or is a lease."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from stormlet.connect.session import Delivery, Settlement, SourceContext
from stormlet.core.settlement.prefix import Prefix
from stormlet.errors import ConnectionLost, EndOfStream
from stormlet.testing.brokers.profiles import Profile


class Stored(msgspec.Struct):
    """One message in a queue."""

    number: int
    body: bytes
    key: str | bytes | None = None
    headers: Mapping[str, str | bytes] = msgspec.field(default_factory=dict[str, str | bytes])
    deliveries: int = 0


class Lent(msgspec.Struct):
    """A message that was delivered."""

    message: Stored
    session: QueueSession
    ends: float | None


class Queue:
    """One queue."""

    def __init__(self, name: str, profile: Profile, now: Callable[[], float]) -> None:
        self.name = name
        self.acked: list[bytes] = []
        """The bodies of messages that are done, in this order."""
        self.dead: list[tuple[bytes, str]] = []
        """Dead letters of the broker: bodies, and why."""
        self.violations: list[str] = []
        """Acts that no source may do."""
        self.finished = False
        """True if nothing more is published."""
        self.ready: deque[Stored] = deque()
        self.lent: dict[Any, Lent] = {}
        self.changed = asyncio.Event()
        self.deliveries = 0
        self._published = 0
        self._profile = profile
        self._now = now

    def publish(self, body: bytes, key: str | bytes | None = None, **headers: str | bytes) -> None:
        """Append a message."""
        self._published += 1
        self.ready.append(Stored(self._published, body, key, headers))
        self.changed.set()

    @property
    def left(self) -> list[bytes]:
        """The bodies of messages that are not done."""
        return sorted([each.body for each in self.ready] + [each.message.body for each in self.lent.values()])

    def lend(self, session: QueueSession, most: int) -> list[Delivery]:
        """Deliver up to so many messages."""
        self.expire()
        deliveries: list[Delivery] = []
        while self.ready and len(deliveries) < most:
            message = self.ready.popleft()
            message.deliveries += 1
            receipt = session.receipt(message)
            self.lent[receipt] = lent = Lent(message, session, None)
            self.renew(lent)
            deliveries.append(self.delivery(message, receipt))
            self.deliveries += 1
        return deliveries

    def renew(self, lent: Lent) -> None:
        """Begin a lease anew, where there are any."""
        lease = self._profile.capabilities.lease
        lent.ends = None if lease is None else self._now() + lease

    def lent_to(self, consumer: str) -> list[Any]:
        """The receipts of what was delivered to this consumer, and is not settled."""
        self.expire()
        return [receipt for receipt, lent in self.lent.items() if lent.session.is_of(consumer)]

    def delivery(self, message: Stored, receipt: Any) -> Delivery:
        """One delivery of a message."""
        name = f"{self.name}@{message.number}" if self._profile.has_names else ""
        return Delivery(
            body=message.body,
            receipt=receipt,
            name=name,
            key=message.key,
            headers=message.headers,
            deliveries=message.deliveries,
        )

    def expire(self) -> None:
        """Take back leases whose time is over."""
        over = [
            each for each, lent in self.lent.items() if lent.ends is not None and lent.ends <= self._now()
        ]
        for receipt in over:
            self.take_back(receipt, counts=True)

    def take_back(self, receipt: Any, *, counts: bool) -> None:
        """A message was not done, and comes again."""
        message = self.lent.pop(receipt).message
        message.deliveries -= not counts
        limit = self._profile.delivery_limit
        if limit is not None and message.deliveries >= limit:
            self.dead.append((message.body, "delivery limit"))
        else:
            self.ready.appendleft(message)
        self.changed.set()

    def left_by(self, session: QueueSession) -> None:
        """A connection is lost or closed."""
        if self._profile.capabilities.receipts_survive:
            return
        for receipt in [each for each, lent in self.lent.items() if lent.session is session][::-1]:
            self.take_back(receipt, counts=self._profile.losses_count)

    def apply(self, session: QueueSession, settlement: Settlement) -> int:
        """Settle; return the number of receipts that are not known any more."""
        self.expire()
        unknown = 0
        for receipt in settlement.done:
            lent = self._taken(session, receipt)
            unknown += lent is None
            if lent is not None:
                self.acked.append(lent.message.body)
        for receipt in settlement.returned:
            if session.own(receipt) in self.lent:
                self.take_back(session.own(receipt), counts=not self._profile.capabilities.can_return)
        for rejection in settlement.rejected:
            lent = self._taken(session, rejection.receipt)
            unknown += lent is None
            if lent is not None:
                self.dead.append((lent.message.body, rejection.reason))
        self.changed.set()
        return unknown

    def _taken(self, session: QueueSession, receipt: Any) -> Lent | None:
        lent = self.lent.pop(session.own(receipt), None)
        if lent is None and self._profile.double_ack_closes:
            self.violations.append(f"{receipt} is settled, which was not delivered or is settled already")
            session.lose()
            raise ConnectionLost("PRECONDITION_FAILED - unknown delivery tag")
        return lent


class QueueSession:
    """A connection of a source to a queue."""

    def __init__(
        self,
        queue: Queue,
        profile: Profile,
        context: SourceContext,
        latency: Callable[[], float],
        *,
        finite: bool,
    ) -> None:
        self._queue = queue
        self._profile = profile
        self._latency = latency
        self._credit = context.credit
        self._number = context.connection
        self._tags = 0
        self._finite = finite
        self._consumer = context.consumer
        self._own = queue.lent_to(self._consumer) if profile.begins_with_own else []
        self._interrupted = False
        self._lost = False
        self.most_lent = 0
        """The most messages that were lent to it at a time."""

    def receipt(self, message: Stored) -> Any:
        """The receipt of a message that is delivered now, by which the queue knows it."""
        self._tags += 1
        if self._profile.capabilities.receipts_survive:
            return (message.number, message.deliveries)
        return (self, self._tags)

    def is_of(self, consumer: str) -> bool:
        """True if it is this consumer's."""
        return self._consumer == consumer

    def own(self, receipt: Any) -> Any:
        """The receipt as the queue knows it; tags are numbers from 1 in every connection, so that they are equal by
        chance."""
        return receipt if self._profile.capabilities.receipts_survive else (self, receipt[1])

    def lose(self) -> None:
        """The connection is lost."""
        if not self._lost:
            self._lost = True
            self._queue.left_by(self)
            self._queue.changed.set()

    def _check(self) -> None:
        if self._lost:
            raise ConnectionLost("the connection was reset")

    async def _answer(self) -> None:
        """An answer is on its way."""
        self._check()
        await asyncio.sleep(self._latency())
        self._check()

    @property
    def _lent(self) -> int:
        return sum(lent.session is self for lent in self._queue.lent.values())

    async def receive(self, most: int, timeout: float) -> Sequence[Delivery]:  # noqa: ASYNC109 - the face has it
        """Deliver what there is."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while True:
            self._check()
            room = min(most, self._credit - self._lent)
            deliveries = self._lend_own(room) or self._queue.lend(self, room)
            if deliveries:
                self.most_lent = max(self.most_lent, self._lent)
                took = self._latency()
                await asyncio.sleep(took)
                if took >= self._profile.heartbeat:
                    self._check()
                return deliveries  # they are delivered, wherever they are
            queue = self._queue
            if self._finite and queue.finished and not queue.ready and not queue.lent:
                raise EndOfStream
            left = until - loop.time()
            if left <= 0 or self._interrupted:
                return []
            await self._wait(min(left, 1.0))

    def _lend_own(self, most: int) -> list[Delivery]:
        """Deliver once more what its consumer has had, and has not acked until now."""
        own, deliveries = self._own, list[Delivery]()
        while own and len(deliveries) < most:
            receipt = own.pop(0)
            if (lent := self._queue.lent.get(receipt)) is not None:
                lent.session = self
                lent.message.deliveries += 1
                self._queue.renew(lent)
                deliveries.append(self._queue.delivery(lent.message, receipt))
        return deliveries

    async def _wait(self, seconds: float) -> None:
        self._queue.changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._queue.changed.wait()
        except TimeoutError:
            return

    def interrupt(self) -> None:
        """Wait no more."""
        self._interrupted = True
        self._queue.changed.set()

    async def settle(self, settlement: Settlement) -> int:
        """Settle; the answer may be lost with the connection, when it was done."""
        self._check()
        await asyncio.sleep(self._latency() / 2)
        self._check()
        unknown = self._queue.apply(self, settlement)
        await self._answer()
        return unknown

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        """Begin leases anew."""
        await self._answer()
        self._queue.expire()
        lost: list[Any] = []
        for receipt in receipts:
            lent = self._queue.lent.get(receipt)
            if lent is None:
                lost.append(receipt)
            else:
                self._queue.renew(lent)
        return lost

    async def pause(self, places: Collection[Prefix]) -> None:
        """A queue has no partitions."""

    async def resume(self, places: Collection[Prefix]) -> None:
        """A queue has no partitions."""

    async def lag(self) -> Mapping[str, int]:
        """Messages that are ready or under way."""
        await self._answer()
        return {self._queue.name: len(self._queue.ready) + len(self._queue.lent)}

    async def close(self) -> None:
        """Leave."""
        if not self._lost:
            self._lost = True
            self._queue.left_by(self)
            self._queue.changed.set()
