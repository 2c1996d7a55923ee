"""Runs in which calls of user code come one at a time, to compare with those in which they overlap."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import AsyncExitStack
from enum import Enum
from functools import partial
from inspect import isawaitable
from typing import Any

from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.worker import Method, Worker
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector
from stormlet.testing.chaos.faults import FaultKind
from stormlet.testing.chaos.parts import DisturbedKit, DisturbedWorker


class Way(Enum):
    """The order of the calls of a run."""

    AS_DECLARED = "as declared"
    ANY_ORDER = "one at a time, in an order in which they could end"
    IN_ORDER = "one at a time, in the order of the inputs of each task"


class SerialWorker(DisturbedWorker):
    """Around another worker: one call of any task at a time. Nothing befalls it but slowness."""

    def __init__(
        self, parts: DisturbedKit, plan: TaskPlan, inner: Worker, turn: asyncio.Lock, way: Way
    ) -> None:
        super().__init__(parts, plan, inner)
        self._turn = turn
        self._in_order = way is Way.IN_ORDER

    def work(self, tuples: Iterable[AnyTuple]) -> Awaitable[None] | None:
        return self._one_by_one(tuples)

    async def _one_by_one(self, tuples: Iterable[AnyTuple]) -> None:
        for tup in tuples:
            await self.execute(tup, self.desk.out)
            await self.outbox.room()

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> None:
        self._parts.executing(self._plan, tup)
        random = self._parts.strikes(FaultKind.SLOW, self._plan.name)
        pause = 0.0 if random is None else self._parts.slowness(random)
        async with AsyncExitStack() as turn:
            if self._in_order:
                await self.awaited(turn.enter_async_context(self._turn), None)
            if pause:
                await self.awaited(asyncio.sleep(pause), None)
                self._parts.witness.moved()
            if not self._in_order:
                await self.awaited(turn.enter_async_context(self._turn), None)
            await self._inner.execute(tup, out)

    def method(self, name: str) -> Method | None:
        method = super().method(name)
        return None if method is None else partial(self._in_turn, method)

    async def _in_turn(self, method: Method, out: Any) -> None:
        async with self._turn:
            result = method(out)
            if isawaitable(result):
                await result
