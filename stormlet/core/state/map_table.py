"""The table of a map, or of a list as a map from its indexes, for each key; see :mod:`~stormlet.core.state.tables`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from stormlet.core.state.codecs import Keys, Values
from stormlet.core.state.tables import Declared, Table
from stormlet.core.state.value_table import ValueTable


class Changes:
    """The changed entries of one map, and the number of its entries with them."""

    __slots__ = ("entries", "size")

    def __init__(self, size: int) -> None:
        self.entries: dict[Any, Any] = {}
        self.size = size


_NONE: Final[Mapping[Any, Any]] = {}


class MapTable(Table):
    """A map, or a list as a map from its indexes, for each key."""

    def __init__(self, where: str, declared: Declared, keys: Keys, values: Values) -> None:
        super().__init__(where, declared, keys, values)
        self.inner_keys = Keys(declared.inner)
        self.live: dict[Any, dict[Any, Any]] = {}
        self.changed: dict[Any, Changes] = {}
        self.changes = 0
        """Number of entries that the open attempt has changed, or has read and may have changed."""

    def get(self, key: Any, inner: Any) -> Any:
        """Return one entry of the map of this key; None if there is none."""
        changes, mutable = self.changed.get(key), not self.immutable
        self.touched |= mutable
        if changes is not None and inner in changes.entries:
            return changes.entries[inner]
        kept = self.live.get(key, _NONE).get(inner)
        if kept is None or self.expired((key, inner)):
            return None
        if mutable:
            kept = self.values.open(kept)
            self._set(self._changes(key).entries, self.fit_inner(inner), kept)
        return kept

    def put(self, key: Any, inner: Any, value: Any) -> None:
        """Set one entry of the map of this key; None deletes it."""
        if value is not None:
            value = self.fit_value((key, inner), value)
        changes, inner = self._changes(key), self.fit_inner(inner)
        self.touched = True
        if self.timed:
            self.renewed[(key, inner)] = None
        changes.size += (value is not None) - self._has(changes.entries, key, inner)
        if value is None and inner not in self.live.get(key, _NONE):
            self.changes -= inner in changes.entries
            changes.entries.pop(inner, None)
        else:
            self._set(changes.entries, inner, value)

    def _set(self, entries: dict[Any, Any], inner: Any, value: Any) -> None:
        self.changes += inner not in entries
        entries[inner] = value

    def length(self, key: Any) -> int:
        """Return the number of entries in the map of this key."""
        changes = self.changed.get(key)
        return self._live_length(key) if changes is None else changes.size

    def inner(self, key: Any) -> Iterator[Any]:
        """Go over the own keys of the map of this key, first of what is committed, as they are when it begins."""
        changes, live = self.changed.get(key), self.live.get(key, _NONE)
        changed = _NONE if changes is None else changes.entries
        kept = [each for each in live if self._has(changed, key, each)]
        yield from kept
        yield from [each for each, value in changed.items() if value is not None and each not in live]

    def _has(self, changed: Mapping[Any, Any], key: Any, inner: Any) -> bool:
        if inner in changed:
            return changed[inner] is not None
        return inner in self.live.get(key, _NONE) and not self.expired((key, inner))

    def _live_length(self, key: Any) -> int:
        live = self.live.get(key, _NONE)
        if not self.timed:
            return len(live)
        return sum(not self.expired((key, inner)) for inner in live)

    def _changes(self, key: Any) -> Changes:
        changes = self.changed.get(key)
        if changes is None:
            changes = self.changed[self.fit_key(key)] = Changes(self._live_length(key))
            # The items of a list that is too old must not come back with a new one.
            if self.declared.kind == "list" and not changes.size:
                changes.entries = dict.fromkeys(self.live.get(key, _NONE))
                self.changes += len(changes.entries)
        return changes

    def fit_inner(self, inner: Any) -> Any:
        """Return the own key of an entry as it is kept; raise :class:`TypeError`, naming the state, if it cannot be
        kept."""
        try:
            return self.inner_keys.fit(inner)
        except TypeError as error:
            raise TypeError(f"{self.where}: {error}") from None

    @property
    def size(self) -> int:
        """Number of committed entries."""
        return sum(map(len, self.live.values()))

    def roll_back(self) -> None:
        """Forget what the open attempt has changed; a call that still runs changes what nobody reads (law K3)."""
        self.changed = {}
        self.changes = 0
        self.renewed = {}

    def delta(self) -> dict[Any, Any]:
        """Return the kept form of each changed entry, by the pair of its key and its own key."""
        found: dict[Any, Any] = {}
        for key, changes in self.changed.items():
            live = self.live.get(key, _NONE)
            for inner, value in changes.entries.items():
                kept = None if value is None else self.keep((key, inner), value)
                if self.immutable or kept is None or kept != live.get(inner) or (key, inner) in self.renewed:
                    found[key, inner] = kept
        return found

    def merge(self, delta: dict[Any, Any]) -> int:
        """Commit these entries, and clear the overlay. Returns by how many there are more."""
        self.note(delta)
        more = 0
        for (key, inner), kept in delta.items():
            if kept is not None:
                entries = self.live.setdefault(key, {})
                more += inner not in entries
                entries[inner] = kept
            else:
                self._forget(key, inner)
                more -= 1
        self.changed = {}
        self.changes = 0
        return more

    def take(self, entries: dict[Any, Any]) -> None:
        """Begin with these entries, beside those that it has begun with."""
        for (key, inner), kept in self.untimed(entries).items():
            self.live.setdefault(key, {})[inner] = kept

    def _forget(self, key: Any, inner: Any) -> None:
        live = self.live[key]
        del live[inner]
        self.written.pop((key, inner), None)
        if not live:
            del self.live[key]
            self.written.pop(key, None)

    def entries(self) -> Iterator[Any]:
        """Go over the entries of each map, as they are when it is met."""
        for key in list(self.live):
            for inner in list(self.live.get(key, _NONE)):
                yield key, inner

    def portion(self, entries: list[Any]) -> dict[Any, Any]:
        """Return the kept forms of these entries; forget those that are too old."""
        found: dict[Any, Any] = {}
        for entry in entries:
            key, inner = entry
            kept = self.live.get(key, _NONE).get(inner)
            if kept is None:
                continue
            if self.expired(entry):
                self._forget(key, inner)
            else:
                found[entry] = kept
        return found

    def committed(self, key: Any) -> Any:
        """Return the committed map or list of a key; None if there is none."""
        live = self.live.get(key, _NONE)
        found = {
            inner: self.values.open(kept) for inner, kept in live.items() if not self.expired((key, inner))
        }
        if not found:
            return None
        return [found[index] for index in sorted(found)] if self.declared.kind == "list" else found

    def committed_keys(self) -> Iterator[Any]:
        """Go over the keys with a committed map or list."""
        yield from list(self.live)

    def committed_items(self) -> Iterator[tuple[Any, Any]]:
        """Go over all that is committed, with its keys."""
        for key in self.committed_keys():
            value = self.committed(key)
            if value is not None:
                yield key, value


AnyTable: TypeAlias = ValueTable | MapTable
