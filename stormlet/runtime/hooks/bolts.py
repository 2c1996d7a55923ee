"""Wrappers of a bolt's worker and of its collector, for hooks that hear of executions, acks and fails.

The worker executes its inputs one by one by the inner one, whose loops know nothing of hooks. An input that the inner
worker acks by itself is seen when its execution is over; any other ack comes by the collector, also that of an input
that was held. The times at which executions began are in one table, whose entry an outcome takes away: so each has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stormlet.core.tuples import ACKED
from stormlet.model.hooks import BoltAckInfo, BoltExecuteInfo, BoltFailInfo
from stormlet.runtime.bolt.threads import ThreadWorker
from stormlet.runtime.bolt.worker import Pause, Raised, Worker
from stormlet.runtime.bolt.wrapped import WrappedWorker
from stormlet.runtime.hooks.calls import TaskHooks
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector
from stormlet.runtime.wire.thread_calls import ThreadCalls


class Inputs:
    """The inputs that are with one bolt task, of which hooks hear."""

    def __init__(self, hooks: TaskHooks, clock: Callable[[], float]) -> None:
        self._hooks = hooks
        self._task = hooks.plan.task
        self._clock = clock
        self._began: dict[AnyTuple, float] = {}

    def begin(self, tup: AnyTuple) -> None:
        """Its execution begins."""
        self._began[tup] = self._clock()

    def executed(self, tup: AnyTuple, seconds: float) -> None:
        """Its execution has ended without an exception."""
        if tup.state == ACKED:  # perhaps by the worker alone
            self.acked(tup)
        self._hooks.call("bolt_execute", BoltExecuteInfo(tup, self._task, seconds))

    def acked(self, tup: AnyTuple) -> None:
        """It was acked, unless that is known."""
        began = self._began.pop(tup, None)
        if began is not None:
            self._hooks.call("bolt_ack", BoltAckInfo(tup, self._task, self._clock() - began))

    def failed(self, tup: AnyTuple) -> None:
        """It was failed, unless its outcome is known."""
        began = self._began.pop(tup, None)
        if began is not None:
            self._hooks.call("bolt_fail", BoltFailInfo(tup, self._task, self._clock() - began))


class HookedCollector(BoltCollector):
    """A collector of whose acks and fails hooks hear."""

    def __init__(self, inputs: Inputs, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._inputs = inputs
        self._arguments = arguments
        self._options = options

    def copied(self, threads: ThreadCalls | None) -> BoltCollector:
        return HookedCollector(self._inputs, *self._arguments, **{**self._options, "threads": threads})

    def ack(self, tup: AnyTuple) -> None:
        super().ack(tup)
        if tup.state == ACKED:  # else it was lost with its instance
            self._inputs.acked(tup)

    def fail(
        self,
        tup: AnyTuple,
        reason: str = "",
        *,
        exception: BaseException | None = None,
        permanent: bool = False,
    ) -> None:
        super().fail(tup, reason, exception=exception, permanent=permanent)
        self._inputs.failed(tup)

    def lose(self, tup: AnyTuple, failure: Any) -> None:
        super().lose(tup, failure)
        self._inputs.failed(tup)


class HookedWorker(WrappedWorker):
    """Around another worker, of whose executions hooks hear."""

    def __init__(self, inner: Worker, inputs: Inputs) -> None:
        super().__init__(inner)
        # A thread is handed one input at a time, as its task would not know when each of several was executed.
        self.chunk = 1 if isinstance(inner, ThreadWorker) else inner.chunk
        self._inputs = inputs
        self._clock = inner.wiring.clock

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        for tup in tuples:
            self._inputs.begin(tup)
            began, waited = self._clock(), self.outbox.waited
            happened = self.inner.work((tup,))
            if isinstance(happened, Raised):
                return happened
            if happened is not None:
                return self._rest(tup, happened, began, waited)
            self._inputs.executed(tup, self._clock() - began)
        return None

    async def _rest(self, tup: AnyTuple, pause: Pause, began: float, waited: float) -> Raised | None:
        raised = await pause
        if raised is None:
            self._executed(tup, began, waited)
        return raised

    def _executed(self, tup: AnyTuple, began: float, waited: float) -> None:
        self._inputs.executed(tup, self._clock() - began - (self.outbox.waited - waited))

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        self._inputs.begin(tup)
        began = self._clock()
        raised = await self.inner.execute(tup, out)
        if raised is None:
            # With the waits for room of its own outputs: those of calls that run beside it are no others'.
            self._inputs.executed(tup, self._clock() - began)
        return raised
