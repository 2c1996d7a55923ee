"""States of bolts whose entries are in the store, and in memory only while they are in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from stormlet.core.state.blobs import bytes_of_entries, cut_into_blobs
from stormlet.core.state.codecs import Keys, Values, words_of
from stormlet.core.state.commits import Append, Entries, StateId, Stored
from stormlet.core.state.entry_reader import EntryReader
from stormlet.core.state.lazy.ambiguous import is_ambiguous
from stormlet.core.state.lazy.map_table import LazyMapTable
from stormlet.core.state.lazy.reading import KeptEntries
from stormlet.core.state.lazy.sweeping import Sweep
from stormlet.core.state.lazy.value_table import LazyValueTable
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared
from stormlet.errors import StateUnusable

LazyTable: TypeAlias = LazyValueTable | LazyMapTable


class LazyState(State):
    """One declared state of one bolt: a table for each task, of which nothing is loaded."""

    def __init__(
        self, id: StateId, declared: Declared, tasks: int, entries: Entries, task_of: Callable[[Any], int]
    ) -> None:
        """``task_of`` gives the index of the task that has a key. Raises :class:`~stormlet.errors.StateUnusable` for
        keys that the store could not tell apart."""
        _check_keys(id, declared)
        reader = EntryReader(id, declared, Values(declared.value, declared.upgrade))
        self._stored = KeptEntries(entries, reader, declared.kind)
        self._raw = entries
        self._task_of = task_of
        super().__init__(id, declared, tasks)
        self._sweep = None if declared.ttl is None else Sweep(self._stored, self.tables[0])

    def _made(self, task: int, where: str, keys: Keys, values: Values) -> LazyTable:
        kind = LazyValueTable if self.declared.kind == "value" else LazyMapTable
        return kind(where, self.declared, keys, values, self._stored, lambda key: self._task_of(key) == task)

    def check(self) -> None:
        """Go over all entries once, so that what starts is readable (law K5), and count them. Raises
        :class:`~stormlet.errors.StateUnusable`, naming the state, for what does not decode as it is declared."""
        for blob in self._raw.scan():
            entry, _ = self._stored.read(blob)
            self._table_of(entry).count += 1
            self._sizes.measure(bytes_of_entries(blob), 1)

    def _table_of(self, entry: Any) -> LazyTable:
        key = entry if self.declared.kind == "value" else entry[0]
        return cast("LazyTable", self.tables[self._task_of(key)])

    def _written(self, blobs: Sequence[bytes], deltas: Sequence[Mapping[Any, Any]]) -> Sequence[Append]:
        """Return what has changed, for the store, and what is too old."""
        return [Append(self.id, blob) for blob in (*blobs, *cut_into_blobs(self._swept(deltas)))]

    def _swept(self, deltas: Sequence[Mapping[Any, Any]]) -> Mapping[Any, None]:
        """Forget some entries that are too old (law K6)."""
        if self._sweep is None:
            return {}
        old = self._sweep.old({entry: None for delta in deltas for entry in delta})
        for entry in old:
            self._table_of(entry).remove(entry)
        return dict.fromkeys(old)

    def committed(self, key: Any) -> Any:
        """Return the committed value of a key, or its map or list; None if there is none."""
        try:
            return self.tables[self._task_of(key)].committed(key)
        except (TypeError, OverflowError):  # no store could have it
            return None

    def committed_keys(self) -> Iterable[Any]:
        """Return the keys that have one, each once, in the order of the store."""
        return self._stored.distinct()


def _check_keys(id: StateId, declared: Declared) -> None:
    for kind in _types_of_keys(declared):
        if is_ambiguous(kind):
            raise StateUnusable(
                f"state {str(id)!r} has keys of type {words_of(kind)}, which a store that finds entries by their keys "
                f"cannot tell apart: equal ones may have different bytes; group by a str instead, or keep the state in "
                f"a file"
            )


def _types_of_keys(declared: Declared) -> Iterator[Any]:
    yield declared.key
    if declared.kind == "map":
        yield declared.inner


def first_task(key: Any) -> int:
    """Return 0, whatever the key: where there is one task."""
    return 0


def state_in(
    stored: Stored,
    id: StateId,
    declared: Declared,
    tasks: int = 1,
    task_of: Callable[[Any], int] = first_task,
) -> State:
    """Return a state as its store has it: in memory, or read by the keys of its entries. It is empty before
    :func:`load_state`."""
    if stored.entries is None:
        return State(id, declared, tasks)
    return LazyState(id, declared, tasks, stored.entries(id), task_of)


def load_state(state: State, stored: Stored, task_of: Callable[[Any], int] = first_task) -> None:
    """Have a state begin with what is stored. Raise :class:`~stormlet.errors.StateUnusable`, naming it, for what does
    not decode as it is declared (law K5)."""
    if isinstance(state, LazyState):
        state.check()
    else:
        state.load(stored.states.get(state.id, ()), task_of)
