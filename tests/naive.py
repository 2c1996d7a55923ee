"""A naive model of a run: one message after another, each through all bolts before the next.

State is plain dicts, which are copied before each attempt at a message, and come back if it fails. There are no tasks,
no ackers and no epochs, so that what it leaves is what must be left, whatever an engine does to get there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from stormlet import Bolt, Cell, KeyedBolt, Reject, Topology, Tuple
from stormlet.core.state.codecs import Keys, Values
from stormlet.core.state.tables import Declared
from stormlet.core.state.timers import NAME
from stormlet.core.state.value_table import ValueTable
from stormlet.core.tuples import Lineage, Source, plain_tuple
from stormlet.model.checks.keyed import key_reader
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import BoltSpec, Description
from stormlet.model.logic import LogicKind
from stormlet.model.state.keyed import attach

Data: TypeAlias = dict[str, dict[str, dict[Any, Any]]]
"""State by component, name and key; of a map or list another dict, by its own keys or indexes."""


class Failed(Exception):
    """A bolt has failed its input."""


class Model:
    """One run."""

    def __init__(self, topology: Topology, data: Data | None = None, now: float = 0.0) -> None:
        """``data`` is what an earlier run has left."""
        self.description: Description = topology.describe()
        self.now = now
        self.data: Data = data or {id: {name: {} for name in bolt.states} for id, bolt in self._bolts.items()}
        self.given_up: list[Any] = []
        self.executed: Counter[str] = Counter()
        self._logics = {id: self._made(bolt) for id, bolt in self._bolts.items()}

    @property
    def _bolts(self) -> Mapping[str, BoltSpec]:
        return self.description.bolts

    @property
    def states(self) -> dict[str, dict[Any, Any]]:
        """All that is kept, by ``component.state`` and key; without what is too old."""
        found: dict[str, dict[Any, Any]] = {}
        for id, bolt in self._bolts.items():
            for name, declared in bolt.states.items():
                table = self._table(id, name, declared)
                kept = {
                    key: value
                    for key in self.data[id][name]
                    if (value := table.all_of(key)) not in (None, {}, [])
                }
                found[f"{id}.{name}"] = kept
        return found

    async def run(self, sources: Mapping[str, Iterable[Any]] | None = None) -> None:
        """Process all messages, call the timers that were due before, and finish."""
        due = [*self._due()]
        for id, spout in self.description.spouts.items():
            for value in (sources or {}).get(id, spout.source() if callable(spout.source) else spout.source):
                await self._message(id, value)
        for component, at, key in due:
            await self._call(component, at, key)
        for id in (id for group in self.description.in_order() for id in group if id in self._bolts):
            if hasattr(self._logics[id], "finish"):
                out = Out()
                await _done(self._logics[id].finish(out))
                for _, value in out.emitted:
                    await self._message(id, value)

    async def _message(self, component: str, value: Any) -> None:
        attempt, most = 1, self.description.configuration.max_attempts
        while True:
            before = deepcopy(self.data)
            try:
                return await self._emitted(component, DEFAULT_STREAM, value, attempt)
            except Exception as error:
                self.data = before
                if isinstance(error, Reject) or attempt == most:
                    self.given_up.append(value)
                    return None
            attempt += 1

    async def _emitted(self, component: str, stream: str, value: Any, attempt: int) -> None:
        for id, bolt in self._bolts.items():
            for each in bolt.inputs:
                if (each.source.component, each.source.stream) == (component, stream):
                    schema = self.description.components[component].outputs[stream].schema
                    source = Source(component, stream, 0, schema)
                    tup = plain_tuple(value, source, Lineage(attempt), 1, 1)
                    for name, output in await self._outputs(bolt, key_reader(each), cast("Any", tup)):
                        await self._emitted(id, name, output, attempt)

    async def _outputs(self, bolt: BoltSpec, read: Any, tup: Tuple[Any]) -> Sequence[tuple[str, Any]]:
        logic, out = self._logics[bolt.id], Out()
        self.executed[bolt.id] += 1
        if bolt.state is not None:
            (name,) = bolt.states
            cell = Cell[Any](
                bolt.state, self._table(bolt.id, name, bolt.states[name]), read(tup.value), self.now
            )
            return await _results(logic(tup.value, cell))
        if bolt.kind is LogicKind.FUNCTION:
            return await _results(logic(tup.value))
        if isinstance(logic, KeyedBolt):
            logic.key, logic.now = read(tup.value), self.now
        await _done(
            logic.execute_batch([tup], out) if hasattr(logic, "execute_batch") else logic.execute(tup, out)
        )
        if isinstance(logic, Bolt):
            await _done(logic.flush(out))
        return out.taken()

    def _made(self, bolt: BoltSpec) -> Any:
        if bolt.kind is LogicKind.FUNCTION:
            return bolt.logic
        logic: Any = cast("Any", bolt.logic)()
        if isinstance(logic, KeyedBolt):
            tables = {name: self._table(bolt.id, name, each) for name, each in bolt.states.items()}
            attach(logic, cast("Any", tables), cast("Any", Timers(self, bolt.id)))
        return logic

    def _table(self, id: str, name: str, declared: Declared) -> Any:
        made = NaiveValues if declared.kind == "value" else NaiveMap
        return made(self, id, name, declared)

    def _due(self) -> Iterator[tuple[str, float, Any]]:
        for id, states in self.data.items():
            timers = [
                (at, order, key) for key, each in states.get(NAME, {}).items() for at, order in each.items()
            ]
            for at, _, key in sorted(timers, key=lambda timer: timer[:2]):
                if at <= self.now:
                    yield id, at, key

    async def _call(self, component: str, at: float, key: Any) -> None:
        logic, out = self._logics[component], Out()
        self.data[component][NAME][key].pop(at)
        logic.key, logic.now = key, self.now
        await _done(logic.on_timer(at, out))
        for name, value in out.taken():
            await self._emitted(component, name, value, 1)


class NaiveValues(ValueTable):
    """The values of one state."""

    def __init__(self, model: Model, id: str, name: str, declared: Declared) -> None:
        super().__init__("", declared, Keys(declared.key), Values(declared.value))
        self.model, self.place = model, (id, name)

    @property
    def entries_(self) -> dict[Any, Any]:
        """By key, with the time when each was written."""
        return self.model.data[self.place[0]][self.place[1]]

    def get(self, key: Any) -> Any:
        """The value; None if there is none, or it is too old."""
        value, written = self.entries_.get(key, (None, 0.0))
        ttl = self.declared.ttl
        return None if ttl is not None and written + ttl <= self.model.now else value

    def put(self, key: Any, value: Any) -> None:
        """Set it; None deletes it."""
        self.entries_.pop(key, None)
        if value is not None:
            self.entries_[key] = value, self.model.now

    def all_of(self, key: Any) -> Any:
        """The value."""
        return self.get(key)


class NaiveMap:
    """The maps or lists of one state."""

    def __init__(self, model: Model, id: str, name: str, declared: Declared) -> None:
        self.model, self.place, self.declared = model, (id, name), declared

    def of(self, key: Any) -> dict[Any, Any]:
        """The entries of a key."""
        return self.model.data[self.place[0]][self.place[1]].setdefault(key, {})

    def get(self, key: Any, inner: Any) -> Any:
        """One of them; None if there is none."""
        return self.of(key).get(inner)

    def put(self, key: Any, inner: Any, value: Any) -> None:
        """Set one; None deletes it."""
        if value is None:
            self.of(key).pop(inner, None)
        else:
            self.of(key)[inner] = value

    def length(self, key: Any) -> int:
        """The number of them."""
        return len(self.of(key))

    def inner(self, key: Any) -> Iterator[Any]:
        """Their own keys."""
        return iter([*self.of(key)])

    def all_of(self, key: Any) -> Any:
        """All of them, as a dict or a list."""
        entries = self.of(key)
        return (
            [entries[index] for index in sorted(entries)] if self.declared.kind == "list" else dict(entries)
        )


class Timers:
    """The timers of one bolt."""

    def __init__(self, model: Model, id: str) -> None:
        self.model, self.id = model, id

    def set(self, key: Any, at: float) -> None:
        """Set one; it stays if it is set."""
        timers = self.model.data[self.id][NAME].setdefault(key, {})
        timers.setdefault(float(at), sum(map(len, self.model.data[self.id][NAME].values())))

    def cancel(self, key: Any, at: float) -> None:
        """Cancel one."""
        self.model.data[self.id][NAME].get(key, {}).pop(float(at), None)


class Out:
    """The collector of one call."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, Any]] = []
        self.failure: Exception | None = None

    def emit(self, value: Any, *, stream: str = DEFAULT_STREAM, **options: Any) -> tuple[int, ...]:
        """Note an output."""
        self.emitted.append((stream, value))
        return ()

    def ack(self, tup: Any) -> None:
        """Nothing is open here."""

    def fail(self, tup: Any, reason: str = "", *, permanent: bool = False, **options: Any) -> None:
        """Note that the input has failed."""
        self.failure = Reject(reason) if permanent else Failed(reason)

    def taken(self) -> Sequence[tuple[str, Any]]:
        """The outputs. Raise what was noted."""
        if self.failure is not None:
            raise self.failure
        return self.emitted


async def _done(result: Any) -> None:
    if isawaitable(result):
        await result


async def _results(result: Any) -> Sequence[tuple[str, Any]]:
    result = await result if isawaitable(result) else result
    values = [*result] if isinstance(result, Iterator) else [] if result is None else [result]
    return [(DEFAULT_STREAM, value) for value in values]
