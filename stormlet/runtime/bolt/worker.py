"""Workers: one for each kind of bolt, which executes the inputs of its task.

``work`` is the hot loop: plain calls over a chunk of tuples, without a coroutine or a future per tuple. Whenever
something has to be awaited, it returns that as an awaitable, a *pause*; the task awaits it and calls ``work`` again
with the tuples that are left. ``execute`` is the careful way for one tuple: in the context it brought (law B10),
joined to several trees, or in one of several concurrent calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any, Protocol, TypeVar

from stormlet.core.tuples import OPEN, JoinedTuple, Lineage
from stormlet.errors import StrayCancellation
from stormlet.model.components import TaskContext
from stormlet.model.plan import TaskPlan
from stormlet.runtime.context import Engine
from stormlet.runtime.life import Life
from stormlet.runtime.slices import Slices
from stormlet.runtime.usercode import Within, is_stray, stray
from stormlet.runtime.wire.collector import Account, Anchors, AnyTuple, BoltCollector
from stormlet.runtime.wire.outbox import Outbox

R = TypeVar("R")
Method = Callable[[Any], Awaitable[None] | None]


class Desk(Protocol):
    """The part of its task that a worker needs."""

    plan: TaskPlan
    engine: Engine
    life: Life
    loop: asyncio.AbstractEventLoop
    outbox: Outbox
    slices: Slices
    out: BoltCollector
    account: Account

    def user_failed(self, tups: Sequence[AnyTuple], error: Exception, out: BoltCollector) -> None:
        """User code raised while it processed these inputs (law B4)."""
        ...


class Worker:
    """The base of the workers."""

    auto_acks = True
    """True if every input that did not fail is acked when its call is over."""

    chunk: int | None = None
    """The number of tuples it wants at once, if the pace of the task does not decide that."""

    calling = 1
    """The number of inputs that are with user code while the task waits for a pause."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.outbox = desk.outbox

    @property
    def restartable(self) -> bool:
        """True if another worker can take over."""
        return True

    def work(self, tuples: Iterable[AnyTuple]) -> Awaitable[None] | None:
        """Execute inputs until there are none left, or until something must be awaited."""
        raise NotImplementedError

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> None:
        """Execute one input in any circumstances and settle it as the kind of bolt does."""
        try:
            await self.process(tup, out)
        except asyncio.CancelledError as error:
            self.desk.user_failed((tup,), self.stray(error), out)
        except Exception as error:
            self.desk.user_failed((tup,), error, out)
        else:
            self.done(tup, out)

    def stray(self, error: asyncio.CancelledError) -> StrayCancellation:
        """The error for a cancellation that user code lets out. Raises it again if another task has cancelled the
        call."""
        self.desk.life.check_cancelled()
        if not is_stray():
            raise error
        return stray(error)

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        """Have user code process one input."""
        raise NotImplementedError

    def done(self, tup: AnyTuple, out: BoltCollector) -> None:
        """The call of this input has returned: ack it, if it is not settled yet (law B1)."""
        if tup.state == OPEN:
            out.ack(tup)

    def method(self, name: str) -> Method | None:
        """The user's ``tick``, ``flush`` or ``finish``, if there is one."""
        return None

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        """The threads that run user code now, by ident, each with the inputs that it was handed."""
        return {}

    def why_held(self, tup: AnyTuple) -> str:
        """The reason the engine has for holding this input; empty if holding it is up to the user."""
        return ""

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        """Before the first input."""

    def cleanup(self) -> Awaitable[None] | None:
        """After the last one."""

    def call(self, tup: AnyTuple, out: BoltCollector) -> object:
        """The bare call of user code for one input; what it returns is an output, several, or something to
        await."""
        raise NotImplementedError

    def anchors_for(self, tup: AnyTuple) -> Anchors:
        """The anchors of outputs that name none."""
        return tup

    def needs_care(self, tup: AnyTuple, lineage: Lineage) -> bool:
        """True for a tuple that must go the careful way because its lineage is not plain."""
        return lineage.context is not None or isinstance(tup, JoinedTuple)

    async def carefully(self, tup: AnyTuple) -> None:
        """The careful way within the task's own sequence of calls."""
        await self.execute(tup, self.desk.out)
        await self.outbox.room()

    async def awaited(self, result: Awaitable[R], context: Context | None) -> R:
        """Await user code, so that it hides nothing unsent (law F1), in the context it belongs to."""
        self.outbox.suspend()
        try:
            return await self.desk.life.checked(result if context is None else Within(context, result))
        finally:
            self.outbox.enter()


def own_context(tup: AnyTuple) -> Context | None:
    """A copy of the context variables that the tuple brought, so that what this bolt sets does not reach the
    other tuples of the message (law B10); None if it brought none."""
    context = tup.lineage.context
    return None if context is None else context.copy()
