"""Entries that are too old, found bit by bit, as the rounds of a log find them (law K6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

from stormlet.core.state.blobs import PAIR, bytes_of_key
from stormlet.core.state.lazy.reading import KeptEntries, is_too_old
from stormlet.core.state.tables import Table

LEAST: Final = 1000
"""Entries that are looked at with each epoch, at least."""
MORE: Final = 2
"""Entries that are looked at for each one that has changed."""

Group: TypeAlias = list[tuple[Any, float]]
"""Entries that live equally long, with their times: one alone, or all of a list."""


class Sweep:
    """Goes over the entries of a state with a ``ttl``, round after round."""

    def __init__(self, stored: KeptEntries, table: Table) -> None:
        """``table`` is any one of the state: it has the ``ttl``, and the time."""
        self._stored = stored
        self._table = table
        self._kind = table.declared.kind
        self._at = b""
        """The bytes of the entry that comes next."""

    def old(self, changed: Mapping[Any, Any]) -> list[Any]:
        """Return some entries that are too old; none that the epoch has ``changed``, and none of a list that it has."""
        renewed = dict.fromkeys(map(self._stamp, changed))
        wanted = LEAST + MORE * len(changed)
        found: list[Any] = []
        for group in self._groups():
            first = group[0][0]
            if wanted <= 0:
                self._at = self._bytes_of(first)
                return found
            wanted -= len(group)
            newest = max(written for _, written in group)
            if is_too_old(self._table, newest) and self._stamp(first) not in renewed:
                found += [entry for entry, _ in group]
        self._at = b""
        return found

    def _stamp(self, entry: Any) -> Any:
        return entry[0] if self._kind == "list" else entry

    def _groups(self) -> Iterator[Group]:
        times = ((entry, written) for entry, (written, _) in self._stored.scan(begin=self._at))
        if self._kind != "list":
            return ([each] for each in times)
        return (list(group) for _, group in groupby(times, key=lambda each: self._stamp(each[0])))

    def _bytes_of(self, entry: Any) -> bytes:
        if self._kind == "value":
            return bytes_of_key(entry)
        key, inner = entry
        return PAIR + bytes_of_key(key) + bytes_of_key(inner)
