"""What executes the inputs of a bolt task: one worker for each kind of bolt.

``work`` is the hot loop: plain calls over a chunk of tuples, no coroutine and no future per tuple. Whenever
something has to be awaited, it returns that as an awaitable, a *pause*; the task awaits it and calls ``work``
again with the tuples that are left. ``execute`` is the careful way for one tuple: in the context it brought
(law B10), joined to several trees, or beside other calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from inspect import isawaitable
from typing import Any, Protocol, TypeVar, cast

from stormlet.core.components import DEFAULT_STREAM, BasicBolt, Bolt, BoltBase, TaskContext, To
from stormlet.core.plan import TaskPlan
from stormlet.core.schema import schema_of
from stormlet.core.tuples import ACKED, HELD, OPEN, PLAIN, JoinedTuple, Lineage, Source
from stormlet.runtime.collectors import Account, Anchors, AnyTuple, BoltCollector, undeclared
from stormlet.runtime.contexts import within
from stormlet.runtime.engine import Engine
from stormlet.runtime.outbox import Outbox
from stormlet.runtime.outlets import Outlet
from stormlet.runtime.results import Kinds, ResultKind

R = TypeVar("R")
END = object()

Method = Callable[[Any], Awaitable[None] | None]
Deliver = Callable[[object, int, Lineage], int]


class Desk(Protocol):
    """What a worker needs of its task."""

    plan: TaskPlan
    engine: Engine
    loop: asyncio.AbstractEventLoop
    outbox: Outbox
    out: BoltCollector
    account: Account

    def user_failed(self, tups: Sequence[AnyTuple], error: Exception, out: BoltCollector) -> None:
        """User code raised while it processed these inputs (law B4)."""
        ...


class Worker:
    """The base of the workers."""

    auto_acks = True
    """Whether every input that did not fail is acked when its call is over."""

    chunk: int | None = None
    """How many tuples it wants at once, where it is not the pace of the task that decides."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.outbox = desk.outbox

    def work(self, tuples: Iterable[AnyTuple]) -> Awaitable[None] | None:
        """Execute inputs until there are none left, or until something must be awaited."""
        raise NotImplementedError

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> None:
        """Execute one input in any circumstances and settle it as the kind of bolt does."""
        try:
            await self.process(tup, out)
        except Exception as error:
            self.desk.user_failed((tup,), error, out)
        else:
            self.done(tup, out)

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

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        """Before the first input."""

    def cleanup(self) -> Awaitable[None] | None:
        """After the last one."""

    def call(self, tup: AnyTuple, out: BoltCollector) -> object:
        """The bare call of user code for one input; what it returns is an output, several, or something to
        await."""
        raise NotImplementedError

    def anchors_for(self, tup: AnyTuple) -> Anchors:
        """What outputs are anchored to that do not say so themselves."""
        return tup

    def needs_care(self, tup: AnyTuple, lineage: Lineage) -> bool:
        """Whether a tuple whose lineage is not plain must go the careful way."""
        return lineage.context is not None or type(tup) is JoinedTuple

    async def carefully(self, tup: AnyTuple) -> None:
        """The careful way within the task's own sequence of calls."""
        await self.execute(tup, self.desk.out)

    async def awaited(self, result: Awaitable[R], context: Context | None) -> R:
        """Await user code, so that it hides nothing unsent (law F1), in the context it belongs to."""
        self.outbox.suspend()
        try:
            if context is None:
                return await result
            return await within(context, result)
        finally:
            self.outbox.enter()


class FunctionWorker(Worker):
    """Functions and generator functions of the value (law B1)."""

    def __init__(self, desk: Desk, function: Callable[[Any], object], outlets: Mapping[str, Outlet]) -> None:
        super().__init__(desk)
        self._function = function
        self._outlets = outlets
        self._undeclared = UndeclaredOutlet(desk.plan, outlets)
        self._kinds = Kinds()

    def work(self, tuples: Iterable[AnyTuple]) -> Awaitable[None] | None:
        function, desk, outbox = self._function, self.desk, self.outbox
        deliver = self._outlets.get(DEFAULT_STREAM, self._undeclared).deliver
        acks, crowded = outbox.acks, outbox.crowded
        for tup in tuples:
            lineage = tup.lineage
            if lineage is not PLAIN and self.needs_care(tup, lineage):
                return self.carefully(tup)
            try:
                result = function(tup.value)
                if result is not None and self._emits_more(tup, result, deliver):
                    return self._rest(tup, result)
            except Exception as error:
                desk.user_failed((tup,), error, desk.out)
            else:
                tup.state = ACKED
                root = tup.root
                if root:
                    acks[root] ^= tup.edge
                if crowded:
                    return outbox.room()
        return None

    def _emits_more(self, tup: AnyTuple, result: object, deliver: Deliver) -> bool:
        """Emit what a result gives at once; whether there is more, for which something must be awaited."""
        kind = self._kinds[type(result)]
        root, lineage = tup.root, tup.lineage
        if kind is ResultKind.ITERATOR:
            crowded = self.outbox.crowded
            for value in cast("Iterator[object]", result):
                if type(value) is To:
                    self._emit(tup, cast("object", value), self.desk.out)
                else:
                    tup.edge ^= deliver(value, root, lineage)
                if crowded:
                    return True
            return False
        if kind is not ResultKind.VALUE:
            return True
        if type(result) is To:
            self._emit(tup, cast("object", result), self.desk.out)
        else:
            tup.edge ^= deliver(result, root, lineage)
        return False

    def call(self, tup: AnyTuple, out: BoltCollector) -> object:
        return self._function(tup.value)

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        context = _own(tup)
        result = self._function(tup.value) if context is None else context.run(self._function, tup.value)
        await self._deal(tup, result, out, context)

    async def _rest(self, tup: AnyTuple, result: object) -> None:
        out = self.desk.out
        try:
            await self.outbox.room()
            await self._deal(tup, result, out, None)
        except Exception as error:
            self.desk.user_failed((tup,), error, out)
        else:
            self.done(tup, out)

    async def _deal(self, tup: AnyTuple, result: object, out: BoltCollector, context: Context | None) -> None:
        if result is None:
            return
        kind = self._kinds[type(result)]
        if kind is ResultKind.ITERATOR:
            await self._drain(tup, cast("Iterator[object]", result), out, context)
        elif kind is ResultKind.AWAITABLE:
            awaited = await self.awaited(cast("Awaitable[object]", result), context)
            await self._deal(tup, awaited, out, context)
        elif kind is ResultKind.ASYNC_ITERATOR:
            await self._drain_async(tup, cast("AsyncIterator[object]", result), out, context)
        else:
            self._emit(tup, result, out)
            await self.outbox.room()

    async def _drain(
        self, tup: AnyTuple, values: Iterator[object], out: BoltCollector, context: Context | None
    ) -> None:
        while True:
            value = next(values, END) if context is None else context.run(next, values, END)
            if value is END:
                return
            self._emit(tup, value, out)
            await self.outbox.room()

    async def _drain_async(
        self, tup: AnyTuple, values: AsyncIterator[object], out: BoltCollector, context: Context | None
    ) -> None:
        while True:
            value = await self.awaited(anext(values, END), context)
            if value is END:
                return
            self._emit(tup, value, out)
            await self.outbox.room()

    def _emit(self, tup: AnyTuple, value: object, out: BoltCollector) -> None:
        if type(value) is To:
            to = cast("To[object]", value)
            out.emit(to.value, anchors=tup, stream=to.stream, task=to.task)
        else:
            out.emit(value, anchors=tup)


class InstanceWorker(Worker):
    """What bolt classes share."""

    base: type[BoltBase[Any, Any]]

    def __init__(self, desk: Desk, bolt: Bolt[Any, Any] | BasicBolt[Any, Any]) -> None:
        super().__init__(desk)
        self.bolt = bolt

    def method(self, name: str) -> Method | None:
        own = getattr(type(self.bolt), name, None)
        return None if own is getattr(BoltBase, name, None) else cast("Method", getattr(self.bolt, name))

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        return self.bolt.prepare(context)

    def cleanup(self) -> Awaitable[None] | None:
        return self.bolt.cleanup()

    def call(self, tup: AnyTuple, out: BoltCollector) -> object:
        result = self.bolt.execute(tup, out)
        return result if isawaitable(result) else None

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        context = _own(tup)
        out.default_anchors = self.anchors_for(tup)
        result = self.bolt.execute(tup, out) if context is None else context.run(self.bolt.execute, tup, out)
        if isawaitable(result):
            await self.awaited(result, context)

    async def rest(self, tup: AnyTuple, result: Awaitable[None]) -> None:
        """Await what ``execute`` returned, then settle its input as usual."""
        out = self.desk.out
        try:
            await self.awaited(result, None)
        except Exception as error:
            self.desk.user_failed((tup,), error, out)
        else:
            self.done(tup, out)
            await self.outbox.room()


class BasicWorker(InstanceWorker):
    """``BasicBolt``: anchored to the input, acked on return (law B1)."""

    def work(self, tuples: Iterable[AnyTuple]) -> Awaitable[None] | None:
        execute, desk, outbox = self.bolt.execute, self.desk, self.outbox
        out, acks, crowded = desk.out, outbox.acks, outbox.crowded
        for tup in tuples:
            lineage = tup.lineage
            if lineage is not PLAIN and self.needs_care(tup, lineage):
                return self.carefully(tup)
            out.default_anchors = tup
            try:
                result = execute(tup, out)
            except Exception as error:
                desk.user_failed((tup,), error, out)
            else:
                if result is not None and isawaitable(result):
                    return self.rest(tup, result)
                if tup.state == OPEN:
                    tup.state = ACKED
                    root = tup.root
                    if root:
                        acks[root] ^= tup.edge
                if crowded:
                    return outbox.room()
        return None


class BoltWorker(InstanceWorker):
    """``Bolt``: anchors and acks by itself, and may hold inputs (law B2)."""

    auto_acks = False

    def work(self, tuples: Iterable[AnyTuple]) -> Awaitable[None] | None:
        execute, desk, outbox = self.bolt.execute, self.desk, self.outbox
        out, held, crowded = desk.out, desk.account.held, outbox.crowded
        for tup in tuples:
            lineage = tup.lineage
            if lineage is not PLAIN and self.needs_care(tup, lineage):
                return self.carefully(tup)
            try:
                result = execute(tup, out)
            except Exception as error:
                desk.user_failed((tup,), error, out)
            else:
                if result is not None and isawaitable(result):
                    return self.rest(tup, result)
                if tup.state == OPEN:
                    tup.state = HELD
                    held[tup] = None
                if crowded:
                    return outbox.room()
        return None

    def anchors_for(self, tup: AnyTuple) -> Anchors:
        return ()

    def done(self, tup: AnyTuple, out: BoltCollector) -> None:
        if tup.state == OPEN:
            tup.state = HELD
            self.desk.account.held[tup] = None


class BatchWorker(BoltWorker):
    """``BatchBolt``, by way of its runner: holds inputs until their batch is executed."""


class UndeclaredOutlet(Outlet):
    """Stands for the default stream of a component that does not declare one."""

    __slots__ = ("_outlets", "_plan")

    def __init__(self, plan: TaskPlan, outlets: Mapping[str, Outlet]) -> None:
        super().__init__(Source(plan.component, DEFAULT_STREAM, plan.task, schema_of(None)))
        self._plan = plan
        self._outlets = outlets

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        raise undeclared(self._outlets, DEFAULT_STREAM, self._plan)


def _own(tup: AnyTuple) -> Context | None:
    # A copy, so that what this bolt sets does not reach the other tuples of the message.
    context = tup.lineage.context
    return None if context is None else context.copy()
