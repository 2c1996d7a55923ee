"""Workers that die, raise and take their time; and workers whose calls come one at a time, to compare with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from inspect import isawaitable
from random import Random
from typing import Any, NoReturn, cast

import msgspec

from stormlet.core.state.outgoing import Epoch
from stormlet.errors import TaskKilled
from stormlet.model.components import TaskContext
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.committer import BatchCommitterWorker, CommitterWorker
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Worker, raised_on
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector
from stormlet.testing.chaos.disturbances import Call, InjectedError
from stormlet.testing.chaos.disturbed_run import DisturbedRun
from stormlet.testing.chaos.evidence import Way
from stormlet.testing.chaos.faults import FaultKind


class DisturbedWorker(Worker):
    """Around another worker, which has the tuples between two faults for itself."""

    def __init__(self, run: DisturbedRun, plan: TaskPlan, inner: Worker) -> None:
        super().__init__(inner.wiring)
        self.auto_acks = inner.auto_acks
        self.resets_timeouts = inner.resets_timeouts
        self.chunk = inner.chunk
        self._run = run
        self._plan = plan
        self._inner = inner
        self.collects = inner.collects
        self._met: tuple[AnyTuple, FaultKind, Random] | None = None
        self._meets: tuple[FaultKind, Random] | None = None
        """The fault of the concurrent call that begins."""

    @property
    def restartable(self) -> bool:
        return self._inner.restartable

    @property
    def unfinished(self) -> bool:
        return self._met is not None or self._inner.unfinished

    def in_words(self, raised: Raised) -> Exception:
        return self._inner.in_words(raised)

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        # After an input before the fault has raised, the inner worker is called again, and may have others in hand.
        happened = self._inner.work(self._until_fault(tuples) if self._met is None else ())
        if self._met is None or isinstance(happened, Raised):
            return happened
        if happened is not None:  # of threads, which take what is before the fault at once
            return self._suffer_after(happened)
        (tup, kind, random), self._met = self._met, None
        if kind is FaultKind.KILL and random.random() < 0.5:
            self._die()  # with what is unsent
        return self._suffer(tup, kind, random, self.out)

    async def _suffer_after(self, pause: Pause) -> Raised | None:
        raised = await pause
        if raised is None and self._met is not None:
            met, self._met = self._met, None
            raised = await self._suffer(*met, self.out)
        return raised

    def _until_fault(self, tuples: Iterable[AnyTuple]) -> Iterator[AnyTuple]:
        for tup in tuples:
            self._run.executing(self._plan, tup)
            fault = self._fault()
            if fault is not None:
                self._met = (tup, *fault)
                return
            yield tup

    def _fault(self) -> tuple[FaultKind, Random] | None:
        plan, run = self._plan, self._run
        for kind, spared in (
            (FaultKind.KILL, run.immortal),
            (FaultKind.ERROR, run.infallible),
            (FaultKind.SLOW, frozenset[str]()),
        ):
            if plan.component not in spared and (random := run.strikes(kind, plan.name)) is not None:
                return kind, random
        return None

    def goes_quickly(self, tup: AnyTuple) -> bool:
        self._run.executing(self._plan, tup)
        self._meets = self._fault()
        return self._meets is None and self._inner.goes_quickly(tup)

    def begin(self, tup: AnyTuple, out: BoltCollector) -> Awaitable[object] | None:
        return self._inner.begin(tup, out)

    def end(self, tup: AnyTuple, value: object, out: BoltCollector) -> Awaitable[object] | None:
        return self._inner.end(tup, value, out)

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        fault, self._meets = self._meets, None
        if fault is None:
            return await self._inner.execute(tup, out)
        return await self._suffer(tup, *fault, out)

    async def _suffer(
        self, tup: AnyTuple, kind: FaultKind, random: Random, out: BoltCollector
    ) -> Raised | None:
        name, journal = self._plan.name, self._run.journal
        if kind is FaultKind.ERROR:
            journal.note("FAULT: {} raises on {}", name, tup.value)
            return await self._raised_on(tup, random, out)
        if kind is FaultKind.KILL:
            if random.random() < 0.5:
                await self._inner.execute(tup, out)
            self._die()
        seconds = self._run.slowness(random)
        journal.note("FAULT: {} takes {} s for {}", name, round(seconds, 3), tup.value)
        await self.awaited(asyncio.sleep(seconds), None)
        self._run.witness.moved()
        raised = await self._inner.execute(tup, out)
        if raised is None:
            await self.outbox.room()
        return raised

    async def _raised_on(self, tup: AnyTuple, random: Random, out: BoltCollector) -> Raised:
        """Instead of executing an input, or, where the engine acks, when everything is emitted that comes of it."""
        error: Exception = InjectedError(f"{self._plan.name} was to raise")
        if self.auto_acks and random.random() < 0.5:
            try:
                await self._inner.process(tup, out)
            except Exception as own:
                error = own
        return raised_on(tup, error)

    def _die(self) -> NoReturn:
        self._run.journal.note("FAULT: {} dies", self._plan.name)
        raise TaskKilled("the simulation has killed it")

    def method(self, name: str) -> Method | None:
        method = self._inner.method(name)
        return None if method is None else partial(self._call, name, method)

    def _call(self, name: str, method: Method, out: Any) -> Awaitable[None] | None:
        self._run.witness.begins(self._plan)
        self._run.journal.note("{}: {}", self._plan.name, name)
        if name == "finish":
            self._run.finishing(self._plan)
        return self._run.raising.call(self._plan, name, partial(method, out))

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        return self._inner.threads()

    def why_held(self, tup: AnyTuple) -> str:
        return self._inner.why_held(tup)

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        return self._inner.prepare(context)

    def cleanup(self) -> Awaitable[None] | None:
        return None if self._run.is_over else self._inner.cleanup()

    def commit(self, epoch: Epoch, rows: Sequence[Any]) -> Awaitable[None] | None:
        """Call the ``commit`` of a committer, as one of a run without a file: its sink may have had those of others."""
        call = partial(self._commit, msgspec.structs.replace(epoch, is_durable=False), rows)
        random = self._run.strikes(FaultKind.SLOW, self._plan.name)
        return call() if random is None else self._commit_late(call, self._run.slowness(random))

    async def _commit_late(self, call: Callable[[], Awaitable[Any] | None], seconds: float) -> Any:
        self._run.journal.note("FAULT: {} takes {} s", self._plan.name, round(seconds, 3))
        await asyncio.sleep(seconds)
        pause = call()
        return None if pause is None else await pause

    def _commit(self, epoch: Epoch, rows: Sequence[Any]) -> Awaitable[Any] | None:
        run, plan, inner = self._run, self._plan, cast("CommitterWorker | BatchCommitterWorker", self._inner)
        run.committing(plan, epoch.number, rows)
        result = run.raising.call(plan, "commit", cast("Call", partial(inner.commit, epoch, rows)))
        if isawaitable(result):
            return self._committed(result, epoch)
        run.committed(plan, epoch.number)
        return result

    async def _committed(self, result: Awaitable[Any], epoch: Epoch) -> Any:
        given = await result
        self._run.committed(self._plan, epoch.number)
        return given  # which is user code's, and None if it does as it should


class SerialWorker(DisturbedWorker):
    """Around another worker: one call of any task at a time. Nothing befalls it but slowness."""

    def __init__(
        self, run: DisturbedRun, plan: TaskPlan, inner: Worker, turn: asyncio.Lock, way: Way
    ) -> None:
        super().__init__(run, plan, inner)
        self._turn = turn
        self._in_order = way is not Way.ANY_ORDER

    def goes_quickly(self, tup: AnyTuple) -> bool:
        return False

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
        self._run.executing(self._plan, tup)
        random = self._run.strikes(FaultKind.SLOW, self._plan.name)
        pause = 0.0 if random is None else self._run.slowness(random)
        async with AsyncExitStack() as turn:
            if self._in_order:
                await self.awaited(turn.enter_async_context(self._turn), None)
            if pause:
                await self.awaited(asyncio.sleep(pause), None)
                self._run.witness.moved()
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
