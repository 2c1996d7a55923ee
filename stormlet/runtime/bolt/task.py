"""The bolt tasks: take a batch from the inbox, have it executed in slices, flush, sleep.

Theory of operation
-------------------
A bolt task has two kinds of work: inputs, which it takes from its inbox as a batch, and pending calls of ``tick``,
``flush``, ``finish`` and ``due``, which it makes between two inputs (law B5). A batch is executed in one of two ways:

- *One input at a time*, in the task's own coroutine. The worker goes through a chunk, and returns where it must pause
  or where user code has raised; the task awaits the one and acts on the other.
- *As concurrent calls* (law B3), in coroutines of their own: see :mod:`stormlet.runtime.bolt.calls`.

The task alone decides what an exception means (:meth:`BoltTask.act_on`): the inputs fail and the task goes on, or it
dies, as ``on_error`` says. An input is therefore always in a place where its death finds it: in the intake, among the
calls, among those that a fatal call had, or in the account of held inputs. All of these fail with TASK_LOST; what is
queued waits for the next instance (law L14).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from itertools import chain, islice
from typing import NoReturn

from msgspec.structs import replace

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.shortened import text_of
from stormlet.core.tuples import HELD, OPEN, unseen
from stormlet.errors import (
    BrokerGivenUp,
    KeyFunctionFailed,
    MistakenFactory,
    Reject,
    StateUnusable,
)
from stormlet.model.components import TaskContext
from stormlet.model.description import OnError
from stormlet.model.plan import TaskPlan
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.bolt.awaited_call import AwaitedCall
from stormlet.runtime.bolt.batches import TimeoutResets
from stormlet.runtime.bolt.call_times import CallTimes, Ticks
from stormlet.runtime.bolt.intake import Intake, PendingCalls
from stormlet.runtime.bolt.observer import ExecutionObserver
from stormlet.runtime.bolt.worker import Raised, Wiring, Worker
from stormlet.runtime.bolt.wrapped import observed
from stormlet.runtime.context import Engine
from stormlet.runtime.slices import Pace
from stormlet.runtime.task import Task
from stormlet.runtime.usercode import dropped, stray
from stormlet.runtime.wire.collector import Account, AnyTuple, BoltCollector
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet
from stormlet.runtime.wire.own_trees import OwnTrees

EMITTING = ("tick", "flush", "finish")
"""Methods that emit, and so may be thought to do so by returning a value."""
FATAL = (BrokerGivenUp, KeyFunctionFailed, MistakenFactory, StateUnusable)
"""Errors that are no fault of the input, whatever ``on_error`` says."""


class BoltTask(Task):
    """One task of a bolt."""

    concurrency = 1
    """The number of calls that it makes at a time."""

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        context: TaskContext,
        outbox: Outbox,
        *,
        make_inbox: Callable[[Callable[[], None]], Inbox],
        make_worker: Callable[[Wiring], Worker],
        make_out: Callable[..., BoltCollector] = BoltCollector,
        places: int = 1,
        on_error: OnError = "fail",
        timed: bool = True,
        own_trees: OwnTrees | None = None,
    ) -> None:
        super().__init__(plan, engine, context.config, outbox, places)
        self.context = context
        self.outbox = outbox
        self.outlets: dict[str, Outlet] = {}
        """By stream; filled when all tasks are made."""
        self.inbox = make_inbox(self.wake)
        self.account = Account()
        self.out = make_out(plan, engine.loop, outbox, self.outlets, self.account, own_trees=own_trees)
        if own_trees is not None:
            own_trees.in_call = self._is_executing
        self.flushed_after = -1
        """The ``progress`` when ``flush`` was last asked for."""
        self.finished_after = -1
        """The number of inputs that had been executed when ``finish`` was last asked for."""
        self._finishes = False
        self.ready: asyncio.Future[None] = engine.loop.create_future()
        """Done when ``prepare`` has returned."""
        self.on_error = on_error
        self._pace = Pace()
        self._pace_between = Pace()
        self._pending = PendingCalls(self.wake)
        self._intake = Intake()
        self._paused = False
        self._executed_before: int = 0
        self._errors = 0
        self._prepared = False
        self.ticks = Ticks(engine.loop.time)
        self._time = engine.clock
        self._resets: TimeoutResets | None = None
        self._make_worker = make_worker
        self._wiring = Wiring(
            plan,
            engine.loop,
            engine.clock,
            engine.context,
            engine.slices,
            outbox,
            self.outlets,
            self.out,
            self.account,
            self._pending,
            engine.activity,
            partial(engine.failures.raised, plan),
            timed,
            self.life.check_cancelled,
        )
        self.worker = make_worker(self._wiring)
        """The worker of the instance at work."""
        self.times = CallTimes(engine.clock, follows=not self.worker.auto_acks)

    @property
    def executed(self) -> int:
        """The number of inputs executed."""
        calling = self.worker.calling if self._paused else 0
        return self._executed_before + self._intake.passed - calling

    @property
    def progress(self) -> int:
        """Grows with every input that is executed or settled: a ``flush`` that has settled something may do
        more next time."""
        return self.executed + self.account.acked + self.account.failed

    @property
    def holds_inputs(self) -> bool:
        """True if it has inputs that ``execute`` returned from without settling them (law B8)."""
        return bool(self.account.held)

    def observe(self, observer: ExecutionObserver | None) -> None:
        """Notify an observer of executions from now on; None ends that."""
        # Around the worker while there is one, so that it costs nothing otherwise.
        self._wiring.observed.observer = observer
        self.worker = observed(self.worker, observer)

    @property
    def has_finished(self) -> bool:
        """True if it has been asked to ``finish`` since its last input, or has no ``finish`` to be called (law C2)."""
        return self.finished_after >= self.executed or not self._finishes

    def _is_executing(self) -> bool:
        return self.user.method == "execute"

    def forget_finish(self) -> None:
        """Have ``finish`` asked for again: what it has emitted belongs to an attempt that is forgotten (law X7)."""
        self.finished_after = -1

    def ask(self, name: str) -> None:
        """Have the user's ``tick``, ``flush`` or ``finish`` called between two inputs."""
        self._pending.request(name)

    @property
    def is_asked(self) -> bool:
        """True until what it was asked for has been called and has returned."""
        return bool(self._pending)

    def queue(self) -> Sequence[AnyTuple]:
        """The inputs that its user code has not been called with yet, in their order."""
        return [*self._intake.queued, *self.inbox.items]

    def calls(self) -> Mapping[AnyTuple, asyncio.Task[None] | None]:
        """The unsettled inputs that are with user code, and the coroutine that each call runs in; None for a call of
        which the task is about to die."""
        return {tup: self.coroutine for tup in self._intake.taken if tup.state == OPEN}

    @property
    def current(self) -> AnyTuple | None:
        """The input that was taken last; None between two batches."""
        return self._intake.last

    def threads(self) -> Sequence[int]:
        """The idents of the threads that run its user code now."""
        return list(self.worker.threads())

    def tuples(self) -> Iterable[AnyTuple]:
        """Every unsettled tuple that is here now: queued, in hand or held (law L14)."""
        return chain(list(self.inbox.items), self._in_hand(), unseen(list(self.account.held)))

    def _in_hand(self) -> Sequence[AnyTuple]:
        return [tup for tup in self._intake.all if tup.state == OPEN]

    def act_on(self, raised: Raised) -> None:
        """User code has raised: fail the inputs that are not settled and go on, or die of it (law B4)."""
        inputs, error = raised.inputs, self.worker.in_words(raised)
        self.user.method = "execute"
        if isinstance(error, FATAL) or self.on_error == "stop":
            # They fail with the run, which nothing tells the ackers one by one.
            self.account.failed += sum(tup.state <= HELD for tup in inputs)
            self._die_of(error)
        # User code may have settled some by itself before it raised; their outcome stands.
        unsettled = [tup for tup in inputs if tup.state <= HELD]
        rejected = isinstance(error, Reject)
        for tup in unsettled:
            self.out.fail(tup, text_of(error) if rejected else "", exception=error, permanent=rejected)
        self._errors += not unsettled
        roots = (root for tup in inputs for root in tup.roots)
        values = [tup.value for tup in inputs]
        self.engine.failures.raised(self.plan, "execute", error, values, roots, settled=not unsettled)
        if self.on_error == "restart" and not rejected:
            self.user.logged(error)  # else the death would log it again
            self._die_of(error)

    def executed_elsewhere(self, count: int, seconds: float, raised: Iterable[Raised]) -> None:
        """Note calls of its function with inputs that have not come by the inbox."""
        self._executed_before += count
        self.times.executed(seconds, count)
        for each in raised:
            self.act_on(each)

    def _die_of(self, error: Exception) -> NoReturn:
        # Only what the task dies of is noted: with every failed input in it, tracebacks would stay for ever.
        self.user.raised(error)
        raise error

    def statistics(self) -> TaskStatistics:
        """Counts since the start."""
        executed, failed = self.executed, self.account.failed
        counts = TaskStatistics(
            emitted=sum(outlet.emitted for outlet in self.outlets.values()),
            transferred=sum(outlet.transferred for outlet in self.outlets.values()),
            executed=executed,
            acked=executed - failed if self.worker.auto_acks else self.account.acked,
            failed=failed,
            pending=len(self.inbox.items) + len(self._in_hand()) + len(self.account.held),
            queued=len(self.inbox.items),
            errors=self._errors,
            restarts=self.restarts.count,
        )
        return self.with_shares(self.times.added_to(counts))

    def flush_outbox(self) -> None:
        self.outbox.leave()

    async def start(self) -> None:
        await self._prepare()
        self.ready.set_result(None)

    async def _prepare(self) -> None:
        # From before ``prepare`` on: what is queued while an instance gets ready would time out, and come twice.
        timeout = self.context.config.message_timeout
        if self.worker.resets_timeouts and timeout is not None:
            self._resets = TimeoutResets(self.loop, timeout, self.tuples, self.out.reset_timeout)
            self._resets.begin()
        try:
            await self._call_user("prepare", partial(self.worker.prepare, self.context))
        except BaseException:
            self._end_resets()  # no cleanup follows, and each failed restart would leave a timer
            raise
        self._prepared = True
        self._finishes = self.worker.method("finish") is not None

    def _end_resets(self) -> None:
        if self._resets is not None:
            self._resets.cancel()
            self._resets = None

    async def run(self) -> None:
        await self.outbox.room()  # for which the one that died may have been waiting (law B6)
        while True:
            self.life.check_cancelled()
            await self._work()
            self.outbox.leave()
            if not self._has_work():
                await self.sleep()

    def _has_work(self) -> bool:
        """Return True if an input or a call waits for this coroutine."""
        return bool(self._pending or self.inbox.items)

    async def _work(self) -> None:
        if self._pending:
            await self._make_pending_calls()
        intake, inbox = self._intake, self.inbox
        while intake.all or inbox.items:
            if not self.slices.begin(watched=False):
                await self._next_slice()
            if not intake.all:  # else a task that died has left some
                intake.all = inbox.take()  # with what has come while it waited for the slice
                intake.rest = iter(intake.all)
            if self._resets is not None:
                self._resets.arm()
            await self._execute_batch()
            self._executed_before += len(intake.all)
            intake.all = []

    async def _execute_batch(self) -> None:
        """Execute the batch in hand in the slice that has begun, and as many more as it takes (law F2)."""
        self.outbox.enter()
        rest, pace, times = self._intake.rest, self._pace, self.times
        left = self._intake.left
        unfinished = False
        began = self._time()
        # After a failure a worker may hold inputs that were executed, and whose outputs are not emitted yet. So it is
        # called again even if none is left, and nothing else is called before.
        while left or unfinished:
            before = left
            self.user.method = "execute"
            waited = self.outbox.waited
            size = self.worker.chunk or pace.chunk
            try:
                happened = self.worker.work(rest if left <= size else islice(rest, size))
            except asyncio.CancelledError as error:  # nothing was awaited: user code has raised it
                happened = Raised(() if self.current is None else (self.current,), stray(error))
            except BaseException:
                self.slices.watch()  # the task dies of it, and nobody asks whether that was all of the slice
                raise
            unfinished, call = False, None
            if happened is not None:
                self.slices.watch()  # something is about to be awaited, or the task to die
                self._paused = True
                call = self._prolonged(happened)
                try:
                    raised = happened if isinstance(happened, Raised) else await happened
                finally:
                    if call is not None and call.followers:
                        # All but the last call of a pause have come back at once; that one may have taken any time.
                        quick = before - self._intake.left - 1
                        times.executed(call.last_began - began, quick)
                        began, before = call.last_began, before - quick
                self._paused = False
                if raised is not None:
                    self.act_on(raised)
                    unfinished = self._paused = self.worker.unfinished
                    await (
                        self.outbox.room()
                    )  # what it emitted before it raised may have filled a queue (law B6)
            self.out.default_anchors = ()
            left = self._intake.left
            executed = before - left
            now = self._time()  # the end of this chunk, and the beginning of the next one
            # A wait for room says something of its consumers, not of this bolt.
            times.executed(now - began - (self.outbox.waited - waited), executed)
            if times.follows:
                times.follow(self.current, (now - began) / (executed or 1))
            began = now
            must_wait = call is not None and call.must_wait
            if must_wait or self.slices.spent(pace, executed, awaited=happened is not None, now=now):
                await self._next_slice()
                began = self._time()
            if self._pending and not unfinished:
                await self._make_pending_calls()
                began = self._time()

    def _prolonged(self, pause: object) -> AwaitedCall | None:
        """Have an awaited call go on with the inputs that are left; None if the pause is something else."""
        if type(pause) is not AwaitedCall:
            return None
        if self._intake.left:
            pause.continue_with(self.worker, self._intake.rest)
        return pause

    async def _next_slice(self) -> None:
        self.outbox.leave()
        await self.slices.turn()
        self.outbox.enter()

    @property
    def _engine_cancels(self) -> bool:
        return self.life.calls_cancelled or self.engine.host_leaves()

    async def _make_pending_calls(self) -> None:
        names = self._pending
        while names:
            name = names[0]
            method = self.worker.method(name)
            if method is None:
                names.popleft()
                continue
            if not self.slices.begin():
                await self._next_slice()
            self.out.default_anchors = ()
            self.outbox.enter()
            began = self.loop.time()
            await self._call_for_all(name, partial(method, self.out))
            self.times.look()
            if name == "tick":
                self.ticks.ticked(began)
            names.popleft()  # what asks for it again from here on must be heard
            await self.outbox.room()
            if self.slices.spent(self._pace_between, 1):
                await self._next_slice()

    async def _call_for_all(self, name: str, method: Callable[[], Awaitable[None] | None]) -> None:
        """Call a method again for as long as some of the inputs that it executes together have failed."""
        while True:
            try:
                await self._call_user(name, method)
                return
            except Raised as raised:
                failed = raised
            self.act_on(failed)  # out of the block: what users see is their own exception, without this one

    async def _call_user(self, name: str, method: Callable[[], Awaitable[None] | None]) -> None:
        self.user.method = name
        try:
            result: object = method()
            if isawaitable(result):
                result = await self.worker.awaited(result, None)
            if result is not None and name in EMITTING:
                raise dropped(self.plan, name, result)
        except Raised:  # of inputs, and so no reason to die
            raise
        except Exception as error:
            self.user.raised(error)
            raise

    @property
    def may_restart(self) -> bool:
        return self.on_error != "stop" and self.worker.restartable

    def lose(self, error: Exception) -> None:
        """Fail exactly what was handed to the instance that died: what is queued waits for the next one."""
        handed = self._handed()
        failure = Failure(
            FailureKind.TASK_LOST,
            self.plan.component,
            self.plan.task,
            exception=error,
            task_index=self.plan.index,
        )
        for tup in handed:
            if tup.state <= HELD:
                self.out.lose(tup, failure)
        self.account.held.clear()
        self._pending.clear()
        self.flushed_after = self.finished_after = -1
        self._paused = False
        self.out.default_anchors = ()

    async def let_go(self) -> None:
        await self._end_calls()
        await self._clean_up()

    def _handed(self) -> Sequence[AnyTuple]:
        return list(dict.fromkeys((*self._intake.taken, *self.account.held)))

    async def renew(self) -> None:
        self.user.method = "the constructor"
        self.out = self.out.for_next_instance()
        self._wiring = replace(self._wiring, out=self.out)
        self.worker = observed(self._make_worker(self._wiring), self._wiring.observed.observer)
        await self._prepare()

    async def stop(self) -> None:
        await self._end_calls()
        await self._clean_up()

    async def _end_calls(self) -> None:
        calls = list(self.concurrent_calls)
        # User code may swallow a cancellation, which comes only once; then its next await is cancelled (law C5).
        self.life.calls_cancelled = True
        for call in calls:
            call.cancel()
        while running := [call for call in calls if not call.done()]:
            try:
                await asyncio.wait(running)
            except asyncio.CancelledError as error:
                self.life.survived(error)  # another life may begin only when they are over
        self.life.calls_cancelled = False

    async def _clean_up(self) -> None:
        self.outbox.leave()
        self.out.threads.close()  # for which ``cleanup`` may wait
        self._end_resets()
        if not self._prepared:
            return
        self._prepared = False
        try:
            await self._call_user("cleanup", self.worker.cleanup)
        except asyncio.CancelledError as error:
            self.engine.failures.raised(self.plan, "cleanup", self.life.survived(error))
        except Exception as error:
            self.engine.failures.raised(self.plan, "cleanup", error)
        finally:
            self.outbox.leave()
