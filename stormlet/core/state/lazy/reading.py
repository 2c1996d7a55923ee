"""The entries of one state in a store, as the state is declared."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from stormlet.core.state.commits import Entries
from stormlet.core.state.entry_reader import UNFIT, EntryReader
from stormlet.core.state.tables import Kind, Table


class KeptEntries:
    """Reads entries in their kept forms. Where there is a ``ttl``, each is the pair of its time and its kept form.

    Methods raise :class:`~stormlet.errors.StateUnusable`, naming the state, for an entry that is not as it is declared.
    """

    def __init__(self, entries: Entries, reader: EntryReader, kind: Kind) -> None:
        self._entries = entries
        self._reader = reader
        self._is_single = kind == "value"

    def get(self, key: bytes) -> Any:
        """Return one by the bytes of its key; None if there is none."""
        blob = self._entries.get(key)
        return None if blob is None else self.read(blob)[1]

    def scan(self, prefix: bytes = b"", begin: bytes = b"") -> Iterator[tuple[Any, Any]]:
        """Iterate over those whose keys begin so, with their keys; ``begin`` leaves out smaller ones."""
        return map(self.read, self._entries.scan(prefix, begin))

    def distinct(self) -> Iterator[Any]:
        """Iterate over the keys that have an entry, each once: those of one map or list stand together."""
        if self._is_single:
            return (key for key, _ in self.scan())
        return (key for key, _ in groupby(entry[0] for entry, _ in self.scan()))

    def last(self, prefix: bytes) -> Any:
        """Return the key of the last one of these; None if there is none."""
        blob = self._entries.last(prefix)
        return None if blob is None else self.read(blob)[0]

    def read(self, blob: bytes) -> tuple[Any, Any]:
        """Return the key of an entry, and the entry."""
        try:
            ((key, kept),) = self._reader.kept(self._reader.decode(blob)).items()
        except UNFIT as error:
            raise self._reader.unreadable(error) from error
        return key, kept


def is_too_old(table: Table, written: float) -> bool:
    """Return True for an entry of this time where it has outlived its ``ttl``."""
    return written + (table.declared.ttl or 0.0) <= table.now
