"""The time budget that all tasks of a topology share in one iteration of the loop (law F2).

Theory of operation
-------------------
asyncio runs every callback that is ready before it looks at sockets and timers again. If each of n busy tasks had a
budget of its own, a host in the same loop would wait for n of them. So there is one budget for an iteration: it begins
with the first slice, and all tasks use it up together.

A task begins a slice with :meth:`Slices.begin`, executes a chunk of tuples, and asks :meth:`Slices.spent`, which looks
at the clock. Nothing interrupts a chunk. Its :class:`Pace` therefore keeps it to a fraction of the budget: it grows
while tuples are cheap, but never far, as the next tuple may cost a thousand times as much.

A task that finds the budget used up waits in :meth:`Slices.turn`. When the next iteration begins, the first of those
that wait are let in, in order. Several are, since one alone may leave most of the budget unused; not all are, since
those that find it used up must queue again. They return to the head of the queue, ahead of whoever came later. While
any that were let in have not run yet, nobody else is let in, and nobody may begin: calls start in order (law B3).

To notice that an iteration has begun takes a callback in each, which would be most of the price of a lone message. A
slice in which nothing is awaited may therefore go unwatched. Its time is counted against later budgets, until it is
worth a callback.

Under simulated time the clock stands still while code runs. There a seeded count takes the place of the clock, so that
runs with one seed are the same (law L16).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from stormlet.runtime.other_threads import OtherThreads


class Activity:
    """The number of tasks and calls that can still move something by themselves.

    A task counts from the moment it is woken, not from the moment it runs: in between nothing may look quiet.
    """

    __slots__ = ("_on_quiet", "_on_stir", "busy")

    def __init__(self) -> None:
        self.busy = 0
        self._on_quiet: Callable[[], None] | None = None
        self._on_stir: Callable[[], None] | None = None

    def call_when_quiet(self, on_quiet: Callable[[], None]) -> None:
        """Have this called whenever the count falls to zero."""
        self._on_quiet = on_quiet

    def call_when_stirred(self, on_stir: Callable[[], None] | None) -> None:
        """Have this called once, when the next one begins; None takes that back."""
        self._on_stir = on_stir

    def begin(self) -> None:
        """One more is under way."""
        self.busy += 1
        if self._on_stir is not None:
            on_stir, self._on_stir = self._on_stir, None
            on_stir()

    def end(self) -> None:
        """One less."""
        self.busy -= 1
        # In the midst of the work of whoever was last, so that the listener must do little, and decide later.
        if not self.busy and self._on_quiet is not None:
            self._on_quiet()


LONGEST_CHUNK = 32
"""However cheap the tuples were so far: the next ones may cost a thousand times as much, and nothing
interrupts them."""
CHUNKS_PER_SLICE = 8
"""A task looks at the clock about so many times in a slice; each look costs as much as a tenth of a tuple."""


class Pace:
    """The number of tuples one task executes before it looks at the clock again, adapted to their cost."""

    __slots__ = ("chunk",)

    def __init__(self) -> None:
        self.chunk = 1

    def measured(self, seconds: float, budget: float) -> None:
        """Learn from a chunk: it should take a fraction of the budget. Growing is slow, shrinking is not."""
        # A chunk cannot be interrupted. It must end well before the budget does, for what the other tasks need.
        wanted = budget / CHUNKS_PER_SLICE
        if seconds * 2 < wanted:
            # Only when a chunk took less than half of what it may: one that is doubled should still fit.
            self.chunk = min(self.chunk * 2, LONGEST_CHUNK)
        elif seconds > wanted:
            self.chunk = max(1, int(self.chunk * wanted / seconds))


class Slices(Protocol):
    """The scheduler of one topology."""

    def begin(self, *, watched: bool = True) -> bool:
        """Start a slice, if there is budget. Returns False if there is none; then the task must await :meth:`turn`.
        A slice that is not ``watched`` costs less; its task must call :meth:`watch` before it awaits anything."""
        ...

    def watch(self) -> None:
        """Notice when the next iteration begins, as something is about to be awaited in a slice."""
        ...

    def spent(self, pace: Pace, executed: int, *, awaited: bool = True, now: float | None = None) -> bool:
        """To be asked after every chunk of so many tuples, without those that were followed by others as :meth:`go_on`
        has allowed: whether the budget of this iteration is used up. ``awaited`` says whether anything may have been
        awaited in that chunk, ``now`` is the time if it is known."""
        ...

    def call_next(self, callback: Callable[[], None]) -> None:
        """Have this called once, when the next iteration is noticed."""
        ...

    def go_on(self, now: float, in_slice: bool) -> bool:
        """To be asked by what has executed one tuple until now, and would execute another one: whether it may. If not,
        it must await :meth:`turn`. ``in_slice`` says that it has awaited nothing since it was allowed to the last time;
        else a slice begins."""
        ...

    async def turn(self) -> None:
        """Wait for a later iteration with budget left."""
        ...


class _Turns:
    """The queue of tasks waiting for budget, and the hook at the start of each iteration that lets them
    in."""

    LET_IN = 16
    """The number of waiting tasks let in at a time; those that find the budget used up go to the head of the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._returned: list[asyncio.Future[None]] = []
        self._entering = 0
        self._callbacks: list[Callable[[], None]] = []
        self._watched = False
        self._opened = False
        self._exhausted = False

    def begin(self, *, watched: bool = True) -> bool:
        if self._waiting or self._returned or self._entering:
            return False  # nobody overtakes those who waited: calls start in order (law B3)
        if not self._has_budget():
            return False
        if watched:
            self.watch()
        return True

    def watch(self) -> None:
        if not self._watched:
            # Callbacks that are made in this iteration run in the next: so that is noticed before most of its
            # slices.
            self._loop.call_soon(self._next_iteration)
            self._watched = True

    def call_next(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)
        self.watch()

    async def turn(self) -> None:
        queue: deque[asyncio.Future[None]] | list[asyncio.Future[None]] = self._waiting
        while True:
            self.watch()
            waiter = self._loop.create_future()
            queue.append(waiter)
            try:
                await waiter
            finally:
                # One that was let in counts as entering until now, cancelled or not; one that was cancelled while
                # it waited never did.
                self._entering -= waiter.done() and not waiter.cancelled()
            if self._has_budget():
                break
            # It was let in and found the budget used up: it comes before those that have waited for less long.
            queue = self._returned
        self.watch()

    def _next_iteration(self) -> None:
        self._watched = False
        self._opened = False
        self._exhausted = False
        due, self._callbacks = self._callbacks, []
        over = 0
        try:
            self._let_in()
            for callback in due:
                over += 1
                callback()
            due.clear()
        except Exception:
            # An error of the engine's: the call is made again, or its outbox would never flush (law N2).
            over = max(0, over - 1)
            raise
        finally:
            if due:
                self._callbacks[:0] = due[over:]
                self.watch()

    def _let_in(self) -> None:
        if self._returned:
            # In their order, and ahead of all others (law B3).
            self._waiting.extendleft(reversed(self._returned))
            self._returned.clear()
        if self._waiting:
            self.watch()
            # While any of the last ones have not run, it is not known how much budget is left to share.
            for _ in range(0 if self._entering else min(self.LET_IN, len(self._waiting))):
                waiter = self._waiting[0]
                if not waiter.done():
                    waiter.set_result(None)
                    self._entering += 1
                self._waiting.popleft()

    def _has_budget(self) -> bool:
        if not self._opened:
            self._open()
        return not self._exhausted

    def _open(self) -> None:
        """The first slice of this iteration begins: so much for all of them."""
        raise NotImplementedError


class TimedSlices(_Turns):
    """Slices by the clock: at most ``budget`` seconds per iteration, from its first slice on.

    What slices use that nobody watches is counted together, as if they all ran in one iteration, until it is worth to
    notice the next one: a lone message then costs no hook in each.
    """

    UNWATCHED = 1 / 16
    """The part of a budget that slices may use unwatched."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        budget: float,
        clock: Callable[[], float],
        others: OtherThreads | None = None,
    ) -> None:
        super().__init__(loop)
        self._budget = budget
        self._time = clock
        self._until = 0.0
        self._last = 0.0
        self._used = 0.0
        self._others = OtherThreads() if others is None else others

    def spent(self, pace: Pace, executed: int, *, awaited: bool = True, now: float | None = None) -> bool:
        # An iteration in which nobody watched ends unnoticed: what was awaited may have come back in a later one.
        if not self._opened or (awaited and not self._watched):  # in another iteration than it began
            self._open()
            self.watch()
            return False
        return self._spend(pace, self._time() if now is None else now)

    def go_on(self, now: float, in_slice: bool) -> bool:
        if not in_slice and (self._waiting or self._returned or self._entering):
            return False
        if not self._opened or not self._watched:  # in another iteration than it began
            self._open()
            self.watch()
        elif now >= self._until:
            self._exhausted = True
        self._last = now
        return not self._exhausted

    def _spend(self, pace: Pace, now: float) -> bool:
        # One reading of the clock serves three purposes: the pace, the share that goes unwatched, and the budget.
        seconds = now - self._last
        self._last = now
        pace.measured(seconds, self._budget)
        if not self._watched:
            self._used += seconds
            if self._used >= self._budget * self.UNWATCHED:
                self.watch()
        if now >= self._until:
            self._exhausted = True
            self.watch()
        return self._exhausted

    def _has_budget(self) -> bool:
        if self._opened and self._watched:
            self._last = self._time()
            if self._last >= self._until:  # calls that are suspended have used it up, and did not ask
                self._exhausted = True
        else:
            self._open()
        return not self._exhausted

    def _open(self) -> None:
        self._opened = True
        self._last = self._time()
        # What was used unwatched may have been used in this very iteration, for all that is known.
        self._until = self._last + self._budget - self._used

    def _next_iteration(self) -> None:
        self._used = 0.0
        super()._next_iteration()
        # Last, as a signal handler may raise in it.
        self._others.iteration_begins(self._last)


class CountedSlices(_Turns):
    """Slices by a seeded count, for simulated time, where the clock stands still while code runs (law
    L16)."""

    LONGEST = 64

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Random) -> None:
        super().__init__(loop)
        self._random = random
        self._left = 0

    def spent(self, pace: Pace, executed: int, *, awaited: bool = True, now: float | None = None) -> bool:
        self._count(executed)
        # Small and never the same: chunks that end at any tuple find faults that whole batches hide.
        pace.chunk = self._random.randint(1, 8)
        return self._exhausted

    def go_on(self, now: float, in_slice: bool) -> bool:
        self._count(1)
        return not self._exhausted if in_slice else self.begin()

    def _count(self, executed: int) -> None:
        if not self._opened:
            self._open()
        self._left -= executed
        if self._left <= 0:
            self._exhausted = True

    def _open(self) -> None:
        self._opened = True
        self._left = self._random.randint(1, self.LONGEST)
        self.watch()
