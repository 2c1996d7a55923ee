"""The messages of one spout task that wait for another attempt (law S6)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator
from heapq import heapify, heappop, heappush
from random import Random

import msgspec

from stormlet.core.retries import ReplayPolicy
from stormlet.runtime.spout.messages import Message


class Waiting(msgspec.Struct, order=True, gc=False):
    """A message that waits for its time; the collector need not look into each of many (see
    :class:`~stormlet.core.ledger.OpenTree`)."""

    when: float
    number: int
    """No two are equal, so that messages are never compared."""
    message: Message


class Replays:
    """Messages that wait for their time, and then, as ``due``, for room."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        policy: ReplayPolicy,
        random: Random,
        came_due: Callable[[], None],
        guarded: Callable[[Callable[[], None]], None],
    ) -> None:
        """``came_due`` is called after messages became due, in a callback of the loop that ``guarded`` calls."""
        self.due: deque[Message] = deque()
        """Those whose time has come."""
        self._loop = loop
        self._policy = policy
        self._random = random
        self._came_due = came_due
        self._guarded = guarded
        self._later: list[Waiting] = []
        self._scheduled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        return len(self._later) + len(self.due)

    def __iter__(self) -> Iterator[tuple[float, Message]]:
        """Each, in their order, and when it is due by the loop's clock."""
        yield from ((0.0, message) for message in self.due)
        yield from ((each.when, each.message) for each in sorted(self._later))

    def add(self, message: Message) -> None:
        """Have it wait for as long as the policy says after so many failures; in an outage, all that are pending
        do."""
        # It may wait for half a minute, with thousands of others: no local variables of user code are kept so long.
        message.forget_frames()
        pause = self._policy.pause(message.failures, self._random)
        self._scheduled += 1
        heappush(self._later, Waiting(self._loop.time() + pause, self._scheduled, message))
        self._wait()

    def take_all(self) -> list[Message]:
        """None of them waits any more."""
        waiting = [message for _, message in self]
        self.due.clear()
        self._later.clear()
        return waiting

    def take(self, message_ids: Collection[object]) -> list[Message]:
        """These do not wait any more; return those of them that did."""
        taken = [message for _, message in self if message.message_id in message_ids]
        if taken:
            due = [each for each in self.due if each.message_id not in message_ids]
            self.due.clear()
            self.due.extend(due)
            self._later = [each for each in self._later if each.message.message_id not in message_ids]
            heapify(self._later)
        return taken

    def close(self) -> None:
        """The task ends: there are no more replays."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        """Have a timer for the first of them. One that comes no later stays, as many are added at a time."""
        if not self._later:
            return
        first = self._later[0].when
        # A timer that comes too early looks and sets the next one, which is cheaper than a timer for each message.
        if self._timer is None or first < self._timer_at:
            self.close()
            self._timer, self._timer_at = self._loop.call_at(first, self._guarded, self._come_due), first

    def _come_due(self) -> None:
        now = self._loop.time()
        self._timer = None
        # All that are due, as messages that failed together come back within one turn of the loop.
        while self._later and self._later[0].when <= now:
            self.due.append(heappop(self._later).message)
        self._wait()
        self._came_due()
