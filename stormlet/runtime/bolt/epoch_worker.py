"""The worker of bolts that work on whole epochs: an instance for each attempt at one (law X5, X7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isawaitable
from typing import Any, Final, cast

from stormlet.core.state.outgoing import Epoch
from stormlet.core.tuples import ACKED, OPEN, PLAIN
from stormlet.model.components import TaskContext
from stormlet.model.state.epoch_bolts import EpochBolt
from stormlet.runtime.bolt.functions import BasicWorker
from stormlet.runtime.bolt.keyed import DEAD
from stormlet.runtime.bolt.task_state import TaskState
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Wiring, raised_on
from stormlet.runtime.usercode import dropped
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector

BEGIN: Final = "begin_epoch"
"""Has another instance made, for another attempt."""
END: Final = "end_epoch"


class EpochWorker(BasicWorker):
    """``EpochBolt``: anchored to the input and acked on return as a ``BasicBolt``."""

    quick = False

    def __init__(
        self,
        wiring: Wiring,
        make: Callable[[], EpochBolt[Any, Any]],
        state: TaskState,
        epoch_of: Callable[[], Epoch],
    ) -> None:
        """``epoch_of`` says which epoch is open."""
        self._working = make()
        """The instance of this attempt."""
        super().__init__(wiring, cast("Any", self._working))
        self._make = make
        self._state = state
        self._epoch_of = epoch_of
        self._context: TaskContext | None = None
        if state.has_gathered:  # of an instance that has died with it
            state.has_gathered = False
            state.spoil()

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        execute, out, outbox, attempt = self.bolt.execute, self.out, self.outbox, self._state.attempt
        crowded, reached = outbox.crowded, attempt.reached
        self._state.has_gathered = True
        for tup in tuples:
            lineage = tup.lineage
            if (lineage is not PLAIN and self.needs_care(tup, lineage)) or attempt.has_dead:
                return self.carefully(tup)
            out.default_anchors = tup
            root = tup.root
            reached[root] = None
            try:
                result = execute(tup, out)
            except Exception as error:
                return raised_on(tup, error)
            if result is not None:
                return self.returned(tup, result)
            if tup.state == OPEN:  # else user code has settled it by ``out.ack`` or ``out.fail``
                tup.state = ACKED
                if root == outbox.run:
                    outbox.delta ^= tup.edge
                elif root:
                    outbox.begin_run(root, tup.edge)
            if crowded:
                return outbox.room()
        return None

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        if self._state.attempt.is_dead(tup.roots):
            out.fail(tup, DEAD)
            return
        self._state.has_gathered = True
        self._state.attempt.reach(tup.roots)
        await BasicWorker.process(self, tup, out)

    def prepare(self, context: TaskContext) -> Any:
        self._context = context
        return BasicWorker.prepare(self, context)

    def method(self, name: str) -> Method | None:
        if name == BEGIN:
            return self._begin
        if name == END:
            return self._end
        return BasicWorker.method(self, name)

    async def _end(self, out: BoltCollector) -> None:
        try:
            result: object = self._working.end_epoch(self._epoch_of(), out)
            if isawaitable(result):
                result = await self.awaited(result, None)
            if result is not None:
                raise dropped(self.plan, END, result)
        except BaseException:
            self._state.spoil()  # what it has emitted is not all of it (law X7)
            raise

    async def _begin(self, out: BoltCollector) -> None:
        assert self._context is not None
        self._state.has_gathered = False
        await self._awaited(self.bolt.cleanup())
        self._working = self._make()
        self.bolt = cast("Any", self._working)
        await self._awaited(self._working.prepare(self._context))

    async def _awaited(self, result: object) -> None:
        if isawaitable(result):
            await self.awaited(result, None)
