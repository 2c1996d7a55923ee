"""Threads that may still call into a simulated loop, and whether they are at work.

A thread is at work unless it waits for work: for a lock, an event, a queue, a connection, or in an event loop of its
own. Whoever is to give it work holds the clock, then. Its innermost frames show the wait, but only when it had its turn
after it got the work; Linux shows whether it still waits for that. Some say more of themselves:

- a :class:`threading.Timer` waits, and then works by itself;
- what serves connections is waited for by way of these;
- a worker is at work as long as there is something in its queue: one of a pool, or one that has it as ``queue``, as
  those of anyio have. The latter is so until it says that this is done.
"""

from __future__ import annotations

import concurrent.futures.thread
import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import filterfalse
from pathlib import Path
from queue import Queue, SimpleQueue
from types import FrameType
from typing import Any, Final, TypeAlias

from stormlet.core.tracebacks import stack_line
from stormlet.runtime.slow_code import thread_frames, users_of
from stormlet.testing.outside.partners import Thing

Place: TypeAlias = tuple[str, str]
"""A module and a function."""
AnyQueue: TypeAlias = Queue[Any] | SimpleQueue[Any]

POOLS: Final[Mapping[threading.Thread, AnyQueue]] = getattr(concurrent.futures.thread, "_threads_queues", {})
"""The queue of each thread of a pool."""

WAITING_IN: Final = ("asyncio", "concurrent.futures", "queue", "threading")
"""Modules, with those in them, in which a thread waits for work."""
NOWHERE: Final = ("", "")
ACCEPTING: Final = ("socket", "accept")
SERVING: Final = "socketserver"
BESIDE: Final = ("selectors", "threading")
"""Modules by which others wait."""


class BusyThread(Thing):
    """One that is at work."""

    def __init__(self, thread: threading.Thread, now: float) -> None:
        self._thread = thread
        self._since = now

    def until(self, patience: float) -> float:
        """It is waited for since it was first seen at work."""
        return self._since + patience

    def __str__(self) -> str:
        calls = users_of(thread_frames(self._thread.ident or 0))
        return f"thread {self._thread.name!r}" + (f", at work in {stack_line(calls)}" if calls else "")


class Threads:
    """Those that were started since this was made."""

    def __init__(self) -> None:
        self._left_out = set(threading.enumerate())
        self._busy: dict[threading.Thread, BusyThread] = {}

    def leave_out(self, threads: Iterable[threading.Thread]) -> None:
        """Look at these no more."""
        self._left_out.update(threads)

    def new(self) -> Sequence[threading.Thread]:
        """All of them that live."""
        new = [*filterfalse(self._left_out.__contains__, threading.enumerate())]
        return [each for each in new if each is not threading.current_thread()] if new else new

    def may_have_been_told(self) -> bool:
        """True if there is one that may not show yet that it got work."""
        return any(
            not isinstance(queue := _queue_of(each), Queue) or queue.unfinished_tasks for each in self.new()
        )

    def busy(self, now: float, patience: float) -> Sequence[BusyThread]:
        """Those that are at work."""
        working = [each for each in self.new() if _is_at_work(each, patience)]
        self._busy = {each: self._busy.get(each) or BusyThread(each, now) for each in working}
        return list(self._busy.values())


def _is_at_work(thread: threading.Thread, patience: float) -> bool:
    if isinstance(thread, threading.Timer) and thread.interval <= patience:
        return True
    queue = _queue_of(thread)
    if queue is not None and queue.qsize():
        return True
    places = [_place(frame) for frame in reversed(thread_frames(thread.ident or 0))]
    if isinstance(queue, Queue):
        return queue.unfinished_tasks > 0 and not _waits_for_another(places)
    return bool(places) and (not _waits_to_be_told(places) or _is_due(thread))


def _queue_of(thread: threading.Thread) -> AnyQueue | None:
    queue: AnyQueue | None = getattr(thread, "queue", None) or POOLS.get(thread)
    return queue if isinstance(queue, Queue | SimpleQueue) else None


def _is_due(thread: threading.Thread) -> bool:
    """True if it could go on, and waits for its turn only."""
    try:
        stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_bytes()
    except OSError:  # there is no such file, or no such thread any more
        return False
    return stat.rpartition(b")")[2].split()[0] == b"R"


def _place(frame: FrameType) -> Place:
    return str(frame.f_globals.get("__name__")), frame.f_code.co_name


def _waits_to_be_told(places: Sequence[Place]) -> bool:
    """These are the places where it is, innermost first."""
    innermost = next((each for each in places if each[0] != "selectors"), NOWHERE)
    serves = any(module == SERVING for module, _ in places)
    return serves or innermost == ACCEPTING or _is_in(innermost, WAITING_IN)


def _waits_for_another(places: Sequence[Place]) -> bool:
    """Although its work is not done: for the next piece of it, or for a result."""
    caller = next((each for each in places if each[0] not in BESIDE), NOWHERE)
    return _is_in(caller, ("queue", "concurrent.futures"))


def _is_in(place: Place, modules: Iterable[str]) -> bool:
    return any(place[0] == each or place[0].startswith(f"{each}.") for each in modules)
