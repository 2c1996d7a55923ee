"""Keyed state in memory: what is committed, and what the open attempt has changed (law K2, K3, K6). Here is what all
tables share; :mod:`~stormlet.core.state.value_table` and :mod:`~stormlet.core.state.map_table` have the two kinds.

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

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from stormlet.core.shortened import shortened
from stormlet.core.state.codecs import Keys, Values, words_of
from stormlet.core.state.commits import Shape

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
        # Whoever reads the store without the program must know that each entry has its time.
        kind = self.kind if self.ttl is None else f"{self.kind} with ttl"
        return Shape(kind, words_of(self.key), words[self.kind])


def _pair(key: Any, inner: Any) -> Any:
    return tuple[key, inner]


class Table:
    """One state in one task: what both kinds of tables share."""

    __slots__ = (
        "_ttl",
        "declared",
        "immutable",
        "keys",
        "now",
        "renewed",
        "timed",
        "touched",
        "values",
        "where",
        "written",
    )

    def __init__(self, where: str, declared: Declared, keys: Keys, values: Values) -> None:
        self.where = where
        """Opens error messages; it names the component and the state."""
        self.declared = declared
        self.keys = keys
        self.values = values
        self.immutable = values.immutable
        """True if no value can change in place."""
        self.timed = declared.ttl is not None
        """True if there is a ``ttl``."""
        self._ttl = declared.ttl or 0.0
        self.now = 0.0
        """The time of the epoch, for ``ttl``."""
        self.written: dict[Any, float] = {}
        """The time of each entry, where there is a ``ttl``; of a list, that of its newest item by the list's key."""
        self.renewed: dict[Any, None] = {}
        """Entries that the open attempt has set, where there is a ``ttl``: they are written even if they are equal."""
        self.touched = False
        """True if something was changed, or was read that can be changed in place; whoever asks sets it back."""

    def in_log(self, kept: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return committed entries, of which these are the kept forms, as they are in the log."""
        if not self.timed:
            return self.packed(kept)
        return {entry: self.pack(each, self.time_of(entry)) for entry, each in kept.items()}

    def expired(self, entry: Any) -> bool:
        """Return True if an entry was not written for longer than the ``ttl``."""
        return self.timed and self.time_of(entry) + self._ttl <= self.now

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
            raise TypeError(f"{self.where}, key {shortened(key)}: {error}") from None

    def keep(self, key: Any, value: Any) -> Any:
        """Return the kept form of a value."""
        try:
            return self.values.keep(value)
        except TypeError as error:
            raise TypeError(f"{self.where}, key {shortened(key)}: {error}") from None

    def packed(self, delta: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return changed entries as they are in the log."""
        if self.immutable and not self.timed:
            return delta
        return {entry: None if kept is None else self.pack(kept, self.now) for entry, kept in delta.items()}

    def pack(self, kept: Any, written: float) -> Any:
        """Return an entry as it is in the log."""
        raw = kept if self.immutable else msgspec.Raw(kept)
        return (written, raw) if self.timed else raw

    def untimed(self, entries: dict[Any, Any]) -> dict[Any, Any]:
        """Note the times of entries that begin, and return them without."""
        if not self.timed:
            return entries
        for entry, (written, _) in entries.items():
            stamp = self._stamp(entry)
            self.written[stamp] = max(written, self.written.get(stamp, written))
        return {entry: kept for entry, (_, kept) in entries.items()}

    def note(self, delta: Mapping[Any, Any]) -> None:
        """Note the time of what is committed now."""
        if self.timed:
            self.written |= {
                self._stamp(entry): self.now for entry, kept in delta.items() if kept is not None
            }
            self.renewed = {}
