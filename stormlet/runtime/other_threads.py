"""Other threads of the process run while the loop is busy (law F5).

Theory of operation
-------------------
One thread at a time holds the interpreter. CPython takes it from that thread when another one has waited for it for
``sys.getswitchinterval()`` seconds, 5 ms. But the loop lets go of it in each iteration, as it looks for events, and has
it back before the one that waits has woken up; and for that one the interval begins anew. So a loop whose iterations
are shorter than the interval, as slices make them (law F2), keeps all others from running for as long as it has
something to do: seconds, or for ever.

Who waits in vain is woken in each iteration and goes to sleep again. The operating system counts how often a thread
does that. If others have done it as often as the loop has turned, or half as often, somebody waits, and the loop sleeps
for a moment. Threads that wait for something else cost no more than a look at these numbers.

Only iterations with slices are counted. What a run cannot do without, such as the write of an epoch, must go on as well
where other code of the host keeps the loop busy. For that, :func:`make_way` has the loop sleep without a look.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, Final

HEAD_START: Final = 0.001
"""Seconds until the loop makes way for the first time: where it is idle, most epochs are written by then."""
WAY: Final = 0.0005
"""Seconds for which it does: a thread that writes an epoch needs the interpreter for about as long, in forty pieces."""
BETWEEN: Final = 0.005


def make_way(
    loop: asyncio.AbstractEventLoop,
    work: asyncio.Future[Any],
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Have the loop sleep now and then until this work of a thread is done. ``wait`` may be shorter than it is told, if
    it knows that the thread is ready. Not under simulated time."""

    def wait_unless_done() -> None:
        if not work.done():
            wait(WAY)
            loop.call_later(BETWEEN, wait_unless_done)

    loop.call_later(HEAD_START, wait_unless_done)


MOMENT: Final = 0.0001
"""Seconds for which the loop sleeps. It takes half of that to wake up another thread; one that goes on for longer keeps
the interpreter until the loop has waited for the interval itself."""

if sys.platform == "win32":

    def sleeps_of_others() -> int:
        """Zero: there is no such number here."""
        return 0

elif sys.platform == "linux":
    from resource import RUSAGE_SELF, RUSAGE_THREAD, getrusage

    def sleeps_of_others() -> int:
        """The number of times that other threads of this process have gone to sleep since its start."""
        return getrusage(RUSAGE_SELF).ru_nvcsw - getrusage(RUSAGE_THREAD).ru_nvcsw

else:
    from resource import RUSAGE_SELF, getrusage

    def sleeps_of_others() -> int:
        """The same of all threads, of which the one with a busy loop hardly goes to sleep."""
        return getrusage(RUSAGE_SELF).ru_nvcsw


class OtherThreads:
    """Has the loop sleep for a moment now and then, if other threads wait for the interpreter."""

    def __init__(
        self,
        sleeps: Callable[[], int] = sleeps_of_others,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._sleeps = sleeps
        self._sleep = sleep
        self._slept = sys.maxsize  # the first look has nothing to compare with
        self._iterations = 0
        self._next_look = 0.0

    def iteration_begins(self, now: float) -> None:
        """An iteration of the loop begins, or is noticed, that is busy."""
        self._iterations += 1
        if now >= self._next_look:
            self._look()
            self._next_look = now + sys.getswitchinterval()

    def _look(self) -> None:
        slept = self._sleeps()
        if (slept - self._slept) * 2 >= self._iterations:
            self._sleep(MOMENT)
            slept = self._sleeps()
        self._slept = slept
        self._iterations = 0
