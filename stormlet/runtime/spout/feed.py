"""The source of a spout task, and the wait for it; the kinds of sources are in :mod:`stormlet.runtime.spout.feeds`.

Theory of operation
-------------------
A spout task calls user code one call at a time (law S1). While it awaits an asynchronous source, other things must go
on nevertheless: verdicts arrive, replays become due, the topology is paused or drained.

What needs no user code is done beside the wait, in callbacks. For the rest the wait must be cut short. An asynchronous
``next_tuple`` can be called again, so it is cancelled at its await as soon as an outcome is to be delivered (law S7).
An asynchronous generator would be over, so it is cancelled only when the source is to end.

The wait is no activity: a topology whose spouts all wait for their sources is quiet. So :meth:`SourceWait.from_source`
takes the task out of the count of what is under way, and suspends its outbox, as nothing may stay unsent meanwhile.

A cancellation that arrives there may come from four sides. :meth:`SourceWait.interrupt` has noted its own; the task
knows if the engine has it die or end; both may be the case at once, and ``uncancel()`` says how many requests are
left. A cancellation that nobody has requested was raised by the source itself, and counts as its error. A source that
swallows a cancellation returns a value, which is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from enum import Enum
from typing import Protocol, TypeVar

from stormlet.model.components import TaskContext
from stormlet.runtime.spout.tracker import Settle
from stormlet.runtime.task import Task
from stormlet.runtime.usercode import check_stray
from stormlet.runtime.wire.outbox import Outbox


class Feed(Protocol):
    """The source of a spout task."""

    @property
    def ended(self) -> bool:
        """True if there will be no more."""
        ...

    @property
    def passive(self) -> bool:
        """True if nothing comes by itself: the host feeds the spout."""
        ...

    @property
    def restartable(self) -> bool:
        """True if its task may go on after an exception, with the feed that :meth:`renewed` gives."""
        ...

    @property
    def way_out(self) -> str:
        """The reason it is not restartable, and the way to make it so, in words; empty if there is nothing to say."""
        ...

    @property
    def survives_kills(self) -> bool:
        """True if it can still be asked for more after it was cancelled while the task awaited it."""
        ...

    @property
    def dies(self) -> bool:
        """True for an instance of user code that dies with its task, and must be closed."""
        ...

    @property
    def unsent(self) -> int:
        """The number of values that the source has given and that could not be emitted yet."""
        ...

    @property
    def resumes(self) -> bool:
        """True if another run goes on from the position that :meth:`close` has noted."""
        ...

    def renewed(self) -> Feed:
        """The feed for the restarted task: itself, or another one, which must be opened."""
        ...

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        """Before anything else."""
        ...

    def switch(self, active: bool) -> Awaitable[None] | None:
        """The topology was activated or deactivated."""
        ...

    def ask(self, most: int) -> Awaitable[None] | None:
        """Emit at most so many tuples, or fewer; an awaitable must be awaited before the next call."""
        ...

    @property
    def settle(self) -> Settle | None:
        """Tells the outcome of a message of a ``Spout`` class, if that wants to know."""
        ...

    def end(self) -> Awaitable[None] | None:
        """There shall be no more tuples: the topology drains."""
        ...

    def close(self) -> Awaitable[None] | None:
        """After everything else."""
        ...


R = TypeVar("R")


class Asking(Enum):
    """The state of the wait for the source."""

    NOTHING = 0
    NEXT_TUPLE = 1
    """An async ``next_tuple``: cancelled when an outcome must be delivered (law S7)."""
    GENERATOR = 2
    """An async generator: cancelled only at drain (law S7)."""


class Interrupted(Exception):
    """The wait for the source was cut short by the engine."""


class SourceWait:
    """The wait of one spout task for its source."""

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
