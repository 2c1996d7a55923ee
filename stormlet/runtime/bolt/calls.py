"""Concurrent calls: a bolt task with ``concurrency`` above 1 (law B3).

Theory of operation
-------------------
*Callers* are coroutines, each with an asyncio task of its own, which take inputs in their order and call user code with
one after another. There are as many as there are inputs to be called with, at most ``concurrency``; a caller that finds
none ends, and so none ever waits for work. The task's own coroutine starts them, and makes the pending calls; while it
has any to make, no caller takes an input (law B5).

User code must not notice that it shares a caller with the calls before it. So a caller makes no further call where one
has left something behind that would reach the next one: context variables, or a cancellation of its asyncio task.
Another caller takes its place, as one does where somebody else cancels a call, or a call has the task die.

What a call needs is made when it needs it: a collector if the worker hands one to user code, and the engine's own
coroutines around that of the user if the input must go the careful way.
"""

from __future__ import annotations

import asyncio
from abc import ABCMeta
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import Context, copy_context
from functools import partial
from types import CoroutineType
from typing import Any, cast

from stormlet.core.life import TaskState
from stormlet.core.tuples import HELD, OPEN
from stormlet.errors import StrayCancellation
from stormlet.runtime.bolt.batches import BatchCancelled
from stormlet.runtime.bolt.observer import ExecutionObserver
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.bolt.worker import Raised, Worker, raised_on
from stormlet.runtime.occupation import AWAITING, IDLE
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector

WORKING = TaskState.WORKING


NEW, QUICK, CAREFUL, PAUSED, TURN = range(5)
"""The states of a caller: before its first step; in a call, of a quick worker or of any; between two calls, where it
waits for room, or for its turn in a later iteration of the loop."""


class Caller:
    """A coroutine that calls user code with one input after another, beside others that do.

    An object rather than an ``async def``: it hands each step to what it awaits, and shows that in its place. So
    nothing else is stepped between the asyncio task and the user's coroutine.
    """

    def __init__(self, task: ConcurrentBoltTask) -> None:
        self.tup: AnyTuple | None = None
        """The input that user code was called with, until the call is over."""
        self._task = task
        self._worker = task.worker
        self._out = task.out
        self._outbox = task.outbox
        self._life = task.life
        self._slices = task.slices
        self._times = task.times
        self._clock = task.engine.clock
        self._coroutine: asyncio.Task[Any] | None = None
        self._state = NEW
        self._in_slice = False
        self._awaited: Coroutine[Any, Any, object] | None = None
        self._began = 0.0

    @property
    def is_free(self) -> bool:
        """True if it takes the next input as soon as it has its turn: it is in no call, and waits for no room."""
        return self.tup is None and self._state != PAUSED

    def use(self, worker: Worker) -> None:
        """Call user code by this worker from the next input on; it is around the old one, or within."""
        self._worker = worker

    def send(self, value: None, /) -> Any:
        """As a coroutine does."""
        self._in_slice = False
        while True:
            gives: object = None
            failed = False
            if self._awaited is not None:
                try:
                    return self._awaited.send(None)
                except StopIteration as stop:
                    gives = stop.value
                except BaseException as error:
                    self._fail(error)
                    failed = True
            if not self._go_on(gives, failed):
                raise StopIteration

    def throw(self, *error: Any) -> Any:
        """As a coroutine does."""
        self._in_slice = False
        gives: object = None
        failed = False
        try:
            if self._awaited is None:
                raise error[0]
            return self._awaited.throw(*error)
        except StopIteration as stop:
            gives = stop.value
        except BaseException as raised:
            self._fail(raised)
            failed = True
        if not self._go_on(gives, failed):
            raise StopIteration
        return self.send(None)

    def close(self) -> None:
        """As a coroutine does."""
        if self._awaited is not None:
            self._awaited.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise NotImplementedError("it is for an asyncio task alone")

    def __getattr__(self, name: str) -> Any:
        # What asyncio shows of a task (cr_frame, cr_code, ...) is that of the user's coroutine.
        return getattr(self._awaited, name)

    def _go_on(self, gives: object, failed: bool) -> bool:
        """Find what is to be awaited next. Returns False if there is nothing."""
        state, self._awaited = self._state, None
        if state == QUICK and not failed:
            self._continue_call(gives)
        elif state in (QUICK, CAREFUL):
            self._end_call()
        else:
            self._began = self._clock()
            if state == NEW:
                self._coroutine = asyncio.current_task()
        has_turn = state == TURN
        while self._awaited is None:
            if not (has_turn or self._slices.go_on(self._began, self._in_slice)):
                self._outbox.occupation.switch(IDLE)
                self._awaited, self._state = self._slices.turn(), TURN
                return True
            self._in_slice, has_turn = True, False
            if self._leaves_traces() or not self._begin_call():
                return False
        return True

    def _begin_call(self) -> bool:
        """Call user code with the next input. Returns False if there is none for now."""
        task, worker = self._task, self._worker
        self.tup = tup = task.next_input()
        if tup is None:
            return False
        self._outbox.occupation.switch(AWAITING)
        if worker.collects:
            self._out = task.out.for_call()
        if not worker.goes_quickly(tup):
            self._state = CAREFUL
            self._awaited = self._life.checked(task.execute_carefully(tup, self._out))
            return True
        self._state = QUICK
        try:
            self._await(worker.begin(tup, self._out))
        except BaseException as error:
            self._fail(error)
        if self._awaited is None:
            self._end_call()
        return True

    def _continue_call(self, gives: object) -> None:
        """Go on with a call whose await gave this."""
        if self._life.calls_cancelled:  # which user code has swallowed (law C5)
            raise asyncio.CancelledError
        tup = self.tup
        assert tup is not None, "it is in a call"
        try:
            self._await(self._worker.end(tup, gives, self._out))
        except BaseException as error:
            self._fail(error)
        if self._awaited is None:
            self._end_call()

    def _await(self, awaitable: Awaitable[object] | None) -> None:
        if awaitable is not None:
            self._awaited = awaitable if type(awaitable) is CoroutineType else _awaiting(awaitable)

    def _fail(self, error: BaseException) -> None:
        """Fail the input of a quick call that has raised. Raises what the caller ends with."""
        tup = self.tup
        if self._state != QUICK or tup is None or not isinstance(error, Exception | asyncio.CancelledError):
            raise error
        if isinstance(error, asyncio.CancelledError):
            raised = Raised((tup,), self._worker.stray(error))
        else:
            self._life.check_cancelled(error)
            raised = raised_on(tup, error)
        try:
            self._task.act_on(raised)
        except StopIteration as fatal:  # which would look like the end of the caller
            raise RuntimeError("user code raised StopIteration") from fatal

    def _end_call(self) -> None:
        tup, now = self.tup, self._clock()
        self._times.executed(now - self._began, 1)
        if self._times.follows:
            self._times.follow(tup, now - self._began)
        if self._worker.collects:
            self._out.default_anchors = ()
        self.tup = None
        self._began = now
        if self._outbox.crowded:
            self._awaited, self._state = self._outbox.room(), PAUSED

    def _leaves_traces(self) -> bool:
        """True if a call has left something that the next one would find."""
        if self._coroutine is not None and self._coroutine.cancelling():
            return True
        return not is_same(copy_context(), self._task.context_of_calls)


cast("ABCMeta", Coroutine).register(Caller)  # compiled, it can have no base in Python


async def _awaiting(awaitable: Awaitable[object]) -> object:
    return await awaitable


def is_same(context: Context, other: Context) -> bool:
    """True if the same variables have the very same values."""
    if len(context) != len(other):
        return False
    # Not by ``==``, which asks values whether they are equal.
    return not other or all(context.get(variable, context) is value for variable, value in other.items())


class ConcurrentBoltTask(BoltTask):
    """A task of a bolt that makes several calls at a time."""

    def __init__(self, *arguments: Any, concurrency: int, **options: Any) -> None:
        """The other arguments are those of :class:`~stormlet.runtime.bolt.task.BoltTask`."""
        super().__init__(*arguments, places=concurrency, **options)
        # Calls are awaited at any time, so that no slice of theirs could be trusted to flush.
        self.outbox.sliced = False
        self.life.has_calls = True
        self.concurrency = concurrency
        self.context_of_calls = copy_context()
        """The context variables that each call begins with: those of the task's own coroutine."""
        self._callers: dict[asyncio.Task[None], Caller] = {}
        # A call that has raised is no running call any more, but its input is open until the task has died.
        self._fatal_calls: list[AnyTuple] = []

    def observe(self, observer: ExecutionObserver | None) -> None:
        super().observe(observer)
        for caller in self._callers.values():  # which under load live long
            caller.use(self.worker)

    @property
    def executed(self) -> int:
        return self._executed_before + self._intake.passed - len(self._called_with())

    def _called_with(self) -> Sequence[AnyTuple]:
        return [caller.tup for caller in self._callers.values() if caller.tup is not None]

    def calls(self) -> Mapping[AnyTuple, asyncio.Task[None] | None]:
        calls: dict[AnyTuple, asyncio.Task[None] | None] = dict.fromkeys(self._fatal_calls)
        calls.update((caller.tup, call) for call, caller in self._callers.items() if caller.tup is not None)
        return {tup: call for tup, call in calls.items() if tup.state == OPEN}

    @property
    def concurrent_calls(self) -> Sequence[asyncio.Task[None]]:
        """The coroutines of calls that run beside each other (law B3)."""
        return list(self._callers)

    def _in_hand(self) -> Sequence[AnyTuple]:
        in_hand = dict.fromkeys((*self._intake.all, *self._called_with()))
        return [tup for tup in in_hand if tup.state == OPEN]

    def _handed(self) -> Sequence[AnyTuple]:
        return list(dict.fromkeys((*super()._handed(), *self._fatal_calls, *self._called_with())))

    async def _work(self) -> None:
        if self._pending:
            await self._make_pending_calls()
        self.context_of_calls = copy_context()
        self._start_callers()

    def _has_work(self) -> bool:
        return bool(self._pending)  # inputs are the callers'

    def next_input(self) -> AnyTuple | None:
        """Take the next input; None if no call may begin now."""
        if self._pending or self.life.state is not WORKING:
            return None
        self.user.method = "execute"
        tup = next(self._intake.rest, None)
        return self._next_of_batch() if tup is None else tup

    def _next_of_batch(self) -> AnyTuple | None:
        """Take another batch, and the first of its inputs; None if nothing is queued."""
        intake = self._intake
        self._executed_before += len(intake.all)
        intake.all = self.inbox.take() if self.inbox.items else []
        intake.rest = iter(intake.all)
        if intake.all and self._resets is not None:
            self._resets.arm()
        if len(intake.all) > 1 and len(self._callers) < self.concurrency:
            # Some may have come since callers were started, to an inbox that was not empty, and so woke nobody. Not in
            # this step: where tasks begin eagerly, it is one of the step that starts callers.
            self.loop.call_soon(self.guarded, self._start_callers)
        return next(intake.rest, None)

    def _start_callers(self) -> None:
        """Start as many callers as there are inputs that none of them has, at most ``concurrency`` in all."""
        room = self.concurrency - len(self._callers)
        if room <= 0 or self._pending or self.life.state is not WORKING:
            return
        queued = self._intake.left + len(self.inbox.items)
        free = sum(caller.is_free for caller in self._callers.values())
        for _ in range(min(room, queued - free)):
            caller = Caller(self)
            coroutine = cast("Coroutine[Any, Any, None]", caller)
            call = self.context_of_calls.run(self.spawn, coroutine, f"{self.name} execute")
            self.activity.begin()  # now, not when it runs: in between the run might look quiescent
            self._callers[call] = caller
            call.add_done_callback(partial(self.guarded, self._ended))

    async def execute_carefully(self, tup: AnyTuple, out: BoltCollector) -> None:
        """Make a call in any circumstances, and act on its exception."""
        try:
            raised = await self.worker.execute(tup, out)
        except BatchCancelled as error:
            cancelled = error
        else:
            if raised is not None:
                self.act_on(raised)
            return
        if not self._engine_cancels:
            self._fail_cancelled(cancelled.members)
        raise cancelled

    def _ended(self, call: asyncio.Task[None]) -> None:
        """A caller has ended; by an exception, where it has an input."""
        tup = self._callers.pop(call).tup
        if call.cancelled():
            self._call_cancelled(tup)
        elif (error := call.exception()) is not None:
            self._call_raised(tup, error)
        self._start_callers()
        self.activity.end()

    def _call_cancelled(self, tup: AnyTuple | None) -> None:
        """Unless the engine did that, the call has died of it (law N3)."""
        if tup is None:
            return
        if self._engine_cancels:
            self._executed_before -= 1  # the intake counts it as executed, which it is not
            return
        try:
            self._fail_cancelled((tup,))
        except Exception as error:
            self._call_raised(tup, error)

    def _fail_cancelled(self, tups: Sequence[AnyTuple]) -> None:
        if any(tup.state <= HELD for tup in tups):
            self.act_on(Raised(tups, StrayCancellation("somebody else has cancelled the call")))

    def _call_raised(self, tup: AnyTuple | None, error: BaseException) -> None:
        if tup is not None:
            self._fatal_calls.append(tup)
        if isinstance(error, Exception):
            self.die(error)
        else:
            self.crash(error)

    def lose(self, error: Exception) -> None:
        super().lose(error)
        self._fatal_calls.clear()

    async def let_go(self) -> None:
        calls = [call for call, caller in self._callers.items() if caller.tup is not None]
        await self._end_calls()
        # ``lose`` has counted their inputs as failed, and the acked ones are those executed less those failed.
        self._executed_before += sum(call.cancelled() for call in calls)
        await self._clean_up()


def bolt_task_of(concurrency: int) -> Callable[..., BoltTask]:
    """Return what makes the task of a bolt with so many calls at a time."""
    return BoltTask if concurrency == 1 else partial(ConcurrentBoltTask, concurrency=concurrency)
