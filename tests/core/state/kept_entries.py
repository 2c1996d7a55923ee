"""A store of one state that finds each entry by its key, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stormlet.core.state.blobs import canonical, pairs_in
from stormlet.core.state.codecs import NIL
from stormlet.core.state.commits import Append


class KeptInMemory:
    """Has the entries of the last epoch that was written; the one before may be on its way."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.on_its_way: Sequence[Append] = ()
        self.reads = 0

    def write(self) -> None:
        """What is on its way has come."""
        for append in self.on_its_way:
            for key, value in pairs_in(append.blob):
                if value == NIL:
                    self.entries.pop(canonical(key), None)
                else:
                    self.entries[canonical(key)] = b"\x81" + key + value
        self.on_its_way = ()

    def get(self, key: bytes) -> bytes | None:
        self.reads += 1
        return self.entries.get(key)

    def scan(self, prefix: bytes = b"", begin: bytes = b"") -> Iterator[bytes]:
        self.reads += 1
        keys = sorted(key for key in self.entries if key.startswith(prefix) and key >= begin)
        return iter([self.entries[key] for key in keys])

    def last(self, prefix: bytes) -> bytes | None:
        self.reads += 1
        keys = [key for key in self.entries if key.startswith(prefix)]
        return self.entries[max(keys)] if keys else None
