"""Workers around others; and one that notifies an observer of executions, for as long as there is one.

Nothing is asked on the ways of the inner worker: it goes through the same inputs in the same chunks, by an iterator
that notices when it takes one. So an execution ends when the next input is taken, or when the worker returns. The
inputs of a batch are executed later, all at once; of these its runner notifies the observer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from stormlet.core.tuples import HELD, OPEN
from stormlet.model.components import TaskContext
from stormlet.runtime.bolt.observer import ExecutionObserver
from stormlet.runtime.bolt.threads import ThreadWorker
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Worker
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector


class WrappedWorker(Worker):
    """The base of workers around another one: whatever they do not change is as the inner one has it."""

    def __init__(self, inner: Worker) -> None:
        super().__init__(inner.wiring)
        self.inner = inner
        self.auto_acks = inner.auto_acks
        self.collects = inner.collects
        self.resets_timeouts = inner.resets_timeouts

    @property
    def restartable(self) -> bool:
        return self.inner.restartable

    @property
    def unfinished(self) -> bool:
        return self.inner.unfinished

    def commit(self, epoch: Any, rows: Sequence[Any]) -> object:
        """Have the inner worker commit, which is that of a committer."""
        return cast("Any", self.inner).commit(epoch, rows)

    def method(self, name: str) -> Method | None:
        return self.inner.method(name)

    def threads(self) -> Mapping[int, Sequence[AnyTuple]]:
        return self.inner.threads()

    def in_words(self, raised: Raised) -> Exception:
        return self.inner.in_words(raised)

    def why_held(self, tup: AnyTuple) -> str:
        return self.inner.why_held(tup)

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        return self.inner.prepare(context)

    def cleanup(self) -> Awaitable[None] | None:
        return self.inner.cleanup()


class ObservedWorker(WrappedWorker):
    """Around another worker, of whose executions an observer hears."""

    def __init__(self, inner: Worker, observer: ExecutionObserver) -> None:
        super().__init__(inner)
        self._observer = observer
        self._trees = observer.trees
        # Except by a thread, which executes what it is handed without saying when it goes on to the next one.
        self._one_by_one = not isinstance(inner, ThreadWorker)

    # Both change while the worker is at work, and so are asked of the inner one.
    @property
    def chunk(self) -> int | None:
        return self.inner.chunk

    @chunk.setter
    def chunk(self, chunk: int | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.inner.chunk = chunk

    @property
    def calling(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.calling

    @calling.setter
    def calling(self, calling: int) -> None:
        self.inner.calling = calling

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        if not self._trees:  # nor will there be one of which any of these is
            return self.inner.work(tuples)
        running: list[AnyTuple] = []
        try:
            happened = self.inner.work(self._noticed(tuples, running))
        except BaseException:
            self._end(running)
            raise
        if happened is None or isinstance(happened, Raised):
            self._end(running)
            return happened
        if running and self._has_returned(running[0]):
            self._end(running)
        return self._awaited_with(running, happened) if running else happened

    def _noticed(self, tuples: Iterable[AnyTuple], running: list[AnyTuple]) -> Iterator[AnyTuple]:
        trees, one_by_one = self._trees, self._one_by_one
        for tup in tuples:
            if tup.root in trees or (not tup.root and self._observes(tup)):  # as few calls as can be
                running.append(tup)
                self._observer.begin((tup,))
            yield tup
            if running and one_by_one:
                self._end(running)

    def _observes(self, tup: AnyTuple) -> bool:
        return any(root in self._trees for root in tup.roots)

    def _has_returned(self, tup: AnyTuple) -> bool:
        """True if a pause is known to be a wait for room; a ``Bolt`` may await something after its ack."""
        return tup.state == HELD or (self.auto_acks and tup.state != OPEN)

    async def _awaited_with(self, running: list[AnyTuple], pause: Pause) -> Raised | None:
        before = self.outbox.waited
        try:
            return await pause
        finally:
            self._end(running, self.outbox.waited - before)

    def _end(self, running: list[AnyTuple], waited: float = 0.0) -> None:
        if running:
            self._observer.end(running, waited)
            running.clear()

    def goes_quickly(self, tup: AnyTuple) -> bool:
        # Both are asked in any case: an inner worker may count on it.
        return self.inner.goes_quickly(tup) and not self._observes(tup)

    def begin(self, tup: AnyTuple, out: BoltCollector) -> Awaitable[object] | None:
        return self.inner.begin(tup, out)

    def end(self, tup: AnyTuple, value: object, out: BoltCollector) -> Awaitable[object] | None:
        return self.inner.end(tup, value, out)

    async def execute(self, tup: AnyTuple, out: BoltCollector) -> Raised | None:
        if not self._observes(tup):
            return await self.inner.execute(tup, out)
        self._observer.begin((tup,))
        try:
            return await self.inner.execute(tup, out)
        finally:
            self._observer.end((tup,))


def observed(worker: Worker, observer: ExecutionObserver | None) -> Worker:
    """Return a worker of whose executions this observer hears, and no other one."""
    bare = worker.inner if isinstance(worker, ObservedWorker) else worker
    return bare if observer is None else ObservedWorker(bare, observer)
