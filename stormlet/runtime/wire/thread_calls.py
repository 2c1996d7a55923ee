"""Calls of a collector that other threads make (law F3), and the wait of those that emit.

Theory of operation
-------------------
Every call is made by the loop's thread as soon as the loop comes to it, in the order of asking. So a thread that emits
and then acks the anchor need not wait between the two, and an ack waits for nobody (law F4).

What waits is the thread that is about to emit: while as many emits of its task are on their way to the loop as there
is room for. The loop's thread alone knows that, so it counts the room again after each emit and whenever there may be
more, and lets those threads in that have waited longest. For a spout, room is what is left of ``max_spout_pending``
(law S3); a bolt that has filled a queue has none until that has room again (law B6). However many threads there are,
no more emits are on their way than :data:`MOST`.

No thread waits for ever:

- *The loop's own thread* never waits: nobody else could make room.
- *The end of the instance*, or of the loop, refuses those who wait, and those who come later, however late: the next
  instance has calls of its own. It comes before user code is called to end the instance, which may wait for its threads
  there.
- *A loop that is held up*, by user code that perhaps waits for this very thread, makes no room. After a while the
  thread goes on without.
- *Simulated time* stands still while a thread works for the loop, and room may be there only later. It passes while
  such a thread waits here.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, RLock, get_ident
from typing import TypeVar

from stormlet.errors import TopologyStopping
from stormlet.runtime.wire.outbox import Outbox

R = TypeVar("R")

MOST = 100
"""Emits of one task that may be on their way; the loop makes them all in one iteration."""
LOOK = 1.0
"""Seconds after which a thread that waits has the loop look again."""
PATIENCE = 10
"""The number of looks in vain after which it goes on without room, because the loop is held up."""

CountRoom = Callable[[Callable[[], None]], int | None]
"""Counts the emits there is room for, None for ever; where a queue has no room, arranges to be called when it has."""


class StandingClock(ABC):
    """The base of loops whose time stands still while threads work for them."""

    @abstractmethod
    def work_waits(self, thread: int) -> None:
        """The work of this thread waits for the loop now."""

    @abstractmethod
    def work_goes_on(self, thread: int) -> None:
        """It does not wait any longer."""


class Waiter:
    """A thread that waits for room."""

    __slots__ = ("admitted", "decided")

    def __init__(self) -> None:
        self.admitted = False
        self.decided = Lock()
        """Released when it is admitted or refused."""
        self.decided.acquire()


class ThreadCalls:
    """The calls that the threads of one instance make."""

    __slots__ = (
        "_clock",
        "_closed",
        "_count_room",
        "_lock",
        "_looks",
        "_loop",
        "_loop_thread",
        "_name",
        "_room",
        "_under_way",
        "waiting",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, count_room: CountRoom) -> None:
        self._loop = loop
        self._loop_thread = get_ident()
        self._name = name
        self._count_room = count_room
        self._clock = loop if isinstance(loop, StandingClock) else None
        self._lock = RLock()  # a signal may have its thread emit while that has the lock
        self._under_way = 0
        self._looks = 0
        self.waiting: deque[tuple[int, Waiter]] = deque()
        """The threads that wait for room."""
        self._closed = False
        self._room = min(count_room(self.look) or 0, MOST)

    def call(self, call: Callable[[], R]) -> Future[R]:
        """Make this call, whatever else is under way."""
        return call_threadsafe(self._loop, call)

    def emit(self, call: Callable[[], R]) -> Future[R]:
        """Make this call, when there is room.

        Raises :class:`~stormlet.errors.TopologyStopping` in other threads than the loop's when the instance has ended,
        and :class:`RuntimeError` when the loop is closed.
        """
        is_elsewhere = get_ident() != self._loop_thread
        if is_elsewhere:
            self._wait_for_room()
        else:  # it could wait for nobody but itself
            with self._lock:
                self._under_way += 1
        try:
            with self._lock:
                # The loop comes to all that it is handed before the end, and perhaps to nothing after it.
                if is_elsewhere and self._closed:
                    raise self._ended()
                return call_threadsafe(self._loop, call, self._made)
        except BaseException:
            self._leave()
            raise

    # On the loop's thread.

    def close(self) -> None:
        """The instance ends: nothing more is emitted by its threads."""
        with self._lock:
            self._closed = True
            while self.waiting:
                self._tell(*self.waiting.popleft(), admitted=False)

    def look(self) -> None:
        """There may be more room than before, or none any more."""
        if self.waiting:
            self._look()

    def _look(self) -> None:
        self._looks += 1
        room = self._count_room(self.look)
        if room is None:
            self.close()
            return
        with self._lock:
            self._room = min(room, MOST)
            # Those who have waited longest, in their order: a busy thread must not starve a patient one.
            while self.waiting and self._under_way < self._room:
                self._under_way += 1
                self._tell(*self.waiting.popleft(), admitted=True)
        if self._clock is not None:
            for thread, _ in tuple(self.waiting):
                self._clock.work_waits(thread)

    def _made(self) -> None:
        self._leave()
        self._look()

    def _leave(self) -> None:
        with self._lock:
            self._under_way -= 1

    def _tell(self, thread: int, waiter: Waiter, *, admitted: bool) -> None:
        if self._clock is not None:  # before the thread goes on, and before time does
            self._clock.work_goes_on(thread)
        waiter.admitted = admitted
        waiter.decided.release()

    # In other threads.

    def _wait_for_room(self) -> None:
        with self._lock:
            if self._closed:
                raise self._ended()
            if not self.waiting and self._under_way < self._room:
                self._under_way += 1
                return
            waiter = Waiter()
            self.waiting.append((get_ident(), waiter))
        try:
            self._await(waiter)
        except BaseException:
            if not self._withdraw(waiter) and waiter.admitted:
                self._leave()
            raise
        if not waiter.admitted:
            raise self._ended()

    def _await(self, waiter: Waiter) -> None:
        # A loop that answers is only busy, however long that takes; one that does not may be waiting for this thread.
        in_vain = 0
        while in_vain < PATIENCE:
            looks = self._looks
            self._loop.call_soon_threadsafe(self._look)
            if waiter.decided.acquire(timeout=LOOK):
                return
            in_vain = in_vain + 1 if self._looks == looks else 0
        if self._withdraw(waiter):
            waiter.admitted = True
            with self._lock:
                self._under_way += 1

    def _withdraw(self, waiter: Waiter) -> bool:
        with self._lock:
            was_waiting = (get_ident(), waiter) in self.waiting
            if was_waiting:
                self.waiting.remove((get_ident(), waiter))
        return was_waiting

    def _ended(self) -> TopologyStopping:
        return TopologyStopping(f"{self._name} has ended, and emits no more")


def room_below(outbox: Outbox, look: Callable[[], None]) -> int:
    """The number of emits a task has room for: none while a queue that it has filled has no room (law B6)."""
    if outbox.has_room:
        return MOST
    outbox.crowded[0].call_when_room(look)
    return 0


def call_threadsafe(
    loop: asyncio.AbstractEventLoop, call: Callable[[], R], after: Callable[[], object] | None = None
) -> Future[R]:
    """Call on the loop's thread from another one (law F3), and then ``after``, also where the future was cancelled; it
    has the result or the exception."""
    future: Future[R] = Future()

    def run() -> None:
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(call())
        except Exception as error:
            future.set_exception(error)
        finally:
            if after is not None:
                after()

    loop.call_soon_threadsafe(run)
    return future
