"""The execution of inputs of a keyed bolt in the task that emits them
(:mod:`~stormlet.spark.engine.partition.keyed.folding`).

About a thousand inputs are executed together, by an instance of the bolt with tables that begin empty. Where a call
raises, or refuses its input, all of them are undone and executed again one by one. One that fails leaves no trace in
these tables, and goes to the bolt's task by itself: there it fails, is executed again and given up as all inputs are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from inspect import iscoroutine
from typing import Any, cast

import msgspec

from stormlet.core.state.codecs import encoded
from stormlet.core.state.commits import StateId
from stormlet.core.state.map_table import AnyTable
from stormlet.core.state.states import State
from stormlet.core.state.value_table import ValueTable
from stormlet.core.tuples import PLAIN, Source, plain_tuple
from stormlet.errors import StartFailed
from stormlet.model.description import BoltSpec
from stormlet.model.state.keyed import KeyedBolt, attach
from stormlet.runtime.bolt.task_state import KeyReader

States = Mapping[str, State]


class Folded(msgspec.Struct, frozen=True):
    """The state that some inputs of a key have made: a value on the way to the task of the bolt."""

    key: Any
    states: Mapping[str, bytes]
    """Its entries, as in a state file, by state."""


def states_of(spec: BoltSpec, now: float) -> States:
    """Return empty states of a bolt, at this time."""
    states = {name: State(StateId(spec.id, name), declared) for name, declared in spec.states.items()}
    for state in states.values():
        state.tell(now)
    return states


class Execution:
    """An instance of a bolt that executes the inputs which one task emits."""

    def __init__(
        self, topology: str, spec: BoltSpec, source: Source, key: KeyReader | None, now: float
    ) -> None:
        """``source`` is where they come from; without ``key`` the value is its own. Raise
        :class:`~stormlet.errors.StartFailed` with what the constructor of the bolt raises."""
        self.key = key
        self._spec = spec
        self._source = source
        self._now = now
        try:
            self._bolt: KeyedBolt[Any, Any, Any] = cast("Any", spec.logic)()
        except (Exception, SystemExit) as error:
            raise StartFailed(topology, f"bolt {spec.id!r}", "the constructor") from error
        self._bolt.now = now
        self._run = copy_context().run  # what it sets stays in its task (law B10)
        self.begin()

    def key_of(self, value: Any) -> Any:
        """Return the key of an input."""
        return value if self.key is None else self.key(value)

    def begin(self) -> None:
        """Begin with empty states."""
        self._states = states_of(self._spec, self._now)
        self._tables = [state.tables[0] for state in self._states.values()]
        self._hand = attach(self._bolt, dict(zip(self._states, self._tables, strict=True)))

    def add_all(self, keys: Sequence[Any], values: Sequence[Any]) -> Sequence[int]:
        """Execute inputs with these keys; return the positions of those that go by themselves."""
        if self._executes(keys, values):
            return ()
        if len(values) == 1:
            return (0,)
        return [at for at, value in enumerate(values) if not self._executes([keys[at]], [value])]

    def leaving(self, key: Any) -> Folded:
        """Return the value that goes in the place of the inputs of a key."""
        found = {name: _of(table, key) for name, table in zip(self._states, self._tables, strict=True)}
        return Folded(key, {name: entries for name, entries in found.items() if entries})

    def _executes(self, keys: Sequence[Any], values: Sequence[Any]) -> bool:
        """Execute inputs; return False, and forget what they have changed, if one of them cannot be."""
        try:
            if self._run(self._execute, keys, values):
                deltas = [table.delta() for table in self._tables]
                for table, delta in zip(self._tables, deltas, strict=True):
                    table.merge(delta)
                return True
        except (Exception, SystemExit):
            """The task of the bolt will say so."""
        for table in self._tables:
            table.roll_back()
        return False

    def _execute(self, keys: Sequence[Any], values: Sequence[Any]) -> bool:
        execute, hand, source, out = self._bolt.execute, self._hand, self._source, Nowhere()
        for key, value in zip(keys, values, strict=True):
            hand.key = key
            result: object = execute(plain_tuple(value, source, PLAIN, 0, 0), cast("Any", out))
            if result is not None:
                if iscoroutine(result):
                    result.close()  # else Python would complain that nobody awaits it
                return False
        return not out.has_failed


def _of(table: AnyTable, key: Any) -> bytes:
    """The entries of a key; nothing if there are none."""
    inner = None if isinstance(table, ValueTable) else table.live.get(key, ())
    kept = table.portion([key] if inner is None else [(key, each) for each in inner])
    return encoded(table.in_log(kept)) if kept else b""


class Nowhere:
    """The collector of such an instance: nobody takes what it emits. All that it does not know sends the input on."""

    has_failed = False

    def emit(self, value: object, **options: object) -> tuple[int, ...]:
        """Deliver to nobody."""
        return ()

    def ack(self, tup: object) -> None:
        """The input is acked with the others of its key."""

    def fail(self, tup: object, reason: str = "", **options: object) -> None:
        """The input is left to the task of the bolt."""
        self.has_failed = True
