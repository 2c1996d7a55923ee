"""Keyed state in memory: what is committed, and what the open attempt has changed (law K2, K3, K6).

Theory of operation
-------------------
A table is one declared state in one task: ``live``, what is committed, and ``changed``, the overlay of the open
attempt. Reading asks the overlay, then ``live``; a change goes to the overlay alone. So an attempt is rolled back by an
empty overlay, and nobody who reads what is committed sees half an epoch. ``None`` means deleted, in the overlay and in
the store. The key of a map's entry is the pair of its key and its own key; a list is a map from its indexes.

A value that can change is copied into the overlay when it is first read: a change in place is then a change like any
other, and cannot be forgotten. What was read but has the same bytes as before is not written.

*ttl.* Time stands still within an epoch, so that all it writes has one time, which is noted when it is committed. A
value that is too old reads as absent (law K6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from stormlet.core.codecs import Keys, Values, words_of
from stormlet.core.commits import Shape

Kind = Literal["value", "map", "list"]


class Declared(msgspec.Struct, frozen=True):
    """The types of one state, as a bolt declares it."""

    kind: Kind
    value: Any
    """The type of a value, or of an entry."""
    inner: Any = None
    """The type of a map's own keys; int for a list."""
    key: Any = Any
    """The type of the keys that the bolt is grouped by."""
    ttl: float | None = None
    """Seconds after which a value that was not written again reads as absent (law K6)."""
    upgrade: Callable[[Any], Any] | None = None

    @property
    def entry(self) -> Any:
        """The type of the keys in a blob."""
        return self.key if self.kind == "value" else _pair(self.key, self.inner)

    @property
    def shape(self) -> Shape:
        """The types in words, for the store."""
        value = words_of(self.value)
        words = {"value": value, "map": f"dict[{words_of(self.inner)}, {value}]", "list": f"list[{value}]"}
        return Shape(self.kind, words_of(self.key), words[self.kind])


def _pair(key: Any, inner: Any) -> Any:
    return tuple[key, inner]


class Table(ABC):
    """One state in one task."""

    def __init__(self, where: str, declared: Declared, keys: Keys, values: Values) -> None:
        self.where = where
        """Opens error messages; it names the component and the state."""
        self.declared = declared
        self.keys = keys
        self.values = values
        self.now = 0.0
        """The time of the epoch, for ``ttl``."""
        self.written: dict[Any, float] = {}
        """The time of each entry, where there is a ``ttl``; of a list, that of its newest item by the list's key."""
        self.renewed: set[Any] = set()
        """Entries that the open attempt has set, where there is a ``ttl``: they are written even if they are equal."""
        self.touched = False
        """True if something was changed, or was read that can be changed in place; whoever asks sets it back."""

    @property
    @abstractmethod
    def changes(self) -> int:
        """Number of entries that the open attempt has changed, or has read and may have changed."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of committed entries."""

    @abstractmethod
    def roll_back(self) -> None:
        """Forget what the open attempt has changed (law K3)."""

    @abstractmethod
    def delta(self) -> Mapping[Any, Any]:
        """Return the kept form of each changed entry, None for a deleted one; raise :class:`TypeError` for a value that
        does not fit."""

    @abstractmethod
    def merge(self, delta: Mapping[Any, Any]) -> None:
        """Commit these entries, and clear the overlay."""

    @abstractmethod
    def entries(self) -> Iterator[Any]:
        """Go over the keys of all entries that are committed when it begins; some may be gone when they are met."""

    @abstractmethod
    def portion(self, entries: Sequence[Any]) -> Mapping[Any, Any]:
        """Return the kept forms of these entries, as far as they are committed; forget those that are too old."""

    def in_log(self, entries: Sequence[Any]) -> Mapping[Any, Any]:
        """Return these entries as they are in the log, as far as they are committed."""
        kept = self.portion(entries)
        if self.declared.ttl is None:
            return self.packed(kept)
        return {entry: self.pack(each, self.time_of(entry)) for entry, each in kept.items()}

    @abstractmethod
    def committed(self, key: Any) -> Any:
        """Return what is committed for this key, as an object of its own; None if there is nothing."""

    @abstractmethod
    def committed_keys(self) -> Iterator[Any]:
        """Go over all keys for which something is committed."""

    def committed_items(self) -> Iterator[tuple[Any, Any]]:
        """Go over all that is committed, with its keys."""
        for key in self.committed_keys():
            value = self.committed(key)
            if value is not None:
                yield key, value

    def expired(self, entry: Any) -> bool:
        """Return True if an entry was not written for longer than the ``ttl``."""
        ttl = self.declared.ttl
        return ttl is not None and self.time_of(entry) + ttl <= self.now

    def time_of(self, entry: Any) -> float:
        """Return the time when a committed entry was written, where there is a ``ttl``."""
        return self.written.get(self._stamp(entry), self.now)

    def _stamp(self, entry: Any) -> Any:
        return entry[0] if self.declared.kind == "list" else entry

    def fit_key(self, key: Any) -> Any:
        """Return the key as it is kept; raise :class:`TypeError`, naming the state, if it cannot be kept."""
        try:
            return self.keys.fit(key)
        except TypeError as error:
            raise TypeError(f"{self.where}: {error}") from None

    def fit_value(self, key: Any, value: Any) -> Any:
        """Return the value as the overlay has it; raise :class:`TypeError`, naming state and key, for one that does not
        fit."""
        try:
            return self.values.fit(value)
        except TypeError as error:
            raise TypeError(f"{self.where}, key {key!r}: {error}") from None

    def keep(self, key: Any, value: Any) -> Any:
        """Return the kept form of a value."""
        try:
            return self.values.keep(value)
        except TypeError as error:
            raise TypeError(f"{self.where}, key {key!r}: {error}") from None

    @abstractmethod
    def take(self, entries: dict[Any, Any]) -> None:
        """Begin with these entries; where there is a ``ttl``, with their times."""

    def packed(self, delta: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return changed entries as they are in the log."""
        if self.values.immutable and self.declared.ttl is None:
            return delta
        return {entry: None if kept is None else self.pack(kept, self.now) for entry, kept in delta.items()}

    def pack(self, kept: Any, written: float) -> Any:
        """Return an entry as it is in the log."""
        raw = kept if self.values.immutable else msgspec.Raw(kept)
        return raw if self.declared.ttl is None else (written, raw)

    def untimed(self, entries: dict[Any, Any]) -> dict[Any, Any]:
        """Note the times of entries that begin, and return them without."""
        if self.declared.ttl is None:
            return entries
        for entry, (written, _) in entries.items():
            stamp = self._stamp(entry)
            self.written[stamp] = max(written, self.written.get(stamp, written))
        return {entry: kept for entry, (_, kept) in entries.items()}

    def note(self, delta: Mapping[Any, Any]) -> None:
        """Note the time of what is committed now."""
        if self.declared.ttl is not None:
            self.written |= {
                self._stamp(entry): self.now for entry, kept in delta.items() if kept is not None
            }
            self.renewed = set()


class ValueTable(Table):
    """One value for each key."""

    def __init__(self, where: str, declared: Declared, keys: Keys, values: Values) -> None:
        super().__init__(where, declared, keys, values)
        self.live: dict[Any, Any] = {}
        self.changed: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """Return the value of this key as the open attempt has left it; None if there is none."""
        changed, mutable = self.changed, not self.values.immutable
        self.touched |= mutable
        if key in changed:
            return changed[key]
        kept = self.live.get(key)
        if kept is None or self.expired(key):
            return None
        if mutable:
            changed[self.fit_key(key)] = kept = self.values.open(kept)
        return kept

    def put(self, key: Any, value: Any) -> None:
        """Set the value of this key; None deletes it. Raise :class:`TypeError`, naming the state, for a key or a value
        that cannot be kept."""
        if value is None:
            self.delete(key)
            return
        value = self.fit_value(key, value)
        if key not in self.changed:
            key = self.fit_key(key)
        self.changed[key] = value
        self.touched = True
        if self.declared.ttl is not None:
            self.renewed.add(key)

    def delete(self, key: Any) -> None:
        """Delete the value of this key."""
        self.touched = True
        if key in self.live:
            self.changed[self.fit_key(key)] = None
        else:
            self.changed.pop(key, None)

    @property
    def changes(self) -> int:
        """Number of keys that the open attempt has changed, or has read and may have changed."""
        return len(self.changed)

    @property
    def size(self) -> int:
        """Number of committed keys."""
        return len(self.live)

    def roll_back(self) -> None:
        """Forget what the open attempt has changed; a call that still runs changes what nobody reads (law K3)."""
        self.changed = {}
        self.renewed = set()

    def delta(self) -> Mapping[Any, Any]:
        """Return the kept form of each changed value."""
        if self.values.immutable:
            return self.changed
        found: dict[Any, Any] = {}
        for key, value in self.changed.items():
            kept = None if value is None else self.keep(key, value)
            if kept is None or kept != self.live.get(key) or key in self.renewed:
                found[key] = kept
        return found

    def merge(self, delta: Mapping[Any, Any]) -> None:
        """Commit these values, and clear the overlay."""
        self.note(delta)
        self.live.update(delta)
        for key in [key for key, kept in delta.items() if kept is None]:
            del self.live[key]
            self.written.pop(key, None)
        self.changed = {}

    def take(self, entries: dict[Any, Any]) -> None:
        """Begin with these values."""
        self.live = self.untimed(entries)

    def entries(self) -> Iterator[Any]:
        """Go over the keys that are committed when it begins."""
        yield from list(self.live)

    def portion(self, entries: Sequence[Any]) -> Mapping[Any, Any]:
        """Return the kept forms of these values; forget those that are too old."""
        live = self.live
        if self.declared.ttl is not None:
            for entry in entries:
                if entry in live and self.expired(entry):
                    del live[entry], self.written[entry]
        found = dict(zip(entries, map(live.get, entries), strict=True))  # one look for each, as memory is slow
        for entry in [entry for entry, kept in found.items() if kept is None]:
            del found[entry]
        return found

    def committed(self, key: Any) -> Any:
        """Return the committed value of a key; None if there is none."""
        kept = self.live.get(key)
        return None if kept is None or self.expired(key) else self.values.open(kept)

    def committed_keys(self) -> Iterator[Any]:
        """Go over the keys with a committed value."""
        yield from list(self.live)


class _Changes:
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
        self.changed: dict[Any, _Changes] = {}

    def get(self, key: Any, inner: Any) -> Any:
        """Return one entry of the map of this key; None if there is none."""
        changes, mutable = self.changed.get(key), not self.values.immutable
        self.touched |= mutable
        if changes is not None and inner in changes.entries:
            return changes.entries[inner]
        kept = self.live.get(key, _NONE).get(inner)
        if kept is None or self.expired((key, inner)):
            return None
        if mutable:
            self._changes(key).entries[self._fit_inner(inner)] = kept = self.values.open(kept)
        return kept

    def put(self, key: Any, inner: Any, value: Any) -> None:
        """Set one entry of the map of this key; None deletes it."""
        if value is not None:
            value = self.fit_value((key, inner), value)
        changes, inner = self._changes(key), self._fit_inner(inner)
        self.touched = True
        if self.declared.ttl is not None:
            self.renewed.add((key, inner))
        changes.size += (value is not None) - self._has(changes.entries, key, inner)
        if value is None and inner not in self.live.get(key, _NONE):
            changes.entries.pop(inner, None)
        else:
            changes.entries[inner] = value

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
        if self.declared.ttl is None:
            return len(live)
        return sum(not self.expired((key, inner)) for inner in live)

    def _changes(self, key: Any) -> _Changes:
        changes = self.changed.get(key)
        if changes is None:
            changes = self.changed[self.fit_key(key)] = _Changes(self._live_length(key))
            if (
                self.declared.kind == "list" and not changes.size
            ):  # its items may be too old: they must not come back
                changes.entries = dict.fromkeys(self.live.get(key, _NONE))
        return changes

    def _fit_inner(self, inner: Any) -> Any:
        try:
            return self.inner_keys.fit(inner)
        except TypeError as error:
            raise TypeError(f"{self.where}: {error}") from None

    @property
    def changes(self) -> int:
        """Number of entries that the open attempt has changed, or has read and may have changed."""
        return sum(len(each.entries) for each in self.changed.values())

    @property
    def size(self) -> int:
        """Number of committed entries."""
        return sum(map(len, self.live.values()))

    def roll_back(self) -> None:
        """Forget what the open attempt has changed; a call that still runs changes what nobody reads (law K3)."""
        self.changed = {}
        self.renewed = set()

    def delta(self) -> Mapping[Any, Any]:
        """Return the kept form of each changed entry, by the pair of its key and its own key."""
        found: dict[Any, Any] = {}
        for key, changes in self.changed.items():
            live = self.live.get(key, _NONE)
            for inner, value in changes.entries.items():
                kept = None if value is None else self.keep((key, inner), value)
                if (
                    self.values.immutable
                    or kept is None
                    or kept != live.get(inner)
                    or (key, inner) in self.renewed
                ):
                    found[key, inner] = kept
        return found

    def merge(self, delta: Mapping[Any, Any]) -> None:
        """Commit these entries, and clear the overlay."""
        self.note(delta)
        for (key, inner), kept in delta.items():
            if kept is not None:
                self.live.setdefault(key, {})[inner] = kept
            else:
                self._forget(key, inner)
        self.changed = {}

    def take(self, entries: dict[Any, Any]) -> None:
        """Begin with these entries."""
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

    def portion(self, entries: Sequence[Any]) -> Mapping[Any, Any]:
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


AnyTable: TypeAlias = ValueTable | MapTable
