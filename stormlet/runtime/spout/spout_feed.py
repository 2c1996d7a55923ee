"""Asks an instance of a ``Spout`` class for tuples and tells it outcomes (law S1, S4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, Protocol

from stormlet.core.outcomes import Failure
from stormlet.errors import EndOfStream, TopologyStopping
from stormlet.model.components import ReliableSpout, Spout, TaskContext, overrides
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout.collector import ReliableSpoutOut, SpoutOut
from stormlet.runtime.spout.feed import Asking, Feed, Interrupted
from stormlet.runtime.spout.feeds import HostFeed
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.usercode import Within, dropped

FIRST_NAP = 0.001
"""Seconds until an idle ``next_tuple`` is asked again for the first time; doubled each time up to
``idle_max``."""


class OutcomeReceiver(Protocol):
    """Is called with the outcomes of messages: a ``Spout``, or what a simulation puts in front of it."""

    def ack(self, message_id: object, /) -> Awaitable[None] | None: ...
    def fail(self, message_id: object, failure: Failure, /) -> Awaitable[None] | None: ...


class SpoutFeed(HostFeed):
    """An instance of a ``Spout`` class."""

    passive = False
    dies = True

    def __init__(
        self,
        task: SpoutTask,
        make: Callable[[], Spout[Any]],
        receiver_of: Callable[[TaskPlan, Spout[Any]], OutcomeReceiver],
        idle_max: float,
    ) -> None:
        super().__init__(task)
        self._make = make
        self._receiver_of = receiver_of
        self._spout = spout = make()
        self._out = ReliableSpoutOut(task) if isinstance(spout, ReliableSpout) else SpoutOut(task)
        task.tracker.buries = not isinstance(spout, ReliableSpout) or spout.buries
        self._tracker = task.tracker
        self._outbox = task.outbox
        self._idle_max = idle_max
        self._nap = FIRST_NAP
        self._topology = task.engine.context
        self._context = self._topology.copy()
        if overrides(spout, Spout, "ack") or overrides(spout, Spout, "fail"):
            self._receiver = receiver_of(task.plan, spout)
            self.settle = self._settle

    @property
    def restartable(self) -> bool:
        """True if another instance can take over."""
        return self._spout.restartable

    @property
    def resumes(self) -> bool:
        """True if another run goes on after this one."""
        return self._spout.resumes

    def renewed(self) -> Feed:
        """Another instance."""
        return SpoutFeed(self.task, self._make, self._receiver_of, self._idle_max)

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        self.task.host.threads.open()
        return _awaitable(self._spout.open(context, self._out))

    def switch(self, active: bool) -> Awaitable[None] | None:
        return _awaitable(self._spout.activate() if active else self._spout.deactivate())

    def ask(self, most: int) -> Awaitable[None] | None:
        task, tracker, outbox = self.task, self._tracker, self._outbox
        enough = tracker.emitted + most  # one call may emit any number (law S3)
        while (before := tracker.emitted) < enough:
            try:
                result = self._call(self._spout.next_tuple, self._out)
            except EndOfStream:
                self.ended = True
                return None
            if result is not None:
                if not isawaitable(result):
                    raise self._blamed(result)
                return self._await(result, before)
            if task.pausing or self._nothing_came(before) or outbox.crowded:
                return None
            if tracker.outcomes:  # one that is known at once comes before the next next_tuple (law L17)
                pause = tracker.attend(self.settle, 1)
                if pause is not None:
                    return task.told_outcome(pause)
                task.doing = "next_tuple"
            if tracker.has_work or not task.active:  # law C1
                return None
        return None

    def _call(self, method: Callable[..., Awaitable[None] | None], *arguments: object) -> object:
        # In a context of its own for each call: what it sets travels with what it emits, not to the next call
        # (law B10).
        context, topology = self._context, self._topology
        try:
            result = context.run(method, *arguments)
        except EndOfStream:
            raise
        except BaseException as error:
            if not (self.task.stopping and isinstance(error, TopologyStopping)):
                self.task.blame(error)
            raise
        if result is not None and isawaitable(result):
            self._context = topology.copy()
            return Within(context, result)
        if context != topology:
            self._context = topology.copy()
        return result

    async def _await(self, result: Awaitable[object], before: int) -> None:
        try:
            given = await self.task.from_source(Asking.NEXT_TUPLE, result)
            if given is not None:
                raise self._blamed(given)
        except Interrupted:
            return
        except EndOfStream:
            self.ended = True
        except TopologyStopping:
            if not self.task.stopping:  # it tried to emit when it was cancelled at drain (law C3)
                raise
        else:
            if not self.task.pausing:
                self._nothing_came(before)

    def _blamed(self, result: object) -> TypeError:
        """The error for what ``next_tuple`` has returned, which is user code's (law N2)."""
        error = dropped(self.task.plan, "next_tuple", result)
        self.task.blame(error)
        return error

    def _nothing_came(self, before: int) -> bool:
        if self._tracker.emitted != before:
            self._nap = FIRST_NAP
            return False
        task = self.task
        if task.woken:  # while next_tuple ran
            task.woken = False
            self._nap = FIRST_NAP
            return True
        task.nap(self._nap)
        self._nap = min(self._nap * 2, self._idle_max)
        return True

    def _settle(self, message_id: object, failure: Failure | None) -> Awaitable[None] | None:
        if failure is None:
            return _awaitable(self._call(self._receiver.ack, message_id))
        return _awaitable(self._call(self._receiver.fail, message_id, failure))

    def close(self) -> Awaitable[None] | None:
        self.task.host.threads.close()  # for which it may wait
        return _awaitable(self._spout.close())


def _awaitable(result: object) -> Awaitable[None] | None:
    """The awaitable that a method has returned; any other result of it is an error."""
    return result if result is not None and isawaitable(result) else None
