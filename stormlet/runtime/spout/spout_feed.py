"""The feed of a ``Spout`` class: asks an instance for tuples and calls it with outcomes (law S1, S4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextvars import Context
from functools import partial
from inspect import isawaitable
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from stormlet.core.directives import is_extension
from stormlet.core.outcomes import Failure
from stormlet.core.state.redeliveries import Redeliveries
from stormlet.core.trees import OpenTree
from stormlet.errors import EndOfStream, TopologyStopping
from stormlet.model.components import ReliableSpout, Spout, TaskContext, overrides
from stormlet.model.plan import TaskPlan
from stormlet.runtime.spout import positions
from stormlet.runtime.spout.collector import ReliableSpoutOut, SpoutOut
from stormlet.runtime.spout.context import Asking, FeedContext, Interrupted
from stormlet.runtime.spout.feeds import Feed
from stormlet.runtime.spout.messages import GivenAgain, HostMessage, Message
from stormlet.runtime.usercode import Within, dropped

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:
    # Functions of C: the declarations beside this file have them. Context.run costs three times as much.
    enter_context: Callable[[Context], None]
    exit_context: Callable[[Context], None]

FIRST_NAP = 0.001
"""Seconds until an idle ``next_tuple`` is asked again for the first time; doubled each time up to
``idle_max``."""


class OutcomeReceiver(Protocol):
    """Is called with the outcomes of messages: a ``Spout``, or what a simulation puts in front of it."""

    def ack(self, message_id: object, /) -> Awaitable[None] | None: ...
    def fail(self, message_id: object, failure: Failure, /) -> Awaitable[None] | None: ...


class SpoutFeed(Feed):
    """An instance of a ``Spout`` class."""

    passive = False
    dies = True

    def __init__(
        self,
        context: FeedContext,
        make: Callable[[], Spout[Any]],
        receiver_of: Callable[[TaskPlan, Spout[Any]], OutcomeReceiver],
        idle_max: float,
    ) -> None:
        super().__init__(context)
        self._make = make
        self._receiver_of = receiver_of
        self._spout = spout = make()
        # Within epochs the engine keeps what every spout emits, to emit it again in another attempt (law X7).
        is_kept = isinstance(spout, ReliableSpout) or context.tracker.keeps_all
        self._out = ReliableSpoutOut(context) if is_kept else SpoutOut(context)
        context.tracker.buries = not isinstance(spout, ReliableSpout) or spout.buries
        self._redeliveries = context.redeliveries
        self._outbox = context.outbox
        self._idle_max = idle_max
        self._next_nap = FIRST_NAP
        self._topology = context.variables
        self._variables = self._topology.copy()
        self.hears_outcomes = overrides(spout, Spout, "ack") or overrides(spout, Spout, "fail")
        if self.hears_outcomes:
            self._receiver = receiver_of(context.plan, spout)

    @property
    def restartable(self) -> bool:
        """True if another instance can take over."""
        return self._spout.restartable

    @property
    def resumes(self) -> bool:
        """True if another run goes on after this one."""
        return self._spout.resumes

    def position_after(self, messages: Sequence[Message]) -> bytes | None:
        if self._redeliveries is not None:
            self._redeliveries.seal([each.message_id for each in messages if type(each) is not HostMessage])
            return None
        last = self._last_of(messages)
        if not last or not self._spout.resumable:
            return None
        self._context.last_durable.update(last)
        return positions.encoded(self._context.last_durable)

    def position_now(self, messages: Sequence[Message]) -> Mapping[Hashable, object]:
        return {**self._context.last_durable, **self._last_of(messages)}

    def _last_of(self, messages: Sequence[Message]) -> dict[Hashable, object]:
        spout = self._spout
        ids = (each.message_id for each in reversed(messages) if each.message_id is not None)
        last: dict[Hashable, object] = {}
        # With one partition there is no need to ask for each message.
        for each in ids if overrides(spout, Spout, "partition") else islice(ids, 1):
            last.setdefault(spout.partition(each), each)
        return {partition: spout.position_of(each) for partition, each in last.items()}

    def renewed(self) -> Feed:
        """Another instance."""
        if self._redeliveries is not None:
            self._redeliveries.lose(self._context.plan.index)
        return SpoutFeed(self._context, self._make, self._receiver_of, self._idle_max)

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        return _awaitable(self._spout.open(context, self._out))

    def switch(self, active: bool) -> Awaitable[None] | None:
        return _awaitable(self._spout.activate() if active else self._spout.deactivate())

    def ask(self, most: int) -> Awaitable[None] | None:
        switches = self._switches
        switches.sated = False
        switches.attentive = True
        try:
            return self._ask(most)
        finally:
            switches.attentive = False

    def _ask(self, most: int) -> Awaitable[None] | None:
        tracker, outbox, switches = self._tracker, self._outbox, self._switches
        enough = tracker.emitted + most  # one call may emit any number (law S3)
        while (before := tracker.emitted) < enough:
            try:
                result = self._call(self._spout.next_tuple, self._out)
            except EndOfStream:
                self.ended = True
                return None
            if result is not None:
                if not isawaitable(result):
                    raise self._dropped(result)
                return self._await(result, before)
            if switches.pausing or switches.sated or self._nothing_came(before) or outbox.crowded:
                return None
            if tracker.outcomes:  # one that is known at once comes before the next next_tuple (law L17)
                pause = self.settle(most)
                if pause is not None:
                    return pause
                if self.hears_outcomes:
                    self._user.method = "next_tuple"
            if (
                switches.pausing or tracker.has_work() or not switches.active
            ):  # ack may have switched (law C1)
                return None
        return None

    def _call(self, method: Callable[[Any], object], argument: object) -> object:
        # In a context of its own for each call: what it sets travels with what it emits, not to the next call
        # (law B10).
        variables, topology = self._variables, self._topology
        try:
            result = _called_in(variables, method, argument)
        except EndOfStream:
            raise
        except BaseException as error:
            self._note(error)
            raise
        if result is not None and isawaitable(result):
            self._variables = topology.copy()
            return Within(variables, result)
        if variables != topology:
            self._variables = topology.copy()
        return result

    def _note(self, error: BaseException) -> None:
        # One that emits while the topology drains is refused, and need not know that it drains (law C3).
        if not (self._switches.stopping and isinstance(error, TopologyStopping)):
            self._user.raised(error)

    async def _await(self, result: Awaitable[object], before: int) -> None:
        try:
            given = await self._context.wait.for_source(Asking.NEXT_TUPLE, result)
            if given is not None:
                raise self._dropped(given)
        except Interrupted:
            return
        except EndOfStream:
            self.ended = True
        except TopologyStopping:
            if not self._switches.stopping:  # it tried to emit when it was cancelled at drain (law C3)
                raise
        else:
            if not self._switches.pausing:
                self._nothing_came(before)

    def _dropped(self, result: object) -> TypeError:
        """The error for what ``next_tuple`` has returned, which is user code's (law N2)."""
        error = dropped(self._context.plan, "next_tuple", result)
        self._user.raised(error)
        return error

    def _nothing_came(self, before: int) -> bool:
        if self._tracker.emitted != before:
            self._next_nap = FIRST_NAP
            return False
        if self._switches.woken:  # while next_tuple ran
            self._switches.woken = False
            self._next_nap = FIRST_NAP
            return True
        self.nap = self._next_nap
        self._next_nap = min(self._next_nap * 2, self._idle_max)
        return True

    def settle(self, most: int) -> Awaitable[None] | None:
        if not self.hears_outcomes:
            return Feed.settle(self, most)  # compiled, this method has no super()
        tracker = self._tracker
        for _ in range(tracker.waiting(most)):
            tree = tracker.settle_next()
            pause = None if tree is None else self._deliver(tree)
            if pause is not None:
                return self._delivered(pause)
        return None

    def _deliver(self, tree: OpenTree) -> Awaitable[None] | None:
        """Call ``ack`` or ``fail``."""
        failure, redeliveries = tree.failure, self._redeliveries
        if redeliveries is not None and not self._can_tell(redeliveries, tree):
            return None
        try:
            if failure is None:
                self._user.method = "ack"
                pause = _awaitable(self._call(self._receiver.ack, tree.message_id))
            else:
                self._user.method = "fail"
                fail = partial(self._receiver.fail, tree.message_id)
                pause = _awaitable(self._call(fail, failure))
            return pause if redeliveries is None else _noted(redeliveries, tree.message_id, pause)
        except EndOfStream as error:  # which next_tuple alone may raise
            self._user.raised(error)
            raise
        except TopologyStopping:
            if not self._switches.stopping:
                raise
            return None

    def _can_tell(self, redeliveries: Redeliveries, tree: OpenTree) -> bool:
        tell = redeliveries.tell_again if type(tree) is GivenAgain else redeliveries.tell
        return tell(self._context.plan.index, tree.message_id)

    async def _delivered(self, pause: Awaitable[None]) -> None:
        try:
            await self._context.wait.for_user_code(pause)
        except TopologyStopping as error:
            if not self._switches.stopping:
                self._user.raised(error)
                raise
        except Exception as error:
            self._user.raised(error)
            raise

    def end(self) -> Awaitable[None] | None:
        """The topology drains: the instance need not read on."""
        self.ended = True
        return _awaitable(self._spout.drain())

    def refuse_threads(self) -> None:
        self._out.threads.close()

    def close(self) -> Awaitable[None] | None:
        self.refuse_threads()  # for which it may wait
        return _awaitable(self._spout.close())


def _called_in(variables: Context, method: Callable[[Any], object], argument: object) -> object:
    """Call a method in this context."""
    if not cython.compiled:
        return variables.run(method, argument)
    enter_context(variables)  # noqa: F821
    try:
        return method(argument)
    finally:
        exit_context(variables)  # noqa: F821


def _noted(
    redeliveries: Redeliveries, message_id: object, pause: Awaitable[None] | None
) -> Awaitable[None] | None:
    """Have it noted that an ``ack`` or ``fail`` has returned, now or when this has come to its end."""
    if pause is not None:
        return _note_later(redeliveries, message_id, pause)
    redeliveries.acked(message_id)
    return None


async def _note_later(redeliveries: Redeliveries, message_id: object, pause: Awaitable[None]) -> None:
    await pause
    redeliveries.acked(message_id)


def _awaitable(result: object) -> Awaitable[None] | None:
    """The awaitable that a method has returned; None for any other result, which nothing takes."""
    return result if result is not None and isawaitable(result) else None
