"""The runner of a ``BatchBolt``: collects inputs into batches, decides when each is executed, and resets the
timeouts of those that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Iterable, Mapping, Sequence
from inspect import isawaitable
from math import inf
from typing import Any, Protocol, TypeVar, cast

from stormlet.core.outcomes import spelt
from stormlet.core.shortened import shortened
from stormlet.core.tuples import HELD, Tuple
from stormlet.errors import InvalidTopology
from stormlet.model.components import BatchBolt, Bolt, Collector, TaskContext, overrides
from stormlet.model.number_checks import is_int, is_seconds
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.functions import BoltWorker
from stormlet.runtime.bolt.threads import ThreadedBatchBolt
from stormlet.runtime.bolt.worker import Desk
from stormlet.runtime.usercode import as_exception, dropped
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector

RESETS_PER_TIMEOUT = 3
"""So that one late reset does no harm yet."""


class Holder(Protocol):
    """The part of the task that is needed here."""

    loop: asyncio.AbstractEventLoop
    out: BoltCollector

    def tuples(self) -> Iterable[AnyTuple]:
        """Every unsettled tuple that is with the task: queued, in hand or held."""
        ...


class TimeoutResets:
    """Gives the trees of all that a task has their full time again (law L12), as long as it has anything
    (law S4)."""

    def __init__(self, holder: Holder, message_timeout: float) -> None:
        self._holder = holder
        self._interval = message_timeout / RESETS_PER_TIMEOUT
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The bolt is prepared: what is queued by now has waited for the restart of the task."""
        self._reset()
        self.arm()

    def arm(self) -> None:
        """The task has got an input."""
        if self._timer is None:
            self._timer = self._holder.loop.call_later(self._interval, self._reset)

    def cancel(self) -> None:
        """The task ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _reset(self) -> None:
        self._timer = None
        unsettled = list(self._holder.tuples())
        for tup in unsettled:
            self._holder.out.reset_timeout(tup)
        if unsettled:
            self.arm()


R = TypeVar("R")


class BatchDesk(Protocol):
    """The part of its task that the runner needs."""

    plan: TaskPlan
    loop: asyncio.AbstractEventLoop
    out: BoltCollector

    def tuples(self) -> Iterable[AnyTuple]:
        """Every unsettled tuple that is here."""
        ...

    def ask(self, errand: str) -> None:
        """Have a method of the bolt called soon, between two executes."""
        ...

    async def checked(self, result: Awaitable[R]) -> R:
        """Await user code; a cancellation by the engine comes out whatever that makes of it."""
        ...

    def user_failed(self, tups: Sequence[AnyTuple], error: Exception, out: BoltCollector) -> None:
        """User code raised while it processed these inputs (law B4)."""
        ...

    def batch_cancelled(self, tups: Sequence[AnyTuple]) -> None:
        """The call that processed these inputs was cancelled. If it was one of several concurrent calls, and not
        cancelled by the engine, they fail (law N3)."""
        ...


def check_batch(component: str, bolt: BatchBolt[Any, Any]) -> None:
    """Raises :class:`~stormlet.errors.InvalidTopology` for a size or a time that is none; ``prepare`` may set them."""
    if not is_int(bolt.size, 1) or not is_seconds(bolt.within) or not bolt.within:
        raise InvalidTopology(
            f"bolt {component!r}: a batch needs an int size >= 1 and a finite number of seconds within > 0, not "
            f"size={bolt.size!r}, within={bolt.within!r}"
        )


class Batch:
    """The members of one batch and the time at which it is due."""

    __slots__ = ("due", "members", "weight")

    def __init__(self, due: float) -> None:
        self.due = due
        self.members: list[AnyTuple] = []
        self.weight = 0


class BatchRunner(Bolt[Any, Any]):
    """The bolt around a ``BatchBolt``; its errand ``due`` executes the batches whose time has come."""

    def __init__(self, bolt: BatchBolt[Any, Any], desk: BatchDesk) -> None:
        self._bolt = bolt
        self._weighs = overrides(bolt, BatchBolt, "weight")
        self._desk = desk
        self._batches: dict[Hashable, Batch] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._resets: TimeoutResets | None = None
        self.restartable = bolt.restartable

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        """The threads that run user code now, by ident, each with the batch that it was handed."""
        return self._bolt.threads() if isinstance(self._bolt, ThreadedBatchBolt) else {}

    def batch_of(self, tup: AnyTuple) -> str:
        """In words, the batch that an input is in."""
        for batch in self._batches.values():
            if tup in batch.members:
                due = max(0.0, batch.due - self._desk.loop.time())
                return f"in a batch that has {batch.weight} of {self._bolt.size} and is due in {spelt(due)}"
        return "in a batch that is executed now"

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        if self._bolt.resets_timeouts and context.config.message_timeout is not None:
            self._resets = TimeoutResets(self._desk, context.config.message_timeout)
            self._resets.begin()
        try:
            preparing = self._bolt.prepare(context)
            if isawaitable(preparing):
                return self._prepared(preparing)
            check_batch(self._desk.plan.component, self._bolt)
        except BaseException:
            self._cancel_timers()
            raise
        return None

    async def _prepared(self, preparing: Awaitable[None]) -> None:
        try:
            await preparing
            check_batch(self._desk.plan.component, self._bolt)
        except BaseException:
            self._cancel_timers()  # there is no cleanup of what was not prepared
            raise

    def execute(self, tup: AnyTuple, out: Collector[Any]) -> Awaitable[None] | None:
        key = self._bolt.key(tup.value)
        weight = self._weight(tup.value) if self._weighs else 1
        try:
            batch = self._batches.get(key)
        except TypeError as error:
            raise TypeError(
                f"key of {self._task} gave {shortened(key)} as the name of a batch: {error}"
            ) from error
        if batch is None:
            batch = self._batches[key] = Batch(self._desk.loop.time() + self._bolt.within)
            self._wait()
        batch.members.append(tup)
        batch.weight += weight
        if self._resets is not None:
            self._resets.arm()
        return self._run(key, out) if batch.weight >= self._bolt.size else None

    def _weight(self, value: object) -> int:
        weight = self._bolt.weight(value)
        try:
            is_right = 0 <= weight < inf
        except TypeError:
            is_right = False
        if not is_right:
            raise ValueError(
                f"weight of {self._task} returned {shortened(weight)} for {shortened(value)}, and must return a number "
                f"from 0"
            )
        return weight

    @property
    def _task(self) -> str:
        return f"{self._desk.plan.component!r} (task {self._desk.plan.task})"

    def tick(self, out: Collector[Any]) -> Awaitable[None] | None:
        return self._bolt.tick(out)

    async def flush(self, out: Collector[Any]) -> None:
        """Execute what is there, full or not (law B8)."""
        await self._run_all(out)
        await self._end("flush", self._bolt.flush(out))

    async def finish(self, out: Collector[Any]) -> None:
        """Execute what is there, full or not (law C2)."""
        await self._run_all(out)
        await self._end("finish", self._bolt.finish(out))

    async def due(self, out: Collector[Any]) -> None:
        """Execute the batches whose first member has waited long enough."""
        now = self._desk.loop.time()
        for key in [key for key, batch in self._batches.items() if batch.due <= now]:
            await _maybe(self._run(key, out))
        self._wait()

    def cleanup(self) -> Awaitable[None] | None:
        self._cancel_timers()
        return self._bolt.cleanup()

    def _cancel_timers(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._resets is not None:
            self._resets.cancel()

    async def _run_all(self, out: Collector[Any]) -> None:
        for key in list(self._batches):
            await _maybe(self._run(key, out))

    def _run(self, key: Hashable, out: Collector[Any]) -> Awaitable[None] | None:
        batch = self._batches.pop(key, None)
        if batch is None:
            return None
        members = batch.members
        collector = cast("BoltCollector", out)
        collector.default_anchors = members
        try:
            result = self._bolt.execute_batch(members, out)
            if not isawaitable(result):
                self._check("execute_batch", result)
        except (Exception, asyncio.CancelledError) as error:  # nothing was awaited
            self._desk.user_failed(members, as_exception(error), collector)
            collector.default_anchors = ()
            return None
        if isawaitable(result):
            return self._await(members, result, collector)
        _ack(members, collector)
        collector.default_anchors = ()
        return None

    async def _await(self, members: list[AnyTuple], result: Awaitable[None], out: BoltCollector) -> None:
        try:
            self._check("execute_batch", await self._desk.checked(result))
        except asyncio.CancelledError:
            self._desk.batch_cancelled(members)
            raise
        except Exception as error:
            self._desk.user_failed(members, error, out)
        else:
            _ack(members, out)
        finally:
            out.default_anchors = ()

    async def _end(self, method: str, result: object) -> None:
        self._check(method, await result if isawaitable(result) else result)

    def _check(self, method: str, result: object) -> None:
        if result is not None:
            raise dropped(self._desk.plan, method, result)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        first = min((batch.due for batch in self._batches.values()), default=None)
        self._timer = None if first is None else self._desk.loop.call_at(first, self._desk.ask, "due")


def _ack(members: list[Tuple[Any]], out: BoltCollector) -> None:
    for tup in members:
        if tup.state <= HELD:
            out.ack(tup)


async def _maybe(result: Awaitable[None] | None) -> None:
    if isawaitable(result):
        await result


class BatchWorker(BoltWorker):
    """``BatchBolt``, by way of its runner: holds inputs until their batch is executed."""

    def __init__(self, desk: Desk, runner: BatchRunner) -> None:
        super().__init__(desk, runner)
        self._runner = runner

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        return self._runner.threads()

    def why_held(self, tup: AnyTuple) -> str:
        return self._runner.batch_of(tup)
