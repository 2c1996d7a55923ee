"""The table of one value for each key; see :mod:`~stormlet.core.state.tables`.

Bolts read and write it for every tuple, so it runs compiled where it can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stormlet.core.state.codecs import Keys, Values
from stormlet.core.state.tables import Declared, Table


class ValueTable(Table):
    """One value for each key."""

    __slots__ = ("changed", "live")

    def __init__(self, where: str, declared: Declared, keys: Keys, values: Values) -> None:
        Table.__init__(self, where, declared, keys, values)
        self.live: dict[Any, Any] = {}
        self.changed: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """Return the value of this key as the open attempt has left it; None if there is none."""
        changed = self.changed
        if not self.immutable:
            self.touched = True
        value = changed.get(key)
        if value is not None or key in changed:
            return value
        kept = self.live.get(key)
        if kept is None or (self.timed and self.expired(key)):
            return None
        if not self.immutable:
            changed[self.fit_key(key)] = kept = self.values.open(kept)
        return kept

    def put(self, key: Any, value: Any) -> None:
        """Set the value of this key; None deletes it. Raise :class:`TypeError`, naming the state, for a key or a value
        that cannot be kept."""
        if value is None:
            self.delete(key)
            return
        if not self.values.fits(value):
            value = self.fit_value(key, value)
        changed = self.changed
        before = len(changed)
        changed[key] = value
        if len(changed) > before:  # so that a key that has changed before is looked up only once
            key = self._fitted(key, value)
        self.touched = True
        if self.timed:
            self.renewed[key] = None

    def _fitted(self, key: Any, value: Any) -> Any:
        """Return the key of an entry that is new in the overlay as it is kept; take the entry out again if it cannot
        be."""
        try:
            fitted = self.fit_key(key)
        except BaseException:
            del self.changed[key]
            raise
        if fitted is not key:
            del self.changed[key]
            self.changed[fitted] = value
        return fitted

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
        self.renewed = {}

    def delta(self) -> dict[Any, Any]:
        """Return the kept form of each changed value."""
        if self.immutable:
            return self.changed
        found: dict[Any, Any] = {}
        for key, value in self.changed.items():
            kept = None if value is None else self.keep(key, value)
            if kept is None or kept != self.live.get(key) or key in self.renewed:
                found[key] = kept
        return found

    def merge(self, delta: dict[Any, Any]) -> int:
        """Commit these values, and clear the overlay. Returns by how many keys there are more."""
        self.note(delta)
        before = len(self.live)
        self.live.update(delta)
        for key in without_value(delta):
            del self.live[key]
            self.written.pop(key, None)
        self.changed = {}
        return len(self.live) - before

    def take(self, entries: dict[Any, Any]) -> None:
        """Begin with these values, beside those that it has begun with."""
        entries = self.untimed(entries)
        if self.live:
            self.live.update(entries)
        else:
            self.live = entries

    def entries(self) -> Iterator[Any]:
        """Go over the keys that are committed now."""
        return iter(list(self.live))

    def portion(self, entries: list[Any]) -> dict[Any, Any]:
        """Return the kept forms of these values; forget those that are too old."""
        live = self.live
        if self.timed:
            for entry in entries:
                if entry in live and self.expired(entry):
                    del live[entry], self.written[entry]
        found: dict[Any, Any] = {}
        for entry in entries:
            kept = live.get(entry)  # one look for each, as memory is slow
            if kept is not None:
                found[entry] = kept
        return found

    def committed(self, key: Any) -> Any:
        """Return the committed value of a key; None if there is none."""
        kept = self.live.get(key)
        return None if kept is None or self.expired(key) else self.values.open(kept)

    def committed_keys(self) -> Iterator[Any]:
        """Go over the keys with a committed value."""
        yield from list(self.live)

    def committed_items(self) -> Iterator[tuple[Any, Any]]:
        """Go over all that is committed, with its keys."""
        for key in self.committed_keys():
            value = self.committed(key)
            if value is not None:
                yield key, value


def without_value(entries: dict[Any, Any]) -> list[Any]:
    """Return the keys of the entries that are None: of what is deleted."""
    return [key for key, kept in entries.items() if kept is None]
