"""Workers that execute inputs with a function, a ``BasicBolt`` or a ``Bolt`` (law B1, B2).

The three ``work`` methods are the hottest loops of the engine. Each has the ack of an input written out, which is what
``BoltCollector.ack`` and ``Outbox.ack`` do, and looks at a result only if it is not None. Compiled, their locals have C
types, which ``functions.pxd`` declares.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextvars import Context
from inspect import isawaitable, iscoroutine
from types import CoroutineType, GeneratorType
from typing import Any, cast

import msgspec

from stormlet.core.schema import schema_of
from stormlet.core.tuples import ACKED, HELD, OPEN, PLAIN, Lineage, Source
from stormlet.model.components import DEFAULT_STREAM, BasicBolt, Bolt, BoltBase, TaskContext, To
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.awaited_call import AwaitedCall
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Wiring, Worker, own_context, raised_on
from stormlet.runtime.usercode import COMPONENTS, MOST_TYPES, Kinds, ResultKind, dropped, kind_of
from stormlet.runtime.wire.collector import Anchors, AnyTuple, BoltCollector, undeclared
from stormlet.runtime.wire.outlets import Outlet

END = object()  # none of user code's own values
ITERATOR, VALUE = ResultKind.ITERATOR, ResultKind.VALUE  # to ask an enum for them costs as much as to emit


class Outputs:
    """Outputs of many calls, in two columns."""

    def __init__(self, fitting: Callable[[object], tuple[object, bool]]) -> None:
        """``fitting`` is asked for an output as it is to be emitted, and says if all of its type are emitted as they
        are. It raises for what must not be emitted."""
        self.values: list[object] = []
        self.places: list[int] = []
        """The place of the input of each."""
        self.plain: dict[type, None] = {}
        """Types of results that are emitted as they are."""
        self._fitting = fitting

    def taken(self) -> tuple[list[object], list[int]]:
        """Take both columns."""
        taken = self.values, self.places
        self.values, self.places = [], []
        return taken

    def add(self, value: object, place: int) -> None:
        """Add one output."""
        if type(value) not in self.plain:
            value, plain = self._fitting(value)
            kind = type(value)
            if plain and kind_of(kind) is VALUE and not issubclass(kind, COMPONENTS):
                self._learn(kind)
        self.values.append(value)
        self.places.append(place)

    def _learn(self, plain: type) -> None:
        if len(self.plain) >= MOST_TYPES:
            self.plain.clear()
        self.plain[plain] = None


class Stop(msgspec.Struct, frozen=True):
    """A call at which :meth:`FunctionWorker.pass_through` has stopped."""

    place: int
    """The place of its input."""
    value: object
    """That input."""
    error: BaseException | None = None
    """Its exception; None if its result must be awaited."""


class Odd(msgspec.Struct, frozen=True):
    """A call at which :meth:`FunctionWorker.pass_plainly` has stopped."""

    value: object
    """Its input."""
    result: object
    error: BaseException | None = None
    """Its exception."""


class FunctionWorker(Worker):
    """Functions and generator functions of the value (law B1)."""

    quick = True
    collects = False

    def __init__(self, wiring: Wiring, function: Callable[[Any], object]) -> None:
        super().__init__(wiring)
        self._function = function
        self._outlets = wiring.outlets
        self._undeclared = UndeclaredOutlet(wiring.plan, wiring.outlets)
        self._kinds = Kinds(wiring.plan.component)

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        function, outbox = self._function, self.outbox
        # Looked up for each chunk: the outlets are complete, and may be wrapped, only after the worker was made.
        outlet = self._outlets.get(DEFAULT_STREAM, self._undeclared)
        crowded = outbox.crowded
        for tup in tuples:
            lineage = tup.lineage
            if lineage is not PLAIN and lineage.context is not None:
                return self.carefully(tup)
            try:
                result = function(tup.value)
                if result is not None and self._emits_more(tup, result, outlet):
                    if type(result) is CoroutineType:
                        return AwaitedCall(self, tup, cast("CoroutineType[Any, Any, object]", result))
                    return self._rest(tup, result)
            except Exception as error:
                return Raised((tup,), error)
            else:
                # Nobody else has the input, so it is open still.
                tup.state = ACKED
                root = tup.root
                if not root:
                    self.ack_rootless(tup)
                elif root == outbox.run:
                    outbox.delta ^= tup.edge
                else:
                    outbox.begin_run(root, tup.edge)
                if crowded:
                    return outbox.room()
        return None

    def _emits_more(self, tup: AnyTuple, result: Any, outlet: Outlet) -> bool:
        """Emit what a result gives at once. Returns True if there is more, for which something must be awaited."""
        kind = self._kinds[type(result)]
        root, lineage = tup.root, tup.lineage
        if not root and lineage is not PLAIN:
            return self._emits_more_joined(tup, result, kind)
        if kind is ITERATOR:
            crowded = self.outbox.crowded
            for value in result:
                if type(value) is To:
                    self._emit(tup, cast("object", value), self.out)
                else:
                    tup.edge ^= outlet.deliver(value, root, lineage)
                if crowded:  # the iterator is kept, and drained when there is room (law B6)
                    return True
            return False
        if kind is not VALUE:  # a coroutine or an async generator; or a class, which is rare
            return True
        if type(result) is To:
            self._emit(tup, cast("object", result), self.out)
        else:
            tup.edge ^= outlet.deliver(result, root, lineage)
        return False

    def _emits_more_joined(self, tup: AnyTuple, result: Any, kind: ResultKind) -> bool:
        """The same for an input of several trees, or of none."""
        if kind is ITERATOR:
            for value in result:
                self._emit(tup, value, self.out)
                if self.outbox.crowded:
                    return True
            return False
        if kind is not VALUE:
            return True
        self._emit(tup, result, self.out)
        return False

    def pass_plainly(self, values: Iterator[object], outputs: Outputs) -> Odd | None:
        """Call the function with values as long as each call gives one output that is emitted as it is, and gather
        these without places. Return the first call that ends in another way."""
        function, plain, add, value = self._function, outputs.plain, outputs.values.append, None
        try:
            for value in values:
                result = function(value)
                if type(result) not in plain:
                    return Odd(value, result)
                add(result)
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            return Odd(value, None, error)
        return None

    def pass_odd(self, odd: Odd, place: int, outputs: Outputs) -> Stop | None:
        """Gather what a call gives that is not plain; return it if it ends in another way."""
        error = odd.error
        if error is None:
            try:
                if odd.result is None or self._gather(odd.result, place, outputs):
                    return None
            except (Exception, asyncio.CancelledError, SystemExit) as raised:
                error = raised
        return Stop(place, odd.value, error)

    def pass_through(self, inputs: Iterator[tuple[int, object]], outputs: Outputs) -> Stop | None:
        """Call the function with values that have no tuples, each with its place, and gather the outputs. Stops early
        at a call that ends in another way."""
        function, plain = self._function, outputs.plain
        values, places = outputs.values, outputs.places
        for place, value in inputs:
            try:
                result = function(value)
                if type(result) in plain:
                    values.append(result)
                    places.append(place)
                elif result is not None and not self._gather(result, place, outputs):
                    return Stop(place, value)
            except (Exception, asyncio.CancelledError, SystemExit) as error:
                return Stop(place, value, error)
        return None

    def _gather(self, result: Any, place: int, outputs: Outputs) -> bool:
        """Gather what a result gives at once. Returns False if something must be awaited for it."""
        kind = self._kinds[type(result)]
        if kind is ITERATOR:
            for value in result:
                outputs.add(value, place)
            return True
        if kind is ResultKind.CLASS:
            self._kinds.check_class(result)
        elif kind is not VALUE:
            if iscoroutine(result):
                result.close()  # else Python would warn that nobody has awaited it
            return False
        outputs.add(result, place)
        return True

    def call(self, tup: AnyTuple, out: BoltCollector) -> object:
        # In a thread: what is neither drained nor awaited is an output, so that classes alone need a look.
        result = self._function(tup.value)
        if self._kinds[type(result)] is ResultKind.CLASS:
            self._kinds.check_class(result)
        return result

    def begin(self, tup: AnyTuple, out: BoltCollector) -> Awaitable[object] | None:
        result = self._function(tup.value)
        if type(result) is CoroutineType:
            return cast("Awaitable[object]", result)
        return self.end(tup, result, out)

    def end(self, tup: AnyTuple, value: object, out: BoltCollector) -> Awaitable[object] | None:
        outbox = self.outbox
        if value is not None:
            kind = self._kinds[type(value)]
            if kind is not VALUE:
                return self._deal(tup, value, out, None)  # which gives None
            emitted: object = value  # as type checkers make something else of one that may be a To
            if type(value) is To or (not tup.root and tup.lineage is not PLAIN):
                self._emit(tup, emitted, out)
            else:
                if not outbox.armed:  # first, as a consumer whose inbox was empty is woken by the flush alone
                    outbox.arm()
                outlet = self._outlets.get(DEFAULT_STREAM, self._undeclared)
                tup.edge ^= outlet.deliver(value, tup.root, tup.lineage)
        if not outbox.armed:
            outbox.arm()
        tup.state = ACKED  # nobody else has it, so it is open still
        if tup.root:
            outbox.ack(tup.root, tup.edge)
        else:
            self.ack_rootless(tup)
        return None

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        context = own_context(tup)
        result = self._function(tup.value) if context is None else context.run(self._function, tup.value)
        await self._deal(tup, result, out, context)

    async def _rest(self, tup: AnyTuple, result: object) -> Raised | None:
        out = self.out
        try:
            try:
                await self.outbox.room()
                await self._deal(tup, result, out, None)
            finally:
                self._end_generator(result, None)
        except asyncio.CancelledError as error:
            return Raised((tup,), self.stray(error))
        except Exception as error:
            return Raised((tup,), error)
        self.done(tup, out)
        await self.outbox.room()
        return None

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
            if kind is ResultKind.CLASS:
                self._kinds.check_class(result)
            self._emit(tup, result, out)

    async def _drain(
        self, tup: AnyTuple, values: Iterator[object], out: BoltCollector, context: Context | None
    ) -> None:
        try:
            while True:
                value = next(values, END) if context is None else context.run(next, values, END)
                if value is END:
                    return
                self._emit(tup, value, out)
                await self.outbox.room()
        finally:
            self._end_generator(values, context)

    def _end_generator(self, result: object, context: Context | None) -> None:
        """Have a generator that was cut short run its ``finally`` now, and not when the garbage collector comes."""
        if type(result) is not GeneratorType:
            return
        generator = cast("GeneratorType[object, object, object]", result)
        try:
            generator.close() if context is None else context.run(generator.close)
        except Exception as error:
            self.wiring.check_cancelled(error)
            raise

    async def _drain_async(
        self, tup: AnyTuple, values: AsyncIterator[object], out: BoltCollector, context: Context | None
    ) -> None:
        try:
            while (value := await self.awaited(anext(values, END), context)) is not END:
                self._emit(tup, value, out)
                await self.outbox.room()
        finally:
            # As _end_generator does.
            close = getattr(values, "aclose", None)
            if close is not None:
                await self.awaited(close(), context)

    def _emit(self, tup: AnyTuple, value: object, out: BoltCollector) -> None:
        if type(value) is To:
            to = cast("To[object]", value)
            out.emit(to.value, anchors=tup, stream=to.stream, task=to.task)
        else:
            out.emit(value, anchors=tup)


class UndeclaredOutlet(Outlet):
    """Stands for the default stream of a component that does not declare one."""

    __slots__ = ("_outlets", "_plan")

    def __init__(self, plan: TaskPlan, outlets: Mapping[str, Outlet]) -> None:
        super().__init__(Source(plan.component, DEFAULT_STREAM, plan.task, schema_of(None)))
        self._plan = plan
        self._outlets = outlets

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        raise undeclared(self._outlets, DEFAULT_STREAM, self._plan)


class InstanceWorker(Worker):
    """The base of the workers for bolt classes."""

    def __init__(self, wiring: Wiring, bolt: Bolt[Any, Any] | BasicBolt[Any, Any]) -> None:
        super().__init__(wiring)
        self.bolt = bolt

    @property
    def restartable(self) -> bool:
        return self.bolt.restartable

    def method(self, name: str) -> Method | None:
        # Of the class, as ``BoltBase`` has it: what the base does by itself need not be called.
        own = getattr(type(self.bolt), name, None)
        return None if own is getattr(BoltBase, name, None) else cast("Method", getattr(self.bolt, name))

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        return self.bolt.prepare(context)

    def cleanup(self) -> Awaitable[None] | None:
        return self.bolt.cleanup()

    def call(self, tup: AnyTuple, out: BoltCollector) -> object:
        result = self.bolt.execute(tup, out)
        if isawaitable(result):
            return result
        self._check(result)
        return None

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        context = own_context(tup)
        out.default_anchors = self.anchors_for(tup)
        result: object = (
            self.bolt.execute(tup, out) if context is None else context.run(self.bolt.execute, tup, out)
        )
        if isawaitable(result):
            result = await self.awaited(result, context)
        self._check(result)

    def _check(self, result: object) -> None:
        if result is not None:
            raise dropped(self.plan, "execute", result)

    def begin(self, tup: AnyTuple, out: BoltCollector) -> Awaitable[object] | None:
        out.default_anchors = self.anchors_for(tup)
        result: object = self.bolt.execute(tup, out)
        return result if result is not None and isawaitable(result) else self.end(tup, result, out)

    def end(self, tup: AnyTuple, value: object, out: BoltCollector) -> Awaitable[object] | None:
        self._check(value)
        self.done(tup, out)
        return None

    def returned(self, tup: AnyTuple, result: object) -> Raised | Pause:
        """Deal with a result of ``execute`` that is not None: await it, or refuse it as if the call had raised."""
        if self.quick and type(result) is CoroutineType:
            return AwaitedCall(self, tup, cast("CoroutineType[Any, Any, object]", result))
        if isawaitable(result):
            return self._rest(tup, result)
        return Raised((tup,), dropped(self.plan, "execute", result))

    async def _rest(self, tup: AnyTuple, result: Awaitable[None]) -> Raised | None:
        try:
            self._check(await self.awaited(result, None))
        except Exception as error:
            return raised_on(tup, error)
        self.done(tup, self.out)
        await self.outbox.room()
        return None


class BasicWorker(InstanceWorker):
    """``BasicBolt``: anchored to the input, acked on return (law B1)."""

    quick = True

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        execute, out, outbox = self.bolt.execute, self.out, self.outbox
        crowded = outbox.crowded
        for tup in tuples:
            lineage = tup.lineage
            if lineage is not PLAIN and lineage.context is not None:
                return self.carefully(tup)
            out.default_anchors = tup
            try:
                result = execute(tup, out)
            except Exception as error:
                return raised_on(tup, error)
            else:
                if result is not None:
                    return self.returned(tup, result)
                if tup.state == OPEN:  # else user code has settled it by ``out.ack`` or ``out.fail``
                    tup.state = ACKED
                    root = tup.root
                    if not root:
                        self.ack_rootless(tup)
                    elif root == outbox.run:
                        outbox.delta ^= tup.edge
                    else:
                        outbox.begin_run(root, tup.edge)
                if crowded:
                    return outbox.room()
        return None


class BoltWorker(InstanceWorker):
    """``Bolt``: anchors and acks by itself, and may hold inputs (law B2)."""

    auto_acks = False
    quick = True

    def __init__(self, wiring: Wiring, bolt: Bolt[Any, Any]) -> None:
        super().__init__(wiring, bolt)
        self._held = wiring.account.held

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        execute, out, outbox = self.bolt.execute, self.out, self.outbox
        held, crowded = self._held, outbox.crowded
        for tup in tuples:
            lineage = tup.lineage
            if lineage is not PLAIN and lineage.context is not None:
                return self.carefully(tup)
            try:
                result = execute(tup, out)
            except Exception as error:
                return raised_on(tup, error)
            else:
                if result is not None:
                    return self.returned(tup, result)
                if tup.state == OPEN:
                    # Noted only now: what is acked in its call, as most inputs are, needs no entry.
                    tup.state = HELD
                    held[tup] = None
                if crowded:
                    return outbox.room()
        return None

    def anchors_for(self, tup: AnyTuple) -> Anchors:
        return ()  # a ``Bolt`` names the anchors itself (law B2)

    def done(self, tup: AnyTuple, out: BoltCollector) -> None:
        if tup.state == OPEN:
            tup.state = HELD
            self._held[tup] = None
