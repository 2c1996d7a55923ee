"""Other threads of the process run while the loop is busy (law F5).

Theory of operation
-------------------
One thread at a time holds the interpreter. CPython takes it from that thread when another one has waited for it for
``sys.getswitchinterval()`` seconds, 5 ms. But the loop lets go of it in each iteration, as it looks for events, and has
it back before the one that waits has woken up; and for that one the interval begins anew. So a loop whose iterations
are shorter than the interval, as slices make them (law F2), keeps all others from running for as long as it has
something to do: seconds, or for ever.

A thread that waits in vain is woken in each iteration and goes to sleep again. The operating system counts how often a
thread does that. Where the loop is busy, and the others have gone to sleep as often as it has turned, or half as often,
one of them waits, and the loop sleeps for a moment. Threads that wait for something else cost no more than a look at
these numbers.

Only iterations with slices are counted. What a run cannot do without, such as the write of an epoch, must go on as well
where other code of the host keeps the loop busy. For that, :func:`make_way` has a busy loop sleep whether others wait
or not.

Several topologies may share a loop. What one of them does for other threads need not be done by the next.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

MOMENT: Final = 0.0001
"""Seconds for which the loop sleeps. It takes half of that to wake up another thread; one that goes on for longer keeps
the interpreter until the loop has waited for the interval itself."""
HEAD_START: Final = 0.001
"""Seconds until the loop makes way for work that it needs: where it is idle, most epochs are written by then."""
WAY: Final = 0.0005
"""Seconds for which it does: a thread that writes an epoch needs the interpreter for about as long, in forty pieces."""
BETWEEN: Final = 0.005
"""Seconds from one time to the next."""


class Sleeps(NamedTuple):
    """The number of times that threads of this process have gone to sleep since its start."""

    own: int | None
    """Those of this thread; None where the system does not count them."""
    others: int


try:
    from resource import RUSAGE_SELF, getrusage
except ImportError:  # on Windows

    def sleeps_now() -> Sleeps:
        """Nothing is counted."""
        return Sleeps(None, 0)

else:
    if sys.platform == "linux":
        from resource import RUSAGE_THREAD

        def sleeps_now() -> Sleeps:
            """As the system has counted until now."""
            own = getrusage(RUSAGE_THREAD).ru_nvcsw
            return Sleeps(own, getrusage(RUSAGE_SELF).ru_nvcsw - own)

    else:

        def sleeps_now() -> Sleeps:
            """As the system has counted of all threads, of which one with a busy loop hardly goes to sleep."""
            return Sleeps(None, getrusage(RUSAGE_SELF).ru_nvcsw)


class Slept(threading.local):
    """The times at which the loop of this thread has slept last, for any of its topologies."""

    moment = -1.0
    way = -1.0


SLEPT: Final = Slept()


class Load:
    """The load of this thread from one look to the next."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, computed: Callable[[], float] = time.thread_time
    ) -> None:
        """``computed`` gives the seconds that this thread has computed until now."""
        self._clock = clock
        self._computed = computed
        self.begin(None)

    def begin(self, slept: int | None) -> None:
        """Begin anew, where the thread has slept so often until now."""
        self._began = self._clock()
        self._computed_before = self._computed()
        self._slept = slept

    def was_busy(self, slept: int | None) -> bool:
        """True if it has computed for more than half of the time, or has not slept once: a container may have a small
        part of a core."""
        if slept is not None and slept == self._slept:
            return True
        return (self._computed() - self._computed_before) * 2 > self._clock() - self._began


class OtherThreads:
    """Has the loop sleep for a moment now and then, if other threads wait for the interpreter."""

    def __init__(
        self,
        sleeps: Callable[[], Sleeps] = sleeps_now,
        sleep: Callable[[float], object] = time.sleep,
        load: Load | None = None,
        slept: Slept = SLEPT,
    ) -> None:
        self._sleeps = sleeps
        self._sleep = sleep
        self._load = Load() if load is None else load
        self._slept = slept
        self._before = sys.maxsize  # the first look has nothing to compare with
        self._iterations = 0
        self._next_look = 0.0

    def iteration_begins(self, now: float) -> None:
        """An iteration of the loop begins, or is noticed, at this time on the loop."""
        self._iterations += 1
        if now >= self._next_look:
            self._look(now)
            self._next_look = now + sys.getswitchinterval()

    def _look(self, now: float) -> None:
        sleeps = self._sleeps()
        one_waits = (sleeps.others - self._before) * 2 >= self._iterations
        is_time = now >= self._slept.moment + sys.getswitchinterval()
        if one_waits and is_time and self._load.was_busy(sleeps.own):
            self._slept.moment = now
            self._sleep(MOMENT)
            sleeps = self._sleeps()
        self._load.begin(sleeps.own)
        self._before = sleeps.others
        self._iterations = 0


def make_way(
    loop: asyncio.AbstractEventLoop,
    work: asyncio.Future[Any],
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Have the loop sleep now and then until this work of a thread is done, if it is busy. ``wait`` may be shorter than
    it is told, if it knows that the thread is ready. Not under simulated time."""
    load = Load()

    def wait_if_busy() -> None:
        if work.done():
            return
        now = loop.time()
        if now >= SLEPT.way + BETWEEN and load.was_busy(sleeps_now().own):
            SLEPT.way = now
            wait(WAY)
        load.begin(sleeps_now().own)
        loop.call_later(BETWEEN, wait_if_busy)

    loop.call_later(HEAD_START, wait_if_busy)
