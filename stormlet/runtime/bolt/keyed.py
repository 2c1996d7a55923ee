"""The worker of bolts with keyed state (law K1 to K4, X6).

It executes inputs as that of a ``BasicBolt`` does, and three things beside. It gives the bolt the key of the input. It
notes in the attempt which trees have reached state: a failure of theirs spoils the attempt, where any other is replayed
alone. And it drops what is left of trees that have failed, so that no message reaches state twice in one attempt.

An input has reached state when its call has returned, when the call has raised after it changed something, or when it
is suspended: what it does when it goes on must not come after its tree was replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

from stormlet.core.epochs import Attempt
from stormlet.core.tables import AnyTable
from stormlet.core.tuples import ACKED, OPEN, PLAIN
from stormlet.model.keyed import KeyedBolt
from stormlet.runtime.bolt.functions import BasicWorker
from stormlet.runtime.bolt.worker import Pause, Raised, Wiring, own_context, raised_on
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector

KeyOf = Callable[[Any], object]
DEAD = "another tuple of its tree has failed, which is processed again as a whole"


class TaskState:
    """The state of one task: it outlives the instances that work with it (law K4)."""

    def __init__(
        self, attempt: Attempt, tables: Mapping[str, AnyTable], keys: Mapping[tuple[str, str], KeyOf]
    ) -> None:
        """``keys`` has the key function of each input, by component and stream."""
        self.attempt = attempt
        self.tables = tables
        self.keys = keys
        self._all: Sequence[AnyTable] = tuple(tables.values())

    @property
    def touched(self) -> bool:
        """True if a call has changed something since the last :meth:`forget_touches`."""
        return any(each.touched for each in self._all)

    def forget_touches(self) -> None:
        """From now on look for what the next call changes."""
        for each in self._all:
            each.touched = False


class KeyedWorker(BasicWorker):
    """``KeyedBolt``: anchored to the input and acked on return as a ``BasicBolt``, with the state of its key."""

    def __init__(self, wiring: Wiring, bolt: KeyedBolt[Any, Any, Any], state: TaskState) -> None:
        super().__init__(wiring, bolt)
        self._state = state
        self._attempt = state.attempt
        self._keys = state.keys

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        bolt, out, outbox, attempt, keys = self.bolt, self.out, self.outbox, self._attempt, self._keys
        execute, crowded, reached = bolt.execute, outbox.crowded, attempt.reached
        for tup in tuples:
            lineage = tup.lineage
            if (lineage is not PLAIN and self.needs_care(tup, lineage)) or attempt.has_dead:
                return self.carefully(tup)
            out.default_anchors = tup
            try:
                bolt.key = keys[tup.component, tup.stream](tup.value)
                result = execute(tup, out)
            except Exception as error:
                self._note_raised(tup)
                return raised_on(tup, error)
            root = tup.root
            reached[root] = None
            if result is not None:
                return self.returned(tup, result)
            if tup.state == OPEN:
                tup.state = ACKED
                if root == outbox.run:
                    outbox.delta ^= tup.edge
                elif root:
                    outbox.begin_run(root, tup.edge)
            if crowded:
                return outbox.room()
        return None

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        if self._attempt.is_dead(tup.roots):
            out.fail(tup, DEAD)
            return
        context = own_context(tup)
        out.default_anchors = tup
        self.bolt.key = self._keys[tup.component, tup.stream](tup.value)
        execute = self.bolt.execute
        try:
            result: object = execute(tup, out) if context is None else context.run(execute, tup, out)
        except BaseException:
            self._note_raised(tup)
            raise
        self._attempt.reach(tup.roots)
        if isawaitable(result):
            result = await self.awaited(result, context)
        self._check(result)

    def _note_raised(self, tup: AnyTuple) -> None:
        # Of any call since the last one that raised; so it may be noted too often, and never too seldom.
        if self._state.touched:
            self._attempt.reach(tup.roots)
