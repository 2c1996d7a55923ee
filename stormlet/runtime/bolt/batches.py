"""The runner of a ``BatchBolt``: collects inputs into batches, decides when each is executed, and resets the
timeouts of those that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from itertools import islice
from math import inf
from typing import Any, cast

from stormlet.core.outcomes import spelt
from stormlet.core.shortened import shortened
from stormlet.core.tuples import HELD, OPEN, PLAIN, Tuple
from stormlet.errors import InvalidTopology
from stormlet.model.checks.numbers import is_int, is_seconds
from stormlet.model.components import BatchBolt, Bolt, Collector, TaskContext, overrides
from stormlet.model.logic import not_at_once
from stormlet.runtime.bolt.executions import Executions
from stormlet.runtime.bolt.functions import BoltWorker
from stormlet.runtime.bolt.threads import ThreadedBatchBolt
from stormlet.runtime.bolt.worker import Pause, Raised, Wiring, raised_on
from stormlet.runtime.usercode import as_exception, checked, dropped
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector

RESETS_PER_TIMEOUT = 3
"""So that one late reset does no harm yet."""
RESETS_AT_ONCE = 1024
"""Inputs that are reset before others have a turn on the loop: a sink may hold hundreds of thousands."""


class TimeoutResets:
    """Gives the trees of all that a task has their full time again (law L12), as long as it has anything
    (law S4)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        message_timeout: float,
        unsettled: Callable[[], Iterable[AnyTuple]],
        reset: Callable[[AnyTuple], None],
    ) -> None:
        self._loop = loop
        self._interval = message_timeout / RESETS_PER_TIMEOUT
        self._unsettled = unsettled
        self._reset = reset
        self._next: asyncio.Handle | None = None

    def begin(self) -> None:
        """An instance is about to be prepared: what is queued by now has waited for the restart of the task."""
        for tup in list(self._unsettled()):  # at once, as ``prepare`` may block
            self._reset(tup)
        self.arm()

    def arm(self) -> None:
        """The task has got inputs."""
        # One timer for all inputs: to note when each one came would cost more than to reset it early.
        if self._next is None:
            self._next = self._loop.call_later(self._interval, self._reset_all)

    def cancel(self) -> None:
        """The instance ends."""
        if self._next is not None:
            self._next.cancel()

    def _reset_all(self) -> None:
        self._reset_some(iter(self._unsettled()), begun=False)

    def _reset_some(self, unsettled: Iterator[AnyTuple], *, begun: bool) -> None:
        self._next = None  # first: after an exception the next input arms it again
        # One that is settled before its turn comes is reset all the same, which does nothing.
        some = list(islice(unsettled, RESETS_AT_ONCE))
        for tup in some:
            self._reset(tup)
        if len(some) == RESETS_AT_ONCE:
            self._next = self._loop.call_soon(partial(self._reset_some, unsettled, begun=True))
        elif some or begun:
            self.arm()


class BatchCancelled(asyncio.CancelledError):
    """Somebody has cancelled the coroutine in which these inputs were executed together."""

    def __init__(self, members: Sequence[AnyTuple]) -> None:
        super().__init__("the call with a batch was cancelled")
        self.members = members


def check_batch(component: str, bolt: BatchBolt[Any, Any]) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for a size or a time that is none, and for a
    ``key`` or ``weight`` that is no plain method; ``prepare`` may set them."""
    if not is_int(bolt.size, 1) or not is_seconds(bolt.within) or not bolt.within:
        raise InvalidTopology(
            f"bolt {component!r}: a batch needs an int size >= 1 and a finite number of seconds within > 0, not "
            f"size={bolt.size!r}, within={bolt.within!r}"
        )
    if not is_int(bolt.at_once, 1):
        raise InvalidTopology(
            f"bolt {component!r}: at_once= is how many batches are executed at a time, an int of at least 1, not "
            f"{bolt.at_once!r}"
        )
    for name in ("key", "weight"):
        method = getattr(bolt, name)
        fault = not_at_once(method) if callable(method) else f"is {shortened(method)}"
        if fault:
            raise InvalidTopology(
                f"bolt {component!r}: {name} of {type(bolt).__name__} {fault}, and is called with each value, before "
                f"its batch; write def {name}(self, value), which returns it"
            )


class Batch:
    """The members of one batch and the time at which it is due."""

    __slots__ = ("due", "members", "weight")

    def __init__(self, due: float) -> None:
        self.due = due
        self.members: list[AnyTuple] = []
        self.weight = 0


class BatchRunner(Bolt[Any, Any]):
    """The bolt around a ``BatchBolt``; its method ``due`` executes the batches whose time has come.

    A batch that fails is raised as :class:`~stormlet.runtime.bolt.worker.Raised`, with all its members. It is no batch
    any more then, so that ``due``, ``flush`` and ``finish`` go on with the others when they are called again.
    """

    def __init__(self, bolt: BatchBolt[Any, Any], wiring: Wiring) -> None:
        self.bolt = bolt
        self.has_keys = overrides(bolt, BatchBolt, "key")
        """False if there is one batch for all."""
        self.weighs = overrides(bolt, BatchBolt, "weight")
        """False if each value weighs 1."""
        self._wiring = wiring
        self._plan = wiring.plan
        self._loop = wiring.loop
        self._batches: dict[Hashable, Batch] = {}
        self._executions = Executions(wiring)
        """Of batches that are executed beside this bolt's task."""
        self._timer: asyncio.TimerHandle | None = None
        self.restartable = bolt.restartable
        self.resets_timeouts = bolt.resets_timeouts

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        """The threads that run user code now, by ident, each with the batch that it was handed."""
        return self.bolt.threads() if isinstance(self.bolt, ThreadedBatchBolt) else {}

    def batch_of(self, tup: AnyTuple) -> str:
        """In words, the batch that an input is in."""
        for batch in self._batches.values():
            if tup in batch.members:
                due = max(0.0, batch.due - self._loop.time())
                return f"in a batch that has {batch.weight} of {self.bolt.size} and is due in {spelt(due)}"
        return "in a batch that is executed now"

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        preparing = self.bolt.prepare(context)
        if isawaitable(preparing):
            return self._prepared(preparing)
        check_batch(self._plan.component, self.bolt)
        return None

    async def _prepared(self, preparing: Awaitable[None]) -> None:
        await preparing
        check_batch(self._plan.component, self.bolt)

    def execute(self, tup: AnyTuple, out: Collector[Any]) -> Awaitable[None] | None:
        # Both before the input is in a batch: one that raises fails, and must not be executed with others as well.
        key = self.bolt.key(tup.value) if self.has_keys else None
        weight = self.bolt.weight(tup.value) if self.weighs else 1
        if weight != 1:  # not what nearly every value has
            self.check_weight(weight, tup.value)
        batch = self.open_batch(key) or self.begin_batch(key)
        batch.members.append(tup)
        batch.weight += weight
        return self.run(key, out) if batch.weight >= self.bolt.size else None

    def open_batch(self, key: Hashable = None) -> Batch | None:
        """The batch with this key that inputs are added to."""
        try:
            return self._batches.get(key)
        except TypeError as error:
            raise TypeError(
                f"key of {self._plan.name} gave {shortened(key)} as the name of a batch: {error}"
            ) from error

    def begin_batch(self, key: Hashable = None) -> Batch:
        """Begin another one, which is due at its time."""
        due = self._loop.time() + self.bolt.within if self._wiring.timed else inf
        batch = self._batches[key] = Batch(due)
        self._wait()
        return batch

    def check_weight(self, weight: int, value: object) -> None:
        """Raise :class:`ValueError` for a weight that is none."""
        try:
            is_right = 0 <= weight < inf
        except TypeError:
            is_right = False
        if not is_right:
            raise ValueError(
                f"weight of {self._plan.name} returned {shortened(weight)} for {shortened(value)}, and must return a "
                f"number from 0"
            )

    def tick(self, out: Collector[Any]) -> Awaitable[None] | None:
        return self.bolt.tick(out)

    async def flush(self, out: Collector[Any]) -> None:
        """Execute what is there, full or not (law B8)."""
        # Before the user's own, which may close what the batches are written to.
        await self._run_all(out)
        await self._end("flush", self.bolt.flush(out))

    async def finish(self, out: Collector[Any]) -> None:
        """Execute what is there, full or not (law C2)."""
        await self._run_all(out)
        await self._end("finish", self.bolt.finish(out))

    async def due(self, out: Collector[Any]) -> None:
        """Execute the batches whose first member has waited long enough."""
        self._executions.settle(partial(_ack, out=cast("BoltCollector", out)))
        # By the clock of this moment, not by the timer: a batch may have come due while another was written.
        now = self._loop.time()
        for key in [key for key, batch in self._batches.items() if batch.due <= now]:
            await _maybe(self.run(key, out))
        self._wait()

    def cleanup(self) -> Awaitable[None] | None:
        if self._timer is not None:
            self._timer.cancel()
        return self._clean_up() if self._executions else self.bolt.cleanup()

    async def _clean_up(self) -> None:
        await self._executions.close()
        await _maybe(self.bolt.cleanup())

    async def _run_all(self, out: Collector[Any]) -> None:
        for key in list(self._batches):
            await _maybe(self.run(key, out))
        await self._executions.settle_all(partial(_ack, out=cast("BoltCollector", out)))

    def run(self, key: Hashable, out: Collector[Any]) -> Awaitable[None] | None:
        """Execute a batch, or begin to; returns what the task must await before its next input."""
        # Taken out before it is executed: inputs that come meanwhile are another batch.
        batch = self._batches.pop(key, None)
        if batch is None:  # a concurrent call has completed it since the keys were listed
            return None
        members = batch.members
        if self.bolt.at_once > 1:
            return self._start(members, cast("BoltCollector", out).for_call())
        # A batch's outputs are anchored to all of its members, unless user code names others.
        collector = cast("BoltCollector", out)
        collector.default_anchors = members
        self._begin(members)
        try:
            result = self.bolt.execute_batch(members, out)
            if not isawaitable(result):
                self._check("execute_batch", result)
        except (Exception, asyncio.CancelledError) as error:  # nothing was awaited: it is user code's own
            self._over(members)
            collector.default_anchors = ()
            raise Raised(members, as_exception(error)) from None
        if isawaitable(result):
            return self._await(members, result, collector)
        self._over(members)
        _ack(members, collector)
        collector.default_anchors = ()
        return None

    def _start(self, members: list[AnyTuple], out: BoltCollector) -> Awaitable[None] | None:
        """Execute a batch beside this task; wait if these are as many as may be."""
        out.default_anchors = members
        self._wiring.outbox.occupation.allow(self.bolt.at_once)
        if self._has_place() and not self._executions.waiting:
            self._executions.start(members, partial(self._execute_beside, members, out))
            return None if self._has_place() else self._executions.place(self._has_place)
        return self._start_in_turn(members, out)

    async def _start_in_turn(self, members: list[AnyTuple], out: BoltCollector) -> None:
        """Wait before the batch, too: with ``concurrency`` calls go on beside the one that waits already."""
        try:
            await self._executions.place(self._has_place)
        except asyncio.CancelledError:
            # As in _await.
            raise BatchCancelled(members) from None
        self._executions.start(members, partial(self._execute_beside, members, out))
        await self._executions.place(self._has_place)

    def _has_place(self) -> bool:
        # At least one, as user code may lower it while calls wait: with none they would wait for no batch at all.
        return self._executions.running < max(1, self.bolt.at_once)

    async def _execute_beside(self, members: list[AnyTuple], out: BoltCollector) -> None:
        self._begin(members)
        try:
            await self._end("execute_batch", self.bolt.execute_batch(members, out))
        finally:
            self._over(members)

    async def _await(self, members: list[AnyTuple], result: Awaitable[None], out: BoltCollector) -> None:
        try:
            self._check("execute_batch", await checked(result, self._wiring.check_cancelled))
        except asyncio.CancelledError:
            # The call ends with the input that has completed the batch; the others are known here alone.
            raise BatchCancelled(members) from None
        except Exception as error:
            raise Raised(members, error) from None
        else:
            _ack(members, out)
        finally:
            self._over(members)
            out.default_anchors = ()

    def _begin(self, members: Sequence[AnyTuple]) -> None:
        observer = self._wiring.observed.observer
        if observer is not None:
            observer.begin(members)

    def _over(self, members: Sequence[AnyTuple]) -> None:
        observer = self._wiring.observed.observer
        if observer is not None:
            observer.end(members)

    async def _end(self, method: str, result: object) -> None:
        self._check(method, await result if isawaitable(result) else result)

    def _check(self, method: str, result: object) -> None:
        if result is not None:
            raise dropped(self._plan, method, result)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # Of the batches that are left: the one that the timer was set for may have become full.
        first = min((batch.due for batch in self._batches.values()), default=inf)
        self._timer = (
            None if first == inf else self._loop.call_at(first, self._wiring.pending_calls.request, "due")
        )


def _ack(members: Sequence[Tuple[Any]], out: BoltCollector) -> None:
    for tup in members:
        if tup.state <= HELD:  # user code may settle some by itself
            out.ack(tup)


async def _maybe(result: Awaitable[None] | None) -> None:
    if isawaitable(result):
        await result


class BatchWorker(BoltWorker):
    """``BatchBolt``, by way of its runner: holds inputs until their batch is executed."""

    quick = False

    def __init__(self, wiring: Wiring, runner: BatchRunner) -> None:
        super().__init__(wiring, runner)
        self._runner = runner
        self._batch_bolt = runner.bolt
        self.resets_timeouts = runner.resets_timeouts

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        # As that of the base, with ``execute`` of the runner written out for what is the same for all inputs.
        runner, out, crowded, held = self._runner, self.out, self.outbox.crowded, self._held
        if runner.has_keys:
            return BoltWorker.work(self, tuples)
        bolt, weighs, batch = self._batch_bolt, runner.weighs, runner.open_batch()
        size = bolt.size
        for tup in tuples:
            lineage = tup.lineage
            if lineage is not PLAIN and lineage.context is not None:
                return self.carefully(tup)
            result = None
            try:
                weight = self._weight_of(tup.value) if weighs else 1
                if batch is None:
                    batch = runner.begin_batch()
                batch.members.append(tup)
                batch.weight += weight
                if batch.weight >= size:
                    batch = None
                    result = runner.run(None, out)
                    size = bolt.size  # which user code may have changed
            except Exception as error:
                return raised_on(tup, error)
            if result is not None:
                return self.returned(tup, result)
            if tup.state == OPEN:
                tup.state = HELD
                held[tup] = None
            if crowded:
                return self.outbox.room()
        return None

    def _weight_of(self, value: object) -> int:
        weight = self._batch_bolt.weight(value)
        if weight != 1:
            self._runner.check_weight(weight, value)
        return weight

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        return self._runner.threads()

    def why_held(self, tup: AnyTuple) -> str:
        return self._runner.batch_of(tup)
