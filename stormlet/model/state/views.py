"""The maps and lists that a bolt sees of its state: views of one key in a table with many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeVar, cast, overload

from stormlet.core.state.map_table import MapTable

V = TypeVar("V")
M = TypeVar("M")


class StateMap(MutableMapping[M, V]):
    """A map of one key."""

    __slots__ = ("_key", "_table")

    def __init__(self, table: MapTable, key: Any) -> None:
        self._table = table
        self._key = key

    def __getitem__(self, inner: M) -> V:
        value = self._table.get(self._key, inner)
        if value is None:
            raise KeyError(inner)
        return cast("V", value)

    def __setitem__(self, inner: M, value: V) -> None:
        self._table.put(self._key, inner, _given(value))

    def __delitem__(self, inner: M) -> None:
        if inner not in self:
            raise KeyError(inner)
        self._table.put(self._key, inner, None)

    def __contains__(self, inner: object) -> bool:
        return self._table.get(self._key, inner) is not None

    def __iter__(self) -> Iterator[M]:
        return self._table.inner(self._key)

    def __len__(self) -> int:
        return self._table.length(self._key)

    def __repr__(self) -> str:
        return repr(dict(self))

    def clear(self) -> None:
        """Remove all entries."""
        for inner in self:
            self._table.put(self._key, inner, None)

    def replace(self, entries: Mapping[M, V]) -> None:
        """Put these entries in the place of all."""
        entries = dict(entries)  # it may be this map
        self.clear()
        self.update(entries)


class StateList(MutableSequence[V]):
    """A list of one key: a map from its indexes."""

    __slots__ = ("_key", "_table")

    def __init__(self, table: MapTable, key: Any) -> None:
        self._table = table
        self._key = key

    def __len__(self) -> int:
        return self._table.length(self._key)

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> list[V]: ...
    def __getitem__(self, index: int | slice) -> V | list[V]:
        if isinstance(index, slice):
            return [self._at(each) for each in range(*index.indices(len(self)))]
        return self._at(self._checked(index))

    @overload
    def __setitem__(self, index: int, value: V) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[V]) -> None: ...
    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            items = list(self)
            items[index] = value
            self.replace(items)
        else:
            self._table.put(self._key, self._checked(index), _given(value))

    def __delitem__(self, index: int | slice) -> None:
        if not isinstance(index, slice) and self._checked(index) == len(self) - 1:
            self._table.put(self._key, len(self) - 1, None)
        else:
            items = list(self)
            del items[index]
            self.replace(items)

    def __iter__(self) -> Iterator[V]:
        for index in range(len(self)):
            yield self._at(index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | StateList) and list(self) == list(cast("Sequence[object]", other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def append(self, value: V) -> None:
        """Add an item at the end."""
        self._table.put(self._key, len(self), _given(value))

    def insert(self, index: int, value: V) -> None:
        """Add an item before that of this index."""
        if index >= len(self):
            self.append(value)
        else:
            items = list(self)
            items.insert(index, value)
            self.replace(items)

    def clear(self) -> None:
        """Remove all items."""
        self.replace(())

    def replace(self, items: Iterable[V]) -> None:
        """Put these items in the place of all."""
        new, length = [_given(each) for each in items], len(self)
        for index, value in enumerate(new):
            if index >= length or self._at(index) is not value:
                self._table.put(self._key, index, value)
        for index in range(len(new), length):
            self._table.put(self._key, index, None)

    def _at(self, index: int) -> V:
        return cast("V", self._table.get(self._key, index))

    def _checked(self, index: int) -> int:
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"index {index} of a list of {length}")
        return index + length if index < 0 else index


def _given(value: V) -> V:
    if value is None:
        raise TypeError("None cannot be an entry of a state, as it stands for none; delete the entry instead")
    return value
