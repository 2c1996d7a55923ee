"""The workers of bolts with keyed state: ``KeyedBolt``, and functions with a cell (law K1 to K4, X6).

Theory of operation
-------------------
They execute inputs as those of ``BasicBolt`` and functions do, and three things beside. They give the bolt the key of
the input. They note in the attempt which trees have reached state: a failure of theirs spoils the attempt, where any
other is replayed alone. And they drop what is left of trees that have failed, so that no message reaches state twice in
one attempt.

An input has reached state when its call has returned, when the call has raised after it changed something, or when it
is suspended: what it does when it goes on must not come after its tree was replayed.

Calls that run beside each other have a view of the bolt each, with a key of its own. Calls of one key wait for each
other (law K2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isawaitable
from typing import Any, cast

from stormlet.core.state.timers import NAME
from stormlet.core.tuples import ACKED, OPEN, PLAIN, Source
from stormlet.model.checks.keyed import whole
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.state.declared import Cell
from stormlet.model.state.keyed import KeyedBolt, attach
from stormlet.model.state.slots import view_of
from stormlet.runtime.bolt.functions import BasicWorker, FunctionWorker
from stormlet.runtime.bolt.task_state import KeyReader, TaskState
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Wiring, own_context, raised_on
from stormlet.runtime.usercode import dropped
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector

DEAD = "another tuple of its tree has failed, and the message is processed again as a whole"


class Calls:
    """The beginnings of calls: what has changed is of the last one, and its key is that of its input. Keys are read by
    the reader for the source of the last input, as many of one source come after each other."""

    __slots__ = ("_columns", "_read", "_source", "_state")

    def __init__(self, state: TaskState) -> None:
        self._state = state
        self._columns = state.columns
        self._source: Source | None = None
        self._read: KeyReader = whole

    def begin(self, tup: AnyTuple) -> Any:
        """A call with this input begins: return its key."""
        for column in self._columns:
            column.touched = False
        if tup.source is not self._source:
            self._source, self._read = tup.source, self._state.reader_of(tup.source)
        return tup.value if self._read is whole else self._read(tup.value)


class KeyedWorker(BasicWorker):
    """``KeyedBolt``: anchored to the input and acked on return as a ``BasicBolt``, with the state of its key."""

    quick = False

    def __init__(
        self, wiring: Wiring, bolt: KeyedBolt[Any, Any, Any], state: TaskState, *, at_once: int
    ) -> None:
        super().__init__(wiring, cast("Any", bolt))
        self._keyed = bolt
        self._state = state
        self._attempt = state.attempt
        self._overlaps = at_once > 1
        self._hand = attach(bolt, state.tables, state.timers)
        self._calls = Calls(state)

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        bolt, state, attempt, out, outbox = self._keyed, self._state, self._attempt, self.out, self.outbox
        execute, reached, hand, last = state.execute_of(bolt), attempt.reached, self._hand, 0
        crowded, calls = outbox.crowded, self._calls
        bolt.now = state.now
        for tup in tuples:
            lineage = tup.lineage
            if (lineage is not PLAIN and self.needs_care(tup, lineage)) or attempt.has_dead:
                return self.carefully(tup)
            out.default_anchors = tup
            try:
                hand.key = calls.begin(tup)
                result = execute(tup, out)
            except Exception as error:
                state.note_raised(tup)
                return raised_on(tup, error)
            root = tup.root
            if root != last:  # tuples of one tree come one after the other
                reached[root] = None
                last = root
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

    def in_words(self, raised: Raised) -> Exception:
        return self._state.in_words(self.plan.component, raised.inputs, raised.error)

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        key = self._calls.begin(tup)
        self._keyed.now = self._state.now  # of all views, too: time stands still within an epoch
        if not self._overlaps:
            self._hand.key = key
            await self._process(self._keyed, tup, out)
            return
        async with self._state.turn(key):
            await self._process(view_of(self._keyed, key), tup, out)

    async def _process(self, bolt: KeyedBolt[Any, Any, Any], tup: AnyTuple, out: BoltCollector) -> None:
        # Here and not before: it may have failed while the call waited for its turn.
        if self._attempt.is_dead(tup.roots):
            out.fail(tup, DEAD)
            return
        context = own_context(tup)
        out.default_anchors = tup
        result = self._state.call(tup, context, self._state.execute_of(bolt), tup, out)
        if isawaitable(result):
            result = await self.awaited(result, context)
        self._check(result)

    def method(self, name: str) -> Method | None:
        del self._keyed.key  # what it calls now has no key
        if name == NAME:
            return self._fire
        return BasicWorker.method(self, name)

    async def _fire(self, out: BoltCollector) -> None:
        """Call ``on_timer`` for the timers that are due, by time and then in the order they were set (law K7)."""
        bolt, timers, now = self._keyed, self._state.timers, self._state.now
        bolt.now = now
        try:
            for at, key in [] if timers is None else timers.due(now):
                self._hand.key = key
                result: object = bolt.on_timer(at, cast("Any", out))
                if isawaitable(result):
                    result = await self.awaited(result, None)
                if result is not None:
                    raise dropped(self.plan, NAME, result)
                await self.outbox.room()
        except BaseException:
            self._state.spoil()  # the timer has been taken, and some of its work may be done (law X7)
            raise


class CellWorker(FunctionWorker):
    """A function with ``state=``: of the value, and the cell of its key's state."""

    quick = False

    def __init__(
        self,
        wiring: Wiring,
        function: Callable[[Any, Cell[Any]], object],
        cell: Cell[Any],
        state: TaskState,
        *,
        at_once: int,
    ) -> None:
        super().__init__(wiring, self._called)
        self._of_cell = function
        self._cell = cell
        self._state = state
        self._attempt = state.attempt
        self._overlaps = at_once > 1
        self._calls = Calls(state)

    def _called(self, value: Any) -> object:
        return self._of_cell(value, self._cell)

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        cell, state, attempt, outbox, function = (
            self._cell,
            self._state,
            self._attempt,
            self.outbox,
            self._of_cell,
        )
        reached, calls, last = attempt.reached, self._calls, 0
        outlet = self._outlets.get(DEFAULT_STREAM, self._undeclared)
        crowded = outbox.crowded
        cell.now = state.now
        for tup in tuples:
            lineage = tup.lineage
            if (lineage is not PLAIN and self.needs_care(tup, lineage)) or attempt.has_dead:
                return self.carefully(tup)
            root = tup.root
            try:
                cell.key = calls.begin(tup)
                result = function(tup.value, cell)
                if result is not None and self._emits_more(tup, result, outlet):
                    reached[root] = None
                    return self._rest(tup, result)
            except Exception as error:
                state.note_raised(tup)
                return Raised((tup,), error)
            if root != last:  # tuples of one tree come one after the other
                reached[root] = None
                last = root
            tup.state = ACKED  # nobody else has it
            if root == outbox.run:
                outbox.delta ^= tup.edge
            elif root:
                outbox.begin_run(root, tup.edge)
            if crowded:
                return outbox.room()
        return None

    def in_words(self, raised: Raised) -> Exception:
        return self._state.in_words(self.plan.component, raised.inputs, raised.error)

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        key = self._calls.begin(tup)
        if not self._overlaps:
            self._cell.key, self._cell.now = key, self._state.now
            await self._process(self._cell, tup, out)
            return
        async with self._state.turn(key):
            await self._process(self._cell.at(key, self._state.now), tup, out)

    async def _process(self, cell: Cell[Any], tup: AnyTuple, out: BoltCollector) -> None:
        if self._attempt.is_dead(tup.roots):
            out.fail(tup, DEAD)
            return
        context = own_context(tup)
        # A generator does its work only when it is drained, and must not do it after its tree was replayed.
        result = self._state.call(tup, context, self._of_cell, tup.value, cell)
        await self._deal(tup, result, out, context)
