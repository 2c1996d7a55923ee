"""``executor="thread"``: user code that blocks runs in threads of its own (law B9).

A slice of tuples is handed over at once, because one hop to a thread and back costs as much as executing
dozens of tuples. In the thread, a *recorder* stands in for the collector; what it recorded is done on the
loop afterwards.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar, cast

import msgspec

from stormlet.core.tuples import Tuple
from stormlet.errors import InvalidTopology
from stormlet.model.components import DEFAULT_STREAM, BatchBolt, TaskContext, To
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Wiring, Worker
from stormlet.runtime.occupation import IN_THREAD
from stormlet.runtime.slices import Pace
from stormlet.runtime.tracing import traced_execution
from stormlet.runtime.usercode import dropped, stray
from stormlet.runtime.wire.collector import UNSAID, Anchors, AnyTuple, BoltCollector, failed
from stormlet.runtime.wire.loop_thread import called_elsewhere

R = TypeVar("R")

SHORT, LONG = 0.005, 0.02
"""Seconds between which the time of one hand-over is kept."""
MOST_TUPLES = 1024

UserMethod = Callable[[], Awaitable[None] | None]
Operation = Callable[[BoltCollector], object]


class Recorder:
    """The collector of a bolt whose code runs in threads.

    Within a call it remembers what is to be done on the loop; ``emit`` returns no task ids then, for none is
    chosen yet. Between calls it is the task's own collector, on the loop's thread; from any other thread only
    the ``_threadsafe`` methods will do.
    """

    def __init__(self, out: BoltCollector, plan: TaskPlan) -> None:
        self._out = out
        self._plan = plan
        # Concurrent calls run in several threads, and each has operations of its own.
        self._calls = threading.local()
        self._loop_thread = threading.get_ident()
        self.emit_threadsafe = out.emit_threadsafe
        self.ack_threadsafe = out.ack_threadsafe
        self.fail_threadsafe = out.fail_threadsafe

    def emit(
        self,
        value: object,
        *,
        anchors: Anchors | None = UNSAID,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
    ) -> tuple[int, ...]:
        """Emit on the loop, when the call is over."""
        return self._do("emit", lambda out: out.emit(value, anchors=anchors, stream=stream, task=task)) or ()

    def ack(self, tup: Tuple[Any]) -> None:
        """Ack on the loop."""
        self._do("ack", lambda out: out.ack(tup))

    def fail(
        self,
        tup: Tuple[Any],
        reason: str = "",
        *,
        exception: BaseException | None = None,
        permanent: bool = False,
    ) -> None:
        """Fail on the loop."""
        # What is wrong with the arguments must raise at the call, not on the loop, where nobody could tell why.
        failed(self._plan, reason, exception, permanent=permanent)
        self._do("fail", lambda out: out.fail(tup, reason, exception=exception, permanent=permanent))

    def reset_timeout(self, tup: Tuple[Any]) -> None:
        """Reset the timeout on the loop."""
        self._do("reset_timeout", lambda out: out.reset_timeout(tup))

    def record(self, call: Callable[[], object]) -> Recording:
        """Call user code in this thread, and say what is to be done on the loop."""
        operations: list[Operation] = []
        self._calls.operations = operations
        try:
            call()
        except asyncio.CancelledError as error:
            return Recording(operations, stray(error))
        except Exception as error:
            return Recording(operations, error)
        finally:
            self._calls.operations = None
        return Recording(operations, None)

    def _do(self, method: str, operation: Callable[[BoltCollector], R]) -> R | None:
        operations: list[Operation] | None = getattr(self._calls, "operations", None)
        if operations is not None:
            # Done on the loop when the call is over, so that user code can neither race nor wait for it.
            operations.append(operation)
            return None
        if threading.get_ident() != self._loop_thread:
            raise called_elsewhere(self._plan, method)
        return operation(self._out)


class Recording(msgspec.Struct, frozen=True):
    """The requests of one call of user code, and the exception it raised."""

    operations: Sequence[Operation]
    error: Exception | None

    def apply(self, out: BoltCollector) -> None:
        """Do it all; then raise what user code raised."""
        for operation in self.operations:
            operation(out)
        if self.error is not None:
            raise self.error


class Threads:
    """The threads of one bolt task: one, or as many as it has concurrent calls."""

    def __init__(self, wiring: Wiring, threads: int) -> None:
        self._running: dict[int, Sequence[AnyTuple]] = {}
        self._calls: dict[Future[Any], None] = {}
        """Those that are not over; nobody awaits one that was cancelled, whose thread goes on."""
        self._loop = wiring.loop
        self._context = wiring.context
        self._outbox = wiring.outbox
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=wiring.plan.name)

    def running(self) -> Mapping[int, Sequence[AnyTuple]]:
        """Those that run user code now, by ident, each with the inputs that it was handed."""
        return dict(self._running)  # a copy, as threads come and go while it is looked at

    async def call(self, function: Callable[[], R], inputs: Sequence[AnyTuple] = ()) -> R:
        """Call in a thread, in the topology's context variables; what is unsent leaves meanwhile (law F1)."""
        self._outbox.suspend()
        before = self._outbox.occupation.switch(IN_THREAD)
        try:
            # A context can be entered once at a time, and calls of several threads overlap.
            run = self._context.copy().run
            call = self._pool.submit(run, partial(self._noted, function, inputs))
            self._calls[call] = None
            call.add_done_callback(self._calls.pop)
            return await asyncio.wrap_future(call, loop=self._loop)
        finally:
            self._outbox.occupation.switch(before)
            self._outbox.enter()

    def _noted(self, function: Callable[[], R], inputs: Sequence[AnyTuple]) -> R:
        # The ident is how an explanation finds the stack of a thread, and the inputs whose thread it is.
        ident = threading.get_ident()
        self._running[ident] = inputs
        try:
            return function()
        finally:
            del self._running[ident]

    async def prepare(self, method: UserMethod) -> None:
        """Call ``prepare`` in a thread; the threads end if it fails."""
        try:
            await self.call(partial(_finished, method))
        except BaseException:
            # No cleanup follows. To wait for a thread that hangs would hold the loop.
            self._pool.shutdown(wait=False)
            raise

    async def cleanup(self, method: UserMethod) -> None:
        """Call ``cleanup`` in a thread, after all other calls; then the threads end."""
        try:
            await self.call(partial(_after_all, list(self._calls), method))
        finally:
            self._pool.shutdown(wait=False)


class ThreadWorker(Worker):
    """Has another worker's user code run in threads."""

    def __init__(self, inner: Worker, threads: int) -> None:
        wiring = inner.wiring
        super().__init__(wiring)
        self.auto_acks = inner.auto_acks
        self.chunk = 1  # until it is known how long one takes: a thread cannot be interrupted
        self._inner = inner
        self._recorder = Recorder(wiring.out, wiring.plan)
        self._threads = Threads(wiring, threads)
        self._clock = wiring.clock
        self._slices = wiring.slices
        self._pace = Pace()
        self._recorded: deque[tuple[AnyTuple, Recording]] = deque()
        """Results of the last hand-over of a chunk that the loop has not applied yet."""

    @property
    def restartable(self) -> bool:
        return self._inner.restartable

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        return self._threads.running()

    @property
    def unfinished(self) -> bool:
        return bool(self._recorded)

    def work(self, tuples: Iterable[AnyTuple]) -> Pause | None:
        if self._recorded:  # one of them has raised, and the task lives on
            return self._apply_all()
        tups = list(tuples)
        return self._hand_over(tups) if tups else None

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        (recording,) = await self._executed([tup])
        self._slices.begin()
        return self._apply(tup, recording, out)

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        return self._threads.prepare(partial(self._inner.prepare, context))

    async def cleanup(self) -> None:
        await self._threads.cleanup(self._inner.cleanup)

    def method(self, name: str) -> Method | None:
        method = self._inner.method(name)
        return None if method is None else partial(self._call_method, name, method)

    async def _call_method(self, name: str, method: Method, out: BoltCollector) -> None:
        call = partial(_emitted, self.plan, name, partial(method, self._recorder))
        recording = await self._threads.call(partial(self._recorder.record, call))
        recording.apply(out)

    async def _hand_over(self, tups: list[AnyTuple]) -> Raised | None:
        self.calling = len(tups)
        recordings = await self._executed(tups)
        self._slices.begin()
        self._recorded.extend(zip(tups, recordings, strict=True))
        return await self._apply_all()

    async def _executed(self, tups: list[AnyTuple]) -> list[Recording]:
        began = self._clock()
        recordings = await self._threads.call(partial(self._execute_all, tups), tups)
        self._adapt(self._clock() - began)
        return recordings

    async def _apply_all(self) -> Raised | None:
        """Do what was recorded, input by input, up to one that has raised: the task may die of it, and the others
        with it."""
        recorded = self._recorded
        while recorded:
            raised = self._apply(*recorded.popleft(), self.out)
            self.calling = len(recorded)
            if raised is not None:
                return raised
            await self._pause_between()
        return None

    async def _pause_between(self) -> None:
        await self.outbox.room()
        if self._slices.spent(self._pace, 1):
            self.outbox.leave()
            await self._slices.turn()
            self.outbox.enter()

    def _apply(self, tup: AnyTuple, recording: Recording, out: BoltCollector) -> Raised | None:
        out.default_anchors = self._inner.anchors_for(tup)
        try:
            recording.apply(out)
        except Exception as error:
            return Raised((tup,), error)
        self._inner.done(tup, out)
        return None

    def _adapt(self, seconds: float) -> None:
        # A hop costs as much as dozens of tuples; one that is long delays what its tuples emit, and the end.
        if seconds < SHORT:
            self.chunk = min((self.chunk or 1) * 2, MOST_TUPLES)
        elif seconds > LONG:
            self.chunk = max((self.chunk or 1) // 2, 1)

    def _execute_all(self, tups: Sequence[AnyTuple]) -> list[Recording]:
        return [self._execute_one(tup) for tup in tups]

    def _execute_one(self, tup: AnyTuple) -> Recording:
        if not tup.lineage.trace:
            return self._recorded_call(tup)
        execution = traced_execution(self.plan, tup)
        recording = self._recorded_call(tup)
        execution.over(recording.error, emits_now=True)
        return recording

    def _recorded_call(self, tup: AnyTuple) -> Recording:
        # What the message brought takes the place of the topology's context, which the thread runs in (law B10).
        context = tup.lineage.context
        call = partial(_call_and_emit, self._inner, tup, self._recorder)
        return self._recorder.record(call if context is None else partial(context.copy().run, call))


class ThreadedBatchBolt(BatchBolt[Any, Any]):
    """A ``BatchBolt`` whose batches are executed in a thread; they are collected on the loop."""

    def __init__(self, bolt: BatchBolt[Any, Any], wiring: Wiring, threads: int) -> None:
        self._bolt = bolt
        self._plan = wiring.plan
        self._threads = Threads(wiring, threads)
        self._recorder = Recorder(wiring.out, wiring.plan)
        self._copy_bounds()
        self.resets_timeouts = bolt.resets_timeouts
        self.restartable = bolt.restartable

    def key(self, value: object) -> Any:
        return self._bolt.key(value)

    def weight(self, value: object) -> int:
        return self._bolt.weight(value)

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        """The threads that run user code now, by ident, each with the batch that it was handed."""
        return self._threads.running()

    async def prepare(self, context: TaskContext) -> None:
        await self._threads.prepare(partial(self._bolt.prepare, context))
        self._copy_bounds()  # which it may have set

    def _copy_bounds(self) -> None:
        self.size, self.within = self._bolt.size, self._bolt.within

    async def execute_batch(self, tups: Sequence[AnyTuple], out: Any) -> None:
        await self._record("execute_batch", partial(self._bolt.execute_batch, tups), out, tups)

    async def tick(self, out: Any) -> None:
        await self._record("tick", self._bolt.tick, out)

    async def flush(self, out: Any) -> None:
        await self._record("flush", self._bolt.flush, out)

    async def finish(self, out: Any) -> None:
        await self._record("finish", self._bolt.finish, out)

    async def cleanup(self) -> None:
        await self._threads.cleanup(self._bolt.cleanup)

    async def _record(
        self, name: str, method: Method, out: BoltCollector, inputs: Sequence[AnyTuple] = ()
    ) -> None:
        call = partial(_emitted, self._plan, name, partial(method, self._recorder))
        recording = await self._threads.call(partial(self._recorder.record, call), inputs)
        recording.apply(out)


def _call_and_emit(worker: Worker, tup: AnyTuple, recorder: Recorder) -> None:
    result = worker.call(tup, cast("BoltCollector", recorder))
    if result is None:
        return
    if isawaitable(result) or isinstance(result, AsyncIterator):
        raise _asynchronous(cast("object", result))
    for value in cast("Iterator[object]", result) if isinstance(result, Iterator) else (result,):
        if type(value) is To:
            to = cast("To[object]", value)
            recorder.emit(to.value, stream=to.stream, task=to.task)
        else:
            recorder.emit(value)


def _after_all(calls: Sequence[Future[Any]], method: UserMethod) -> None:
    wait(calls)
    _finished(method)


def _finished(call: UserMethod) -> None:
    result = call()
    if isawaitable(result):
        raise _asynchronous(result)


def _emitted(plan: TaskPlan, name: str, call: UserMethod) -> None:
    result: object = call()
    if isawaitable(result):
        raise _asynchronous(result)
    if result is not None:
        raise dropped(plan, name, result)


def _asynchronous(result: object) -> InvalidTopology:
    close = getattr(result, "close", None)  # a coroutine that nobody awaits would warn
    if close is not None:
        close()
    return InvalidTopology(
        'asynchronous code cannot run with executor="thread"; use concurrency= on the loop instead'
    )
