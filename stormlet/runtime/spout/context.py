"""The parts of a spout task that its feed works with, above all the wait for the source.

Theory of operation
-------------------
A spout task calls user code one call at a time (law S1). While it awaits an asynchronous source, other things must go
on nevertheless: verdicts arrive, replays become due, the topology is paused or drained.

What needs no user code is done beside the wait, in callbacks. For the rest the wait must be cut short. An asynchronous
``next_tuple`` can be called again, so it is cancelled at its await as soon as an outcome is to be delivered (law S7).
An asynchronous generator would be over, so it is cancelled only when the source is to end.

The wait is no activity: a topology whose spouts all wait for their sources is quiet. So :meth:`SourceWait.for_source`
takes the task out of the count of what is under way, and suspends its outbox, as nothing may stay unsent meanwhile.

A cancellation that arrives there may come from four sides. :meth:`SourceWait.interrupt` has noted its own; the task
knows if the engine has it die or end; both may be the case at once, and ``uncancel()`` says how many requests are
left. A cancellation that nobody has requested was raised by the source itself, and counts as its error. A source that
swallows a cancellation returns a value, which is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context
from enum import Enum
from typing import TypeVar

import msgspec

from stormlet.core.state.redeliveries import Redeliveries
from stormlet.model.plan import TaskPlan
from stormlet.runtime.life import Life
from stormlet.runtime.occupation import AWAITING
from stormlet.runtime.slices import Activity
from stormlet.runtime.spout.switches import Switches
from stormlet.runtime.spout.tracker import Tracker
from stormlet.runtime.usercode import UserCode, check_stray
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.thread_calls import ThreadCalls

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
    """The waits of one spout task for user code, above all for its source."""

    def __init__(self, life: Life, user: UserCode, outbox: Outbox, activity: Activity) -> None:
        self.asking = Asking.NOTHING
        self._life = life
        self._user = user
        self._outbox = outbox
        self._activity = activity
        self._interrupted = False

    async def for_user_code(self, result: Awaitable[R]) -> R:
        """Await anything but the source. It counts as activity, and nothing may stay unsent meanwhile."""
        self._outbox.suspend()
        before = self._outbox.occupation.switch(AWAITING)
        try:
            return await self._life.checked(result)
        finally:
            self._outbox.occupation.switch(before)
            self._outbox.enter()

    async def for_source(self, what: Asking, source: Awaitable[R]) -> R:
        """Await the source: its wait is no activity, and the outcomes of others go on meanwhile.

        Raises :class:`Interrupted` if the wait was cut short, and what the source raises. A value comes out also if
        the source has swallowed a cancellation: it is the caller's to keep it, and then to be cancelled.
        """
        self.asking = what
        # In this order: a run that is quiet must have nothing unsent, or it would be taken for ended.
        self._outbox.suspend()
        self._activity.end()
        before = self._outbox.occupation.switch(AWAITING)
        cancelled = False
        try:
            return await source
        except asyncio.CancelledError as error:
            # Kept for the block below: the source may swallow the cancellation, and then its value counts.
            cancelled = True
            self._life.check_cancelled()
            if not self._interrupted:
                check_stray(error)
            raise
        except Exception as error:
            self._life.check_cancelled(error)
            self._user.raised(error)
            raise
        finally:
            self.asking = Asking.NOTHING
            self._outbox.occupation.switch(before)
            # Before anything that may raise, so that the count is right whatever follows.
            self._activity.begin()
            self._outbox.enter()
            self._end_interrupt(cancelled=cancelled)

    def interrupt(self) -> None:
        """Cut the wait for the source short, if that was not done already."""
        if not self._interrupted:
            self._interrupted = True
            self._life.cancel()

    def _end_interrupt(self, *, cancelled: bool) -> None:
        # The source may have swallowed the cancellation, and somebody else may have cancelled the task too.
        if self._interrupted:
            self._interrupted = False
            coroutine = self._life.coroutine
            if coroutine is not None and coroutine.uncancel() == 0 and cancelled:
                raise Interrupted


class FeedContext(msgspec.Struct, frozen=True):
    """The parts of a spout task that its feed works with."""

    topology: str
    """The name of the topology."""
    plan: TaskPlan
    variables: Context
    """The context variables of the topology (law B10)."""
    life: Life
    user: UserCode
    switches: Switches
    tracker: Tracker
    outbox: Outbox
    wait: SourceWait
    threads_of_next_instance: Callable[[], ThreadCalls]
    """Makes what emits for the threads of an instance."""
    wake: Callable[[], None]
    """Has the task look for work."""
    attend_soon: Callable[[], None]
    """Has the task see to outcomes that were known at once."""
    last_durable: dict[Hashable, object]
    """For a ``Spout`` class, the id of the last durable message of each partition: it outlives the instances (law
    X8)."""
    redeliveries: Redeliveries | None
    """For a ``Spout`` class that redelivers in epochs, what it may give again (law X8)."""

    @property
    def paused(self) -> bool:
        """True while it must not emit, whatever room there is in the queues (law S3)."""
        return self.switches.pausing or self.tracker.room <= 0

    @property
    def may_ask(self) -> bool:
        """True if there is room for another message, here and in every queue that it may reach (law S3)."""
        outbox = self.outbox
        return not self.paused and outbox.has_room and outbox.full_consumer() is None
