"""The time shares of one task: how long it executes, awaits, is blocked, is limited; the rest is idle.

Theory of operation
-------------------
All code of a task runs in coroutines: its own, and one for each concurrent call. Each is driven by a :class:`Steps`,
which notes when a step begins and ends. A step is time in which the task *executes*, whatever it does in it. Before a
coroutine is suspended it says by :meth:`Occupation.switch` what it waits for; unless it says anything, it is idle. So
nothing has to be measured where code runs, and nothing is missed where it is suspended.

A task with n places for concurrent calls has each of them in a state of its own, and the share of a state is the part
of the places that are in it. While a step runs, all places count as executing: there is one loop, and what waits beside
a step would not be faster if there were more places.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, cast

IDLE: Final = 0
AWAITING: Final = 1
"""User code awaits something."""
BLOCKED: Final = 2
"""It waits for room in a queue (law B6, S3)."""
IN_THREAD: Final = 3
"""User code runs in a thread, which counts as executing."""
LIMITED: Final = 4
"""It asks its source for nothing, as enough is pending (law S3)."""


class Occupation:
    """The sums of one task, up to the last look."""

    __slots__ = (
        "_began",
        "_clock",
        "_in_thread",
        "_is_awaiting",
        "_is_blocked",
        "_is_limited",
        "_ran",
        "_running",
        "_since",
        "_step",
        "_waits",
        "awaiting",
        "blocked",
        "current",
        "limited",
        "on_loop",
        "places",
        "threads",
        "uptime",
    )

    def __init__(self, clock: Callable[[], float], places: int = 1) -> None:
        self.on_loop = 0.0
        """Seconds for which its coroutines ran."""
        self.threads = 0.0
        """Seconds for which its user code ran in threads, and nothing on the loop; of several, their share."""
        self.awaiting = 0.0
        self.blocked = 0.0
        self.limited = 0.0
        self.uptime = 0.0
        """Seconds since its first step, until its end."""
        self.current: Steps | None = None
        """The coroutine whose step runs now."""
        self._clock = clock
        self.places = 1
        """The number of calls that may be under way at a time."""
        self.allow(places)
        self._running = False
        self._began = False
        self._step = 0.0
        """The time when the step that runs began, or when it was looked at last."""
        # Since then each of its coroutines waits for the same things as now, whenever it is suspended.
        self._since = 0.0
        self._ran = 0.0
        """The seconds of steps since then."""
        # The numbers of suspended coroutines, all that are not idle and by what they wait for.
        self._waits = 0
        self._is_awaiting = 0
        self._is_blocked = 0
        self._in_thread = 0
        self._is_limited = 0

    def allow(self, places: int) -> None:
        """So many calls may be under way at a time from here on."""
        # Bounded, as the number is an integer of C where the module is compiled.
        self.places = min(places, sys.maxsize)

    def switch(self, doing: int) -> int:
        """Say what it will wait for, if the running coroutine is suspended; returns what was said before."""
        steps = self.current
        if steps is None:  # not one of the task's own
            return doing
        before = steps.doing
        steps.doing = doing
        return before

    def note(self, doing: int, by: int) -> None:
        """So many more wait for this by whom the task works, as the host."""
        self.look()
        self._count(doing, by)

    def end(self) -> None:
        """The task has ended, and its time with it."""
        self.look()
        self._began = self._running = False

    def look(self) -> None:
        """Bring the sums up to now."""
        now = self._clock()
        if self._running:
            seconds = now - self._step
            self._step = now
            self.on_loop += seconds
            self._ran += seconds
        self._settle(now)

    def begin_step(self, steps: Steps) -> None:
        """A step of a coroutine begins."""
        self.current = steps
        self._running = True
        self._step = now = self._clock()
        if not self._began:
            self._began = True
            self._since, self._ran = now, 0.0

    def end_step(self, before: int, after: int) -> None:
        """It ends; its coroutine has waited for the one, and now does for the other."""
        self.current = None
        now = self._clock()
        if self._running:  # else its task has ended
            seconds = now - self._step
            self.on_loop += seconds
            self._ran += seconds
        if after != before:  # as few steps do of those that a busy task takes, which awaits again and again
            self._settle(now)
            self._count(before, -1)
            self._count(after, 1)
        self._running = False

    def _settle(self, now: float) -> None:
        """Add the time until now, in which each coroutine waited for the same as it still does, when suspended."""
        if self._began:
            seconds = now - self._since
            self.uptime += seconds
            if self._waits:
                self._share(seconds - self._ran)
        self._since, self._ran = now, 0.0

    def _share(self, seconds: float) -> None:
        # Of a coroutine that waits within another wait, as for room within a tick, the inner one counts, which is the
        # one that is named first here.
        left = self.places
        if left == self._is_awaiting == self._waits:  # as in most awaits of most bolts
            self.awaiting += seconds
            return
        part = seconds / left
        taken = min(self._in_thread, left)
        self.threads += taken * part
        left -= taken
        taken = min(self._is_blocked, left)
        self.blocked += taken * part
        left -= taken
        taken = min(self._is_awaiting, left)
        self.awaiting += taken * part
        left -= taken
        if self._is_limited:
            self.limited += left * part

    def _count(self, doing: int, by: int) -> None:
        if doing == IDLE:
            return
        self._waits += by
        if doing == AWAITING:
            self._is_awaiting += by
        elif doing == BLOCKED:
            self._is_blocked += by
        elif doing == IN_THREAD:
            self._in_thread += by
        else:
            self._is_limited += by


class Steps:
    """A coroutine of a task, whose every step is noted."""

    __slots__ = ("_coroutine", "_occupation", "_send", "doing")

    def __init__(self, coroutine: Coroutine[Any, Any, None], occupation: Occupation) -> None:
        self.doing = IDLE
        """The reason of its next wait."""
        self._coroutine = coroutine
        self._send = coroutine.send
        self._occupation = occupation

    def __next__(self) -> Any:
        # What asyncio calls, for each step in which nothing is thrown.
        before = self.doing
        self._occupation.begin_step(self)
        try:
            return self._send(None)
        except BaseException:
            self.doing = IDLE  # it is over
            raise
        finally:
            self._occupation.end_step(before, self.doing)

    def send(self, value: Any, /) -> Any:
        """As a coroutine does."""
        return self._step(self._send, value)

    def throw(self, *error: Any) -> Any:
        """As a coroutine does."""
        return self._step(self._coroutine.throw, *error)

    def _step(self, step: Callable[..., Any], *arguments: Any) -> Any:
        before = self.doing
        self._occupation.begin_step(self)
        try:
            return step(*arguments)
        except BaseException:
            self.doing = IDLE
            raise
        finally:
            self._occupation.end_step(before, self.doing)

    def close(self) -> None:
        """As a coroutine does."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        # What asyncio shows of a task (cr_frame, cr_code, ...) is that of the coroutine.
        return getattr(self._coroutine, name)


cast("ABCMeta", Coroutine).register(Steps)  # compiled, it can have no base in Python
