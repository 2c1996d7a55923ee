"""The kit of a simulated run, by which the user's code is judged as well as the engine.

Calls of user code may come one at a time instead, to compare with runs in which they overlap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from enum import Enum
from functools import partial
from inspect import isawaitable
from typing import Any

from stormlet.model.components import Bolt, BoltBase, ReliableSpout, Spout
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Worker
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector
from stormlet.testing.chaos.calls import Calls
from stormlet.testing.chaos.evidence import Collecting, Evidence, Kept
from stormlet.testing.chaos.faults import FaultKind, Injector
from stormlet.testing.chaos.kit import DisturbedKit, DisturbedWorker
from stormlet.testing.images import EmittedValues
from stormlet.testing.watched_run import SpoutOrBolt, WatchedOutlet


class Way(Enum):
    """The order of the calls of a run."""

    AS_DECLARED = "as declared"
    ANY_ORDER = "one at a time, in an order in which they could end"
    IN_ORDER = "one at a time, in the order of the inputs of each task"


class SerialWorker(DisturbedWorker):
    """Around another worker: one call of any task at a time. Nothing befalls it but slowness."""

    def __init__(
        self, kit: DisturbedKit, plan: TaskPlan, inner: Worker, turn: asyncio.Lock, way: Way
    ) -> None:
        super().__init__(kit, plan, inner)
        self._turn = turn
        self._in_order = way is Way.IN_ORDER

    def work(self, tuples: Iterable[AnyTuple]) -> Pause:
        return self._one_by_one(tuples)

    async def _one_by_one(self, tuples: Iterable[AnyTuple]) -> Raised | None:
        for tup in tuples:
            raised = await self.execute(tup, self.out)
            if raised is not None:
                return raised
            await self.outbox.room()
        return None

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        self._kit.executing(self._plan, tup)
        random = self._kit.strikes(FaultKind.SLOW, self._plan.name)
        pause = 0.0 if random is None else self._kit.slowness(random)
        async with AsyncExitStack() as turn:
            if self._in_order:
                await self.awaited(turn.enter_async_context(self._turn), None)
            if pause:
                await self.awaited(asyncio.sleep(pause), None)
                self._kit.witness.moved()
            if not self._in_order:
                await self.awaited(turn.enter_async_context(self._turn), None)
            return await self._inner.execute(tup, out)

    def method(self, name: str) -> Method | None:
        method = super().method(name)
        return None if method is None else partial(self._in_turn, method)

    async def _in_turn(self, method: Method, out: Any) -> None:
        async with self._turn:
            result = method(out)
            if isawaitable(result):
                await result


class JudgedKit(DisturbedKit):
    """Makes the parts of one run."""

    def __init__(
        self,
        injector: Injector,
        *,
        explains: bool = False,
        allowed: Collection[str] = (),
        collects: bool = False,
        way: Way = Way.AS_DECLARED,
    ) -> None:
        super().__init__(injector, explains=explains)
        self.evidence = Evidence()
        """For comparison, once the run has come to its end."""
        self.calls = Calls(self.accuse)
        self.steps.before = self.calls.goes_on
        self._allowed = allowed
        self._collecting = Collecting() if collects else None
        self.way = way
        self._turn = asyncio.Lock()
        self._values = EmittedValues()
        self._instances: dict[TaskPlan, object] = {}

    def accuse(self, kind: str, text: str, *values: object) -> None:
        """The user's code does what it should not do, unless that is allowed."""
        if kind not in self._allowed:
            self.witness.violation(text, *values)

    def assembled(self, tasks: Tasks) -> None:
        super().assembled(tasks)
        everyone: Sequence[SpoutOrBolt] = [*tasks.all_spouts, *tasks.all_bolts]
        for task in everyone:
            for stream, outlet in task.outlets.items():
                task.outlets[stream] = WatchedOutlet(outlet, partial(self._emitted, task, stream))
        if self._collecting is not None:
            self._collecting.begin(tasks.all_bolts, self._instances)

    def _emitted(self, task: SpoutOrBolt, stream: str, value: object, roots: Sequence[int]) -> None:
        self._values.note(task.plan, stream, value)
        if self._collecting is not None:
            self._collecting.emitted(
                task.plan,
                stream,
                value,
                spout=isinstance(task, SpoutTask),
                finishing=task.doing == "finish",
            )

    def instance(self, plan: TaskPlan, instance: BoltBase[Any, Any] | Spout[Any]) -> None:
        super().instance(plan, instance)
        self._instances[plan] = instance
        if isinstance(instance, Bolt):
            self.calls.watch(plan, instance)

    def worker(self, plan: TaskPlan, worker: Worker) -> Worker:
        if self.way is Way.AS_DECLARED:
            return super().worker(plan, worker)
        return SerialWorker(self, plan, worker, self._turn, self.way)

    def end(self) -> None:
        """The run has come to its end: judge what can be judged now, and keep what can be compared."""
        for line in self._values.changes():
            self.accuse("values", "{}", line)
        results = None if self._collecting is None else self._collecting.results(self.tasks, self._instances)
        bolts = [task.name for task in self.tasks.all_bolts]
        self.evidence = Evidence(bolts, dict(self._kept()), dict(self.calls.joins), results)

    def _kept(self) -> dict[str, Kept]:
        """Of the spouts that must replay by themselves."""
        kept: dict[str, Kept] = {}
        for plan, account in self.witness.accounts.items():
            instance = self._instances.get(plan)
            if isinstance(instance, Spout) and not isinstance(instance, ReliableSpout):
                acked, failed = kept.get(plan.component, Kept(0, 0))
                kept[plan.component] = Kept(acked + account.acked, failed + account.failed)
        return kept

    def forget(self) -> None:
        """The run is over."""
        self.witness.forget()
        self._instances.clear()
        self._values = EmittedValues()
