"""Executes inputs with an instance of a bolt class (law B1, B2)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from inspect import isawaitable
from typing import Any, cast

from stormlet.core.components import BasicBolt, Bolt, BoltBase, TaskContext
from stormlet.core.tuples import ACKED, HELD, OPEN, PLAIN
from stormlet.runtime.batches import BatchRunner
from stormlet.runtime.collectors import Anchors, AnyTuple, BoltCollector
from stormlet.runtime.results import dropped
from stormlet.runtime.workers import Desk, Method, Worker, own_context


class InstanceWorker(Worker):
    """What bolt classes share."""

    def __init__(self, desk: Desk, bolt: Bolt[Any, Any] | BasicBolt[Any, Any]) -> None:
        super().__init__(desk)
        self.bolt = bolt

    @property
    def restartable(self) -> bool:
        return self.bolt.restartable

    def method(self, name: str) -> Method | None:
        own = getattr(type(self.bolt), name, None)
        return None if own is getattr(BoltBase, name, None) else cast("Method", getattr(self.bolt, name))

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        self.desk.out.threads.open()
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
            raise dropped(self.desk.plan, "execute", result)

    def refuse(self, tup: AnyTuple, result: object) -> bool:
        """Treat the input as if its call had raised (law B4), and return True, unless the result is to be awaited."""
        if isawaitable(result):
            return False
        self.desk.user_failed((tup,), dropped(self.desk.plan, "execute", result), self.desk.out)
        return True

    async def rest(self, tup: AnyTuple, result: Awaitable[None]) -> None:
        """Await what ``execute`` returned, then settle its input as usual."""
        out = self.desk.out
        try:
            self._check(await self.awaited(result, None))
        except Exception as error:
            self.desk.user_failed((tup,), error, out)
        else:
            self.done(tup, out)
            await self.outbox.room()


class BasicWorker(InstanceWorker):
    """``BasicBolt``: anchored to the input, acked on return (law B1)."""

    def work(self, tuples: Iterable[AnyTuple]) -> Awaitable[None] | None:
        execute, desk, outbox = self.bolt.execute, self.desk, self.outbox
        out, crowded = desk.out, outbox.crowded
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
                if result is not None and not self.refuse(tup, result):
                    return self.rest(tup, result)
                if tup.state == OPEN:
                    tup.state = ACKED
                    root = tup.root
                    if root == outbox.run:
                        outbox.delta ^= tup.edge
                    elif root:
                        outbox.begin_run(root, tup.edge)
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
                if result is not None and not self.refuse(tup, result):
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

    def __init__(self, desk: Desk, runner: BatchRunner) -> None:
        super().__init__(desk, runner)
        self._runner = runner

    def threads(self) -> Sequence[int]:
        return self._runner.threads()

    def why_held(self, tup: AnyTuple) -> str:
        return self._runner.batch_of(tup)
