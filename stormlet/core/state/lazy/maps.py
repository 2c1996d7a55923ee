"""The committed entries of one map, or of one list, as far as they are at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from stormlet.core.state.blobs import PAIR, bytes_of_key
from stormlet.core.state.lazy.reading import KeptEntries, is_too_old
from stormlet.core.state.map_table import MapTable

AT_ONCE: Final = 100
"""Entries that are read together when a key is met: most maps have fewer, and are then at hand as a whole."""


class LazyMap(Mapping[Any, Any]):
    """The kept forms of the entries of one key, for the length of one epoch."""

    __slots__ = (
        "_before",
        "_is_list",
        "_prefix",
        "_stored",
        "_table",
        "_times_before",
        "is_whole",
        "known",
        "newest",
        "written",
    )

    def __init__(self, table: MapTable, stored: KeptEntries, key: Any, former: LazyMap | None) -> None:
        """``former`` is the map of this key in the epoch before, which knows what that has written."""
        self._table = table
        self._stored = stored
        self._prefix = PAIR + bytes_of_key(key)
        self._is_list = table.declared.kind == "list"
        self.known: dict[Any, Any] = {}
        """The entries that are at hand; None for one that there is not."""
        self.written: dict[Any, float] = {}
        """Their times, where there is a ``ttl``."""
        self.newest = table.now
        """The time of the newest entry of a list, which lives as long as that does; so one with a ``ttl`` is always
        read as a whole."""
        self._before: Mapping[Any, Any] = {} if former is None else former.known
        self._times_before: Mapping[Any, float] = {} if former is None else former.written
        self.is_whole: bool = former is not None and former.is_whole and len(former.known) <= AT_ONCE
        """True if all entries are at hand."""
        if not self.is_whole:
            self.is_whole = self._read_first()
        if self.is_whole:
            found = self.known | self._before
            # Without those that are gone: of each that is put off in each epoch there would be one more.
            self.known = {inner: kept for inner, kept in found.items() if kept is not None}
            self.written |= self._times_before
        self.newest = max(self.written.values(), default=table.now)

    def _read_first(self) -> bool:
        """Read the first entries. Returns True if these are all."""
        most = None if self._is_list and self._table.timed else AT_ONCE
        left = self._stored.scan(self._prefix)
        for (_, inner), found in islice(left, most):
            self._note(inner, found)
        return next(left, None) is None

    def _note(self, inner: Any, found: Any) -> Any:
        """Have an entry of the store at hand, unless it is known better; return its kept form."""
        if inner in self._before:
            kept = self._before[inner]
            if inner in self._times_before:
                self.written[inner] = self._times_before[inner]
        elif found is not None and self._table.timed:
            self.written[inner], kept = found
        else:
            kept = found
        self.known[inner] = kept
        return kept

    def kept(self, inner: Any) -> Any:
        """Return the kept form of an entry; None if there is none."""
        if inner in self.known or self.is_whole:
            return self.known.get(inner)
        inner = self._table.fit_inner(inner)
        is_known = inner in self._before
        return self._note(inner, None if is_known else self._stored.get(self._prefix + bytes_of_key(inner)))

    def time_of(self, inner: Any) -> float:
        """Return the time of an entry that is at hand, where there is a ``ttl``; of a list, that of its newest item."""
        if self._is_list:
            return self.newest
        times = self.written if inner in self.known else self._times_before
        return times.get(inner, self._table.now)

    def put(self, inner: Any, kept: Any) -> int:
        """Commit an entry, None for one that is deleted; return by how many entries there are more."""
        more = (kept is not None) - (self.kept(inner) is not None)
        self.known[inner] = kept
        if kept is None:
            self.written.pop(inner, None)
        elif self._table.timed:
            self.written[inner] = self.newest = self._table.now
        return more

    def __getitem__(self, inner: Any) -> Any:
        kept = self.kept(inner)
        if kept is None:
            raise KeyError(inner)
        return kept

    def __contains__(self, inner: object) -> bool:
        return self.kept(inner) is not None

    def __iter__(self) -> Iterator[Any]:
        known = self.known if self.is_whole else {**self._before, **self.known}
        yield from [inner for inner, kept in known.items() if kept is not None]
        if not self.is_whole:
            # Not kept, as there may be more than there is memory for.
            for (_, inner), found in self._stored.scan(self._prefix):
                if inner not in known and not (self._table.timed and is_too_old(self._table, found[0])):
                    yield inner

    def __len__(self) -> int:
        if self._is_list and not self.is_whole:
            return self._length_of_list()
        return sum(1 for _ in self)

    def _length_of_list(self) -> int:
        """Return the length of a list by its last item in the store, and what is being written behind that."""
        last, known = self._stored.last(self._prefix), {**self._before, **self.known}
        length = 0 if last is None else last[1] + 1
        while length and (length - 1) in known and known[length - 1] is None:
            length -= 1
        while known.get(length) is not None:
            length += 1
        return length
