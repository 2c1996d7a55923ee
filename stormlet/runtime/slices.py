"""The time budget that all tasks of a topology share in one iteration of the loop (law F2).

A task begins a slice with :meth:`Slices.begin`; when the iteration's budget is used up, it waits for
:meth:`Slices.turn`. Tasks that found no budget go first in the next iteration, one after another, so that
none starves and a host in the same loop waits for one budget, whatever the number of tasks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

LONGEST_CHUNK = 32
"""However cheap the tuples were so far: the next ones may cost a thousand times as much, and nothing
interrupts them."""
CHUNKS_PER_SLICE = 8
"""A task looks at the clock about so many times in a slice; each look costs as much as a tenth of a tuple."""


class Pace:
    """How many tuples one task executes before it looks at the clock again, adapted to what they cost."""

    __slots__ = ("chunk",)

    def __init__(self) -> None:
        self.chunk = 1

    def measured(self, seconds: float, budget: float) -> None:
        """Learn from a chunk: it should take a fraction of the budget. Growing is slow, shrinking is not."""
        wanted = budget / CHUNKS_PER_SLICE
        if seconds * 2 < wanted:
            self.chunk = min(self.chunk * 2, LONGEST_CHUNK)
        elif seconds > wanted:
            self.chunk = max(1, int(self.chunk * wanted / seconds))


class Slices(Protocol):
    """The scheduler of one topology."""

    def begin(self) -> bool:
        """Whether the calling task may start a slice now; else it must await :meth:`turn`."""
        ...

    def spent(self, pace: Pace, executed: int) -> bool:
        """To be asked after every chunk of so many tuples: whether the budget of this iteration is used
        up."""
        ...

    async def turn(self) -> None:
        """Wait for a later iteration with budget left."""
        ...


class _Turns:
    """The queue of tasks waiting for budget, and the hook at the start of each iteration that lets them
    in."""

    LET_IN = 16
    """How many waiting tasks are let in at a time; those that find the budget used up go to the head of the
    queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._returned: list[asyncio.Future[None]] = []
        self._entering = 0
        self._armed = False
        self._exhausted = False

    def begin(self) -> bool:
        if self._exhausted or self._waiting or self._returned or self._entering:
            return False  # nobody overtakes those who waited: calls start in order (law B3)
        if not self._armed:
            self._arm()
        return True

    async def turn(self) -> None:
        queue: deque[asyncio.Future[None]] | list[asyncio.Future[None]] = self._waiting
        while True:
            if not self._armed:
                self._arm()
            waiter = self._loop.create_future()
            queue.append(waiter)
            try:
                await waiter
            finally:
                self._entering -= waiter.done() and not waiter.cancelled()
            if not self._exhausted:
                return
            queue = self._returned

    def _arm(self) -> None:
        self._armed = True
        self._exhausted = False
        self._open()
        self._loop.call_soon(self._next_iteration)

    def _next_iteration(self) -> None:
        self._armed = False
        self._exhausted = False
        if self._returned:
            self._waiting.extendleft(reversed(self._returned))
            self._returned.clear()
        if self._waiting:
            self._arm()
            for _ in range(0 if self._entering else min(self.LET_IN, len(self._waiting))):
                waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_result(None)
                    self._entering += 1

    def _open(self) -> None:
        raise NotImplementedError


class TimedSlices(_Turns):
    """Slices by the clock: at most ``budget`` seconds per iteration."""

    def __init__(self, loop: asyncio.AbstractEventLoop, budget: float, clock: Callable[[], float]) -> None:
        super().__init__(loop)
        self._budget = budget
        self._time = clock
        self._until = 0.0
        self._last = 0.0

    def spent(self, pace: Pace, executed: int) -> bool:
        if (
            not self._armed
        ):  # user code was awaited meanwhile: this is another iteration, with a budget of its own
            self._arm()
            return False
        now = self._time()
        pace.measured(now - self._last, self._budget)
        self._last = now
        if now >= self._until:
            self._exhausted = True
        return self._exhausted

    def begin(self) -> bool:
        allowed = super().begin()
        self._last = self._time()
        return allowed

    def _open(self) -> None:
        self._last = self._time()
        self._until = self._last + self._budget


class CountedSlices(_Turns):
    """Slices by a seeded count, for simulated time, where the clock stands still while code runs (law
    L16)."""

    LONGEST = 64

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Random) -> None:
        super().__init__(loop)
        self._random = random
        self._left = 0

    def spent(self, pace: Pace, executed: int) -> bool:
        if not self._armed:
            self._arm()
        pace.chunk = self._random.randint(1, 8)
        self._left -= executed
        if self._left <= 0:
            self._exhausted = True
        return self._exhausted

    def _open(self) -> None:
        self._left = self._random.randint(1, self.LONGEST)
