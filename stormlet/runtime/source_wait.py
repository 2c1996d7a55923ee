"""How a spout task awaits its source, and how that is cut short (law S7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import Enum
from typing import TypeVar

from stormlet.runtime.cancellation import check_stray
from stormlet.runtime.outbox import Outbox
from stormlet.runtime.task import Task

R = TypeVar("R")


class Asking(Enum):
    """What the spout task is suspended in, if it waits for its source."""

    NOTHING = 0
    NEXT_TUPLE = 1
    """An async ``next_tuple``: cancelled when an outcome must be delivered (law S7)."""
    GENERATOR = 2
    """An async generator: cancelled only at drain (law S7)."""


class Interrupted(Exception):
    """The wait for the source was cut short by the engine."""


class SourceWait:
    """What one spout task is suspended in while it waits for its source."""

    def __init__(self, task: Task, outbox: Outbox) -> None:
        self.asking = Asking.NOTHING
        self._task = task
        self._outbox = outbox
        self._activity = task.activity
        self._interrupted = False

    async def from_source(self, what: Asking, source: Awaitable[R]) -> R:
        """Await the source: its wait is no activity, and the outcomes of others go on meanwhile.

        Raises :class:`Interrupted` if the wait was cut short, and what the source raises. A value comes out also if
        the source has swallowed a cancellation: it is the caller's to keep it, and then to be cancelled.
        """
        self.asking = what
        self._outbox.suspend()
        self._activity.end()
        cancelled = False
        try:
            return await source
        except asyncio.CancelledError as error:
            cancelled = True
            self._task.check_cancelled()
            if not self._interrupted:
                check_stray(error)
            raise
        except Exception as error:
            self._task.check_cancelled(error)
            self._task.blame(error)
            raise
        finally:
            self.asking = Asking.NOTHING
            self._activity.begin()
            self._outbox.enter()
            self._end_interrupt(cancelled=cancelled)

    def interrupt(self) -> None:
        """Cut the wait short, if that was not done already."""
        if not self._interrupted:
            self._interrupted = True
            self._coroutine().cancel()

    def _end_interrupt(self, *, cancelled: bool) -> None:
        # The source may have swallowed the cancellation, and somebody else may have cancelled the task too.
        if self._interrupted:
            self._interrupted = False
            if self._coroutine().uncancel() == 0 and cancelled:
                raise Interrupted

    def _coroutine(self) -> asyncio.Task[None]:
        coroutine = self._task.coroutine
        assert coroutine is not None, "the spout task has not started"
        return coroutine
