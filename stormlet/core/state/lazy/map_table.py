"""The table of a map or a list for each key, of which the store has the entries that are not in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stormlet.core.state.blobs import PAIR, bytes_of_key
from stormlet.core.state.codecs import Keys, Values
from stormlet.core.state.lazy.maps import LazyMap
from stormlet.core.state.lazy.reading import KeptEntries, is_too_old
from stormlet.core.state.map_table import Changes, MapTable
from stormlet.core.state.tables import Declared


class LazyMaps(dict[Any, Any]):
    """The maps that the open epoch has met, by their keys. One that it meets first is made from what the epoch before
    had of it, and the store."""

    def __init__(self, make: Callable[[Any, LazyMap | None], LazyMap]) -> None:
        super().__init__()
        self._make = make
        self._former: dict[Any, LazyMap] = {}

    def get(self, key: Any, default: Any = None) -> LazyMap:
        """Return the map of a key, which may have no entries."""
        found: LazyMap | None = super().get(key)
        if found is None:
            found = self[key] = self._make(key, self._former.get(key))
        return found

    def turn(self) -> None:
        """Another epoch begins."""
        self._former = dict(self)
        self.clear()

    def remove(self, key: Any, inner: Any) -> int:
        """Have an entry be gone, between two epochs; return by how many there are more."""
        former = self._former.get(key)
        if former is None:
            former = self._former[key] = self._make(key, None)
        return former.put(inner, None)


class LazyMapTable(MapTable):
    """A map, or a list as a map from its indexes, for each key."""

    def __init__(
        self,
        where: str,
        declared: Declared,
        keys: Keys,
        values: Values,
        stored: KeptEntries,
        owns: Callable[[Any], bool],
    ) -> None:
        """``owns`` tells the keys of this task from those of others."""
        super().__init__(where, declared, keys, values)
        self._stored = stored
        self._owns = owns
        self.live = self._maps = LazyMaps(self._map)
        self.count = 0
        """Number of committed entries."""

    def _map(self, key: Any, former: LazyMap | None) -> LazyMap:
        return LazyMap(self, self._stored, self.fit_key(key), former)

    def time_of(self, entry: Any) -> float:
        """Return the time when a committed entry was written; of a list, when its newest item was."""
        key, inner = entry
        return self._maps.get(key).time_of(inner)

    def length(self, key: Any) -> int:
        """Return the number of entries in the map of this key."""
        changes = self.changed.get(key)
        if changes is None or self.declared.kind == "list":
            return super().length(key)
        return self._live_length(key) + changes.size

    def _changes(self, key: Any) -> Changes:
        # To count a map may take long: its size is that by which it has grown, until somebody asks for more.
        if self.declared.kind == "map" and key not in self.changed:
            self.changed[self.fit_key(key)] = Changes(0)
        return super()._changes(key)

    @property
    def size(self) -> int:
        """Number of committed entries."""
        return self.count

    def merge(self, delta: dict[Any, Any]) -> int:
        """Commit these entries, and clear the overlay. Returns by how many there are more."""
        before = self.count
        for (key, inner), kept in delta.items():
            self.count += self._maps.get(key).put(inner, kept)
        self._maps.turn()
        self.renewed = {}
        self.changed = {}
        self.changes = 0
        return self.count - before

    def remove(self, entry: Any) -> None:
        """Note that an entry is to be gone from the store, as it is too old."""
        self.count += self._maps.remove(*entry)

    def committed(self, key: Any) -> Any:
        """Return the committed map or list of a key; None if there is none."""
        # Of the store alone: whoever looks knows what is being written (:class:`Committed`).
        found = {inner: kept for (_, inner), kept in self._stored.scan(PAIR + bytes_of_key(key))}
        if self.timed:
            found = self._living(found)
        if not found:
            return None
        values = {inner: self.values.open(kept) for inner, kept in found.items()}
        return [values[index] for index in sorted(values)] if self.declared.kind == "list" else values

    def _living(self, found: dict[Any, Any]) -> dict[Any, Any]:
        """Return entries without their times, and without those that are too old."""
        if self.declared.kind == "list":  # which lives as long as its newest item
            newest = max((written for written, _ in found.values()), default=self.now)
            found = {} if is_too_old(self, newest) else found
            return {inner: kept for inner, (_, kept) in found.items()}
        return {inner: kept for inner, (written, kept) in found.items() if not is_too_old(self, written)}

    def committed_keys(self) -> Iterator[Any]:
        """Go over the keys with a committed map or list."""
        return (key for key in self._stored.distinct() if self._owns(key))
