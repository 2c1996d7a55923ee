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
from contextlib import suppress
from inspect import isawaitable
from typing import Any, cast

from stormlet.core.timers import NAME
from stormlet.core.tuples import ACKED, OPEN, PLAIN
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.declared_states import Cell
from stormlet.model.keyed import KeyedBolt, attach, view_of
from stormlet.runtime.bolt.functions import BasicWorker, FunctionWorker
from stormlet.runtime.bolt.task_state import TaskState
from stormlet.runtime.bolt.worker import Method, Pause, Raised, Wiring, own_context, raised_on
from stormlet.runtime.wire.collector import AnyTuple, BoltCollector

DEAD = "another tuple of its tree has failed, and the message is processed again as a whole"


class KeyedWorker(BasicWorker):
    """``KeyedBolt``: anchored to the input and acked on return as a ``BasicBolt``, with the state of its key."""

    def __init__(
        self, wiring: Wiring, bolt: KeyedBolt[Any, Any, Any], state: TaskState, *, at_once: int
    ) -> None:
        super().__init__(wiring, cast("Any", bolt))
        self._keyed = bolt
        self._state = state
        self._attempt = state.attempt
        self._overlaps = at_once > 1
        attach(bolt, state.tables, state.timers)

    def work(self, tuples: Iterable[AnyTuple]) -> Raised | Pause | None:
        bolt, state, attempt, out, outbox = self._keyed, self._state, self._attempt, self.out, self.outbox
        execute, key_of, columns, reached = bolt.execute, state.key_of, state.columns, attempt.reached
        crowded = outbox.crowded
        bolt.now = state.now
        for tup in tuples:
            lineage = tup.lineage
            if (lineage is not PLAIN and self.needs_care(tup, lineage)) or attempt.has_dead:
                return self.carefully(tup)
            out.default_anchors = tup
            for column in columns:
                column.touched = False
            try:
                bolt.key = key_of(tup)
                result = execute(tup, out)
            except Exception as error:
                self._note_raised(tup)
                return raised_on(tup, error)
            root = tup.root
            reached[root] = None
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
        key = self._state.key_of(tup)
        self._keyed.now = self._state.now  # of all views, too: time stands still within an epoch
        if not self._overlaps:
            self._keyed.key = key
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
        self._state.begin_call()
        try:
            result: object = (
                bolt.execute(tup, out) if context is None else context.run(bolt.execute, tup, out)
            )
        except BaseException:
            self._note_raised(tup)
            raise
        self._attempt.reach(tup.roots)
        if isawaitable(result):
            result = await self.awaited(result, context)
        self._check(result)

    def _note_raised(self, tup: AnyTuple) -> None:
        if self._state.touched:
            self._attempt.reach(tup.roots)

    def method(self, name: str) -> Method | None:
        with suppress(AttributeError):
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
                bolt.key = key
                result: object = bolt.on_timer(at, cast("Any", out))
                if isawaitable(result):
                    await self.awaited(result, None)
                await self.outbox.room()
        except BaseException:
            self._state.spoil()  # the timer has been taken, and some of its work may be done (law X7)
            raise


class CellWorker(FunctionWorker):
    """A function with ``state=``: of the value, and the cell of its key's state."""

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
        key_of, columns, reached = state.key_of, state.columns, attempt.reached
        outlet = self._outlets.get(DEFAULT_STREAM, self._undeclared)
        crowded = outbox.crowded
        cell.now = state.now
        for tup in tuples:
            lineage = tup.lineage
            if (lineage is not PLAIN and self.needs_care(tup, lineage)) or attempt.has_dead:
                return self.carefully(tup)
            for column in columns:
                column.touched = False
            try:
                cell.key = key_of(tup)
                result = function(tup.value, cell)
                if result is not None and self._emits_more(tup, result, outlet):
                    reached[tup.root] = None
                    return self._rest(tup, result)
            except Exception as error:
                self._note_raised(tup)
                return Raised((tup,), error)
            root = tup.root
            reached[root] = None
            tup.state = ACKED  # nobody else has it
            if root == outbox.run:
                outbox.delta ^= tup.edge
            elif root:
                outbox.begin_run(root, tup.edge)
            if crowded:
                return outbox.room()
        return None

    async def process(self, tup: AnyTuple, out: BoltCollector) -> None:
        key = self._state.key_of(tup)
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
        self._state.begin_call()
        try:
            call = self._of_cell if context is None else _in(context, self._of_cell)
            result = call(tup.value, cell)
        except BaseException:
            self._note_raised(tup)
            raise
        # A generator does its work only when it is drained, and must not do it after its tree was replayed.
        self._attempt.reach(tup.roots)
        await self._deal(tup, result, out, context)

    def _note_raised(self, tup: AnyTuple) -> None:
        if self._state.touched:
            self._attempt.reach(tup.roots)


def _in(context: Any, function: Callable[..., object]) -> Callable[..., object]:
    def call(*arguments: object) -> object:
        return context.run(function, *arguments)

    return call
