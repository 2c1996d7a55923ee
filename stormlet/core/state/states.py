"""States of bolts, each with its tables in all tasks, and the log of blobs in which a store keeps it (law X1, K5).

Theory of operation
-------------------
*Seal* ends the epoch: the overlay becomes a blob for the store, and goes into ``live``. :meth:`State.encode` comes
first and is all that can fail; the states of a topology are encoded before the first of them is sealed.

*The log.* Blobs say what has changed, so a store of them grows with every epoch. Each seal therefore adds
:data:`REWRITE` times as many bytes of what has not changed, key by key, in rounds over the tables of all tasks. The
store drops what is older than the round before the one that begins (see :mod:`stormlet.core.state.commits`). So it has
two rounds at most, each of the S bytes of the live keys and S / REWRITE bytes of changes: with 2, three times the live
state together. No round begins before :data:`~stormlet.core.state.rounds.LEAST_LOG` bytes of changes: a small state
would be written whole with each epoch otherwise, and no epoch but the last could be read. Nor does one where little was
replaced (:mod:`stormlet.core.state.rounds`).

After a start nothing is known of the round that was interrupted. The first round is taken for the rest of it, and is
written at once where restarts have made the log too long.

An entry that is too old by its ``ttl`` is left out by the round, which frees its memory, too (law K6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from stormlet.core.state import rounds
from stormlet.core.state.blobs import MOST_ENTRIES, bytes_of_entries, cut_into_blobs
from stormlet.core.state.codecs import Keys, Values
from stormlet.core.state.commits import Append, StateId
from stormlet.core.state.entry_reader import UNFIT, EntryReader
from stormlet.core.state.map_table import AnyTable, MapTable
from stormlet.core.state.rounds import Rounds
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import ValueTable

REWRITE: Final = 2.0
"""Bytes that are rewritten for each byte that has changed."""
LATELY: Final = 100_000
"""Entries over which the mean size is taken, about."""


class State:
    """One declared state of one bolt: a table for each task, and the log that they share."""

    def __init__(self, id: StateId, declared: Declared, tasks: int = 1, rewrite: float = REWRITE) -> None:
        keys, values = Keys(declared.key), Values(declared.value, declared.upgrade)
        where = f"bolt {id.component!r}, state {id.state!r}"
        self.id = id
        self.declared = declared
        self.tables: Sequence[AnyTable] = [self._made(task, where, keys, values) for task in range(tasks)]
        self._reader = EntryReader(id, declared, values)
        self._encoded: tuple[Sequence[dict[Any, Any]], Sequence[bytes]] | None = None
        self._rewrite = rewrite
        self._rounds = Rounds(rewrite, frees_old=declared.ttl is not None)
        self._overdue = 0.0
        """Bytes of the log that it has too many at the start."""
        self._at = 0
        """The table that the round has come to."""
        self._left: Iterator[Any] | None = None
        """The entries of it that the round has not come to; None before it begins with that table."""
        self._begins_round = True
        self._sizes = _Sizes()
        self.before: Mapping[Any, Any] = {}
        """The values that keys had before they were sealed last, None where they had none, until that is durable; empty
        while nobody remembers them."""
        self._remembers = False

    def _made(self, task: int, where: str, keys: Keys, values: Values) -> AnyTable:
        """Make the table of a task."""
        kind = ValueTable if self.declared.kind == "value" else MapTable
        return kind(where, self.declared, keys, values)

    @property
    def changes(self) -> int:
        """Number of entries that the open attempt has changed, or has read and may have changed."""
        return sum(each.changes for each in self.tables)

    @property
    def size(self) -> int:
        """Number of committed entries."""
        return sum(each.size for each in self.tables)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the keys and values that are committed, about: by the mean of the entries that were written
        lately."""
        return round(self.size * self._sizes.mean)

    def tell(self, now: float) -> None:
        """Set the time, which is that of an epoch: for ``ttl``."""
        for each in self.tables:
            each.now = now

    def roll_back(self) -> None:
        """Forget what the open attempt has changed in all tasks (law K3)."""
        self._encoded = None
        for each in self.tables:
            each.roll_back()

    def load(self, blobs: Sequence[bytes], task_of: Callable[[Any], int] | None = None) -> None:
        """Take what a store has, oldest blob first, each key into the table of the task that ``task_of`` names by its
        index; without it, into the first (law K5).

        Raises :class:`~stormlet.errors.StateUnusable`, naming the state, for what does not decode as it is declared.
        """
        for table, part in zip(self.tables, self._split(self.read(blobs), task_of), strict=True):
            table.take(part)
        self._begins_round = not blobs
        length = sum(map(len, blobs))
        self._rounds.load(length, live=self.size_in_bytes, entries=self.size)
        most = 2 * (1 + 1 / self._rewrite) * self.size_in_bytes + 2 * rounds.LEAST_LOG
        self._overdue = max(0.0, length - most)

    def read(self, blobs: Sequence[bytes]) -> dict[Any, Any]:
        """Return the entries of blobs, oldest blob first, as tables take them; raise as :meth:`load` does."""
        try:
            return self._entries(blobs)
        except MemoryError:
            raise
        except UNFIT as error:
            raise self._reader.unreadable(error) from error

    def encode(self) -> None:
        """Encode what the open attempt has changed, for :meth:`seal`. Raises :class:`TypeError`, naming state and key,
        for a value that does not fit; nothing has changed then."""
        deltas = [each.delta() for each in self.tables]
        packed = [table.packed(delta) for table, delta in zip(self.tables, deltas, strict=True)]
        self._encoded = deltas, [blob for entries in packed for blob in cut_into_blobs(entries)]

    def seal(self) -> Sequence[Append]:
        """Commit what the open attempt has changed; return it for the store, with a portion of the rest. Nothing, if
        nothing has changed."""
        if self._encoded is None:
            self.encode()
        assert self._encoded is not None
        (deltas, blobs), self._encoded = self._encoded, None
        if self._remembers:
            self.before = {
                key: table.committed(key)
                for table, delta in zip(self.tables, deltas, strict=True)
                for key in (
                    delta if self.declared.kind == "value" else dict.fromkeys(entry[0] for entry in delta)
                )
            }
        more = sum(table.merge(delta) for table, delta in zip(self.tables, deltas, strict=True))
        if not blobs:
            return ()
        changed = sum(map(len, deltas))
        self._sizes.measure(sum(map(bytes_of_entries, blobs)), changed)
        self._rounds.change(sum(map(len, blobs)), entries=changed, more=more)
        return self._written(blobs, deltas)

    def _written(self, blobs: Sequence[bytes], deltas: Sequence[Mapping[Any, Any]]) -> Sequence[Append]:
        """Return what has changed, for the store, with a portion of the rest."""
        if self._begins_round and not self._rounds.is_due:
            return [Append(self.id, blob) for blob in blobs]
        begins, self._begins_round = self._begins_round, False
        if begins:
            self._rounds.begin()
        written = [*blobs, *self._portion(sum(map(len, blobs)) * self._rewrite + self._overdue)]
        self._overdue = 0.0
        return [Append(self.id, blob, begins and number == 0) for number, blob in enumerate(written)]

    def committed(self, key: Any) -> Any:
        """Return the committed value of a key, or its map or list; None if there is none."""
        values = (table.committed(key) for table in self.tables)
        return next((value for value in values if value is not None), None)

    def committed_keys(self) -> Iterable[Any]:
        """Return the keys that have one, each once."""
        return dict.fromkeys(key for table in self.tables for key in table.committed_keys())

    def remember(self) -> None:
        """From now on, keep what a seal changes until it is durable: somebody looks at what is."""
        self._remembers = True

    def told(self) -> None:
        """Note that the sealed epoch is durable."""
        self.before = {}

    def _portion(self, size: float) -> Iterator[bytes]:
        """Go on with the round for so many bytes, or to its end."""
        while size > 0:
            table = self.tables[self._at]
            if self._left is None:
                self._left = table.entries()
            wanted = max(1, min(MOST_ENTRIES, int(size / self._sizes.mean)))
            taken = list(islice(self._left, wanted))
            for blob in cut_into_blobs(table.in_log(table.portion(taken))):
                size -= len(blob)
                self._rounds.write(len(blob))
                yield blob
            if len(taken) < wanted:
                self._go_on()
                if self._begins_round:
                    return

    def _go_on(self) -> None:
        """Go to the next table; after the last one the round is over."""
        self._at = (self._at + 1) % len(self.tables)
        self._left = None
        self._begins_round = self._at == 0
        if self._begins_round:
            self._rounds.end()

    def _entries(self, blobs: Sequence[bytes]) -> dict[Any, Any]:
        """Return the kept forms of the newest values; where there is a ``ttl``, with their times."""
        entries: dict[Any, Any] = {}
        for blob in blobs:
            found = self._reader.decode(blob)
            self._sizes.measure(bytes_of_entries(blob), len(found))
            entries.update(found)
        return self._reader.kept(entries)

    def _split(
        self, entries: dict[Any, Any], task_of: Callable[[Any], int] | None
    ) -> Sequence[dict[Any, Any]]:
        parts: list[dict[Any, Any]] = [{} for _ in self.tables]
        if task_of is None or len(parts) == 1:
            return [entries, *parts[1:]]
        single = self.declared.kind == "value"
        for entry, kept in entries.items():
            parts[task_of(entry if single else entry[0])][entry] = kept
        return parts


class _Sizes:
    """The mean size of the entries that were encoded or decoded lately."""

    def __init__(self) -> None:
        self._bytes = 0
        self._entries = 0

    @property
    def mean(self) -> float:
        return self._bytes / self._entries if self._entries else 1.0

    def measure(self, size: int, entries: int) -> None:
        self._bytes += size
        self._entries += entries
        if self._entries > LATELY:
            self._bytes, self._entries = self._bytes // 2, self._entries // 2
