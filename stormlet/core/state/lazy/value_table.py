"""The table of one value for each key, of which the store has those that are not in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stormlet.core.state.blobs import bytes_of_key
from stormlet.core.state.codecs import Keys, Values
from stormlet.core.state.lazy.reading import KeptEntries, is_too_old
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import ValueTable


class LazyValueTable(ValueTable):
    """One value for each key.

    ``live`` has the keys that the open epoch has read, those without a value as None; ``former`` likewise those of the
    epoch before, with what that has written.
    """

    __slots__ = ("_owns", "_stored", "count", "former")

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
        ValueTable.__init__(self, where, declared, keys, values)
        self._stored = stored
        self._owns = owns
        self.former: dict[Any, Any] = {}
        self.count = 0
        """Number of committed keys."""

    def _fetch(self, key: Any) -> Any:
        """Return the kept form of a committed value, and have it at hand; None if there is none."""
        live = self.live
        if key in live:
            return live[key]
        kept = live[key] = self.former[key] if key in self.former else self._timed(key)
        return kept

    def _timed(self, key: Any) -> Any:
        """Return what the store has, and note its time."""
        try:
            sought = bytes_of_key(key)
        except (TypeError, ValueError, OverflowError):
            sought = bytes_of_key(self.fit_key(key))  # which says of what state it is
        found = self._stored.get(sought)
        if found is None or not self.timed:
            return found
        self.written[key], kept = found
        return kept

    def get(self, key: Any) -> Any:
        """Return the value of this key as the open attempt has left it; None if there is none."""
        changed = self.changed.get(key)
        if changed is not None and self.immutable:
            return changed
        if changed is None and key not in self.changed:
            self._fetch(key)
        return ValueTable.get(self, key)

    def delete(self, key: Any) -> None:
        """Delete the value of this key."""
        if self._fetch(key) is None:
            self.touched = True
            self.changed.pop(key, None)
        else:
            ValueTable.delete(self, key)

    @property
    def size(self) -> int:
        """Number of committed keys."""
        return self.count

    def delta(self) -> dict[Any, Any]:
        """Return the kept form of each changed value."""
        for key in self.changed:
            self._fetch(key)  # by which those that are new are told
        return ValueTable.delta(self)

    def merge(self, delta: dict[Any, Any]) -> int:
        """Commit these values, and clear the overlay. Returns by how many keys there are more."""
        self.note(delta)
        live, before = self.live, self.count
        for key, kept in delta.items():
            self.count += (kept is not None) - (live[key] is not None)
            live[key] = kept
        self.former, self.live, self.changed = live, {}, {}
        if self.timed:
            self.written = {key: self.written[key] for key, kept in live.items() if kept is not None}
        return self.count - before

    def remove(self, key: Any) -> None:
        """Note that an entry is to be gone from the store, as it is too old."""
        self.count -= 1
        self.former[key] = None

    def committed(self, key: Any) -> Any:
        """Return the committed value of a key; None if there is none."""
        # Of the store alone: whoever looks knows what is being written (:class:`Committed`).
        found = self._stored.get(bytes_of_key(key))
        if found is None or not self.timed:
            return None if found is None else self.values.open(found)
        written, kept = found
        return None if is_too_old(self, written) else self.values.open(kept)

    def committed_keys(self) -> Iterator[Any]:
        """Go over the keys with a committed value."""
        return (key for key in self._stored.distinct() if self._owns(key))
