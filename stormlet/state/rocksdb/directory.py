"""The directory that a topology's state is kept in where it does not fit into memory.

Theory of operation
-------------------
RocksDB is the key-value store that it is: each entry of a state is a record of its own, found by its key, and the run
reads it when a bolt asks for it (:mod:`stormlet.core.state.lazy`). A commit is one batch, with what has changed,
positions, outgoing rows and dead letters. RocksDB writes it to its log whole or not at all, and it is fsynced when
``commit`` returns. A log whose end was cut off by a kill or a loss of power loses the epoch that was being written,
which nobody was told of.

There is no log of blobs and there are no rounds: a record takes the place of the one before. So the last epoch alone
can be read, and there is no history. RocksDB keeps its files short by itself, in threads of its own.

RocksDB has a checksum for each of its blocks, and a note beside it has the last epoch (``epoch_note``). A run goes over
all entries when it begins, and so finds what the disk has changed, and what is not as the topology declares it.

One run at a time owns a directory, by a lock on ``….lock`` beside it, and by RocksDB's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from rocksdict import WriteBatch

from stormlet.core.state.blobs import canonical, pairs_in
from stormlet.core.state.codecs import NIL
from stormlet.core.state.commits import Append, Commit, Shape, StateId, Stored
from stormlet.errors import StateUnusable
from stormlet.files import FileClaim, sync
from stormlet.state.claims import take
from stormlet.state.interfaces import Rewound
from stormlet.state.places import absolute
from stormlet.state.refusals import refuse_gap, refuse_large
from stormlet.state.rocksdb import renaming
from stormlet.state.rocksdb.database import Database, new_batch
from stormlet.state.rocksdb.epoch_note import EpochNote, noted
from stormlet.state.rocksdb.layout import (
    HEAD,
    LETTERS,
    OUTBOX,
    POSITIONS,
    Head,
    LetterRow,
    OutboxRow,
    StateRow,
    another_line,
    check_topology,
    encoded,
    head_of,
    is_new,
    new_head,
    numbered,
    prefix_of,
    state_key,
    state_rows,
    undelivered,
)
from stormlet.state.rocksdb.reading import DirectoryReader, check_place, load, refuse_past

ENTRY = b"\x81"
"""The first byte of a blob of one entry."""


class StateDirectory:
    """One run's hold on a directory: a :class:`~stormlet.core.state.commits.Store`. Methods block, and raise
    :class:`~stormlet.errors.StateUnusable`."""

    def __init__(self, path: str | os.PathLike[str], topology: str | None = None) -> None:
        """Open a directory, and make it if it is missing. Without a topology it must exist, and may be any
        topology's."""
        self._path = absolute(path)
        check_place(self._path)
        if topology is None and is_new(self._path):
            raise StateUnusable(f"there is no state in {self._path}; a run with state= makes it")
        self._claim = FileClaim(self._path)
        take(self._claim, self._path, "" if topology is None else ", or give this run another directory")
        try:
            self._database = _opened(self._path, topology)
            try:
                self._note = EpochNote(self._path)
                self._read()
            except BaseException:
                self._database.close()
                raise
        except BaseException:
            self._claim.release()
            raise

    def _read(self) -> None:
        self._head = head_of(self._database)
        self._numbers: dict[StateId, int] = {id: row.number for id, row in state_rows(self._database)}

        # In memory too: to look for them would go over all those that were delivered, until RocksDB forgets these.
        self._outbox = {
            number: (row.committer, row.epoch)
            for number, row in undelivered(self._database, OUTBOX, OutboxRow)
        }
        self._letters = {number: row.epoch for number, row in undelivered(self._database, LETTERS, LetterRow)}
        self._last = max((*self._outbox, *self._letters, 0))
        """The number of the last record that has one."""

    def load(self) -> Stored:
        """All that is durable. Entries are read when they are asked for."""
        return load(self._database, self._head, self._numbers)

    def declare(self, shapes: Mapping[StateId, Shape]) -> None:
        """Note the types that the program has declared."""
        batch = new_batch()
        for id, shape in shapes.items():
            self._put_state(batch, id, shape)
        self._database.write(batch)

    def _put_state(self, batch: WriteBatch, id: StateId, shape: Shape | None) -> int:
        number = self._numbers.get(id)
        if number is None:
            number = max((*self._numbers.values(), 0)) + 1
            self._numbers[id] = number
        batch.put(state_key(id), encoded(StateRow(number, shape)))
        return number

    def commit(self, commit: Commit) -> None:
        """Make this epoch durable, as a whole. If the disk itself fails, the next run may find it so in spite of the
        error."""
        self._refuse(commit)
        batch = new_batch()
        self._deliver(batch, commit.delivered, commit.letters_delivered)
        for task, position in commit.positions.items():
            batch.put(POSITIONS + task.encode(), position)
        for rows in commit.outbox:
            self._outbox[self._next()] = rows.committer, rows.epoch
            row = OutboxRow(rows.epoch, rows.committer, rows.blob)
            batch.put(numbered(OUTBOX, self._last), encoded(row))
        for letter in commit.letters:
            self._letters[self._next()] = commit.epoch
            batch.put(numbered(LETTERS, self._last), encoded(LetterRow(commit.epoch, letter)))
        for append in commit.appends:
            self._put_entries(batch, append)
        head = msgspec.structs.replace(self._head, epoch=commit.epoch, closed_at=float(commit.closed_at))
        self._write_head(batch, head)
        self._note.write(commit.epoch)

    def _refuse(self, commit: Commit) -> None:
        refuse_large(self._path, commit)
        refuse_gap(self._path, commit.epoch, self._head.epoch)
        for each in commit.tables:
            raise StateUnusable(
                f"{self._path} cannot have the table {each.table.name!r}, as it is no file of sqlite; give SqliteTable "
                f"a path= of its own"
            )
        if commit.history:
            raise StateUnusable(
                f"{self._path} cannot keep a history, as RocksDB has the last epoch alone; leave history= out, or keep "
                f"the state in a file of sqlite"
            )

    def _put_entries(self, batch: WriteBatch, append: Append) -> None:
        """Have each entry in the place of the one before; rounds say nothing new."""
        number = self._numbers.get(append.state)
        prefix = prefix_of(self._put_state(batch, append.state, None) if number is None else number)
        for key, value in pairs_in(append.blob):
            if value == NIL:
                batch.delete(prefix + canonical(key))
            else:
                batch.put(prefix + canonical(key), ENTRY + key + value)

    def _write_head(self, batch: WriteBatch, head: Head) -> None:
        batch.put(HEAD, encoded(head))
        self._database.write(batch)
        self._head = head

    def _deliver(self, batch: WriteBatch, rows: Iterable[tuple[str, int]], letters: int) -> None:
        had = dict(rows)
        for number, (committer, epoch) in list(self._outbox.items()):
            if epoch <= had.get(committer, 0):
                batch.delete(numbered(OUTBOX, number))
                del self._outbox[number]
        for number, epoch in list(self._letters.items()):
            if epoch <= letters:
                batch.delete(numbered(LETTERS, number))
                del self._letters[number]

    def _next(self) -> int:
        self._last += 1
        return self._last

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        """Note what committers and the sink of dead letters have had."""
        batch = new_batch()
        self._deliver(batch, rows, letters)
        self._database.write(batch)

    def at(self, epoch: int) -> Stored:
        """The same as :meth:`load`, if this is the last epoch: no other one is kept."""
        refuse_past(self._path, epoch, self._head.epoch)
        return self.load()

    def backup(self, path: str) -> None:
        """Write a copy to a new directory."""
        reader = DirectoryReader(self._path)
        try:
            reader.backup(path)
        finally:
            reader.close()

    def rewind(self, epoch: int) -> Rewound:
        """Begin another line of epochs after the last one; there is no way back to others."""
        refuse_past(self._path, epoch, self._head.epoch)
        self._write_head(new_batch(), another_line(self._head))
        return Rewound(epoch, 0)

    def epoch_at(self, moment: float) -> int:
        """The last epoch, if it was durable at a moment, in seconds since 1970."""
        head = self._head
        if head.closed_at is not None and head.closed_at > moment:
            raise StateUnusable(
                f"{self._path} has no epoch of that time: RocksDB keeps the last one alone, which is epoch {head.epoch}"
            )
        return head.epoch

    def drop(self, component: str) -> None:
        """Forget all that is kept under a component's id."""
        renaming.drop(self._database, component)
        self._read()

    def drop_state(self, state: StateId) -> None:
        """Forget one state of a component."""
        renaming.drop_state(self._database, state)
        self._read()

    def rename(self, old: str, new: str) -> None:
        """Have all that is kept under a component's id go by another one."""
        renaming.rename(self._database, old, new)
        self._read()

    def close(self) -> None:
        """Let go of the directory, so that another run can have it."""
        try:
            self._note.close()
            self._database.close()  # raises if an earlier write had no room, and lets go of the files nevertheless
        finally:
            self._claim.release()


def _opened(path: Path, topology: str | None) -> Database:
    if path.exists() and not os.access(path, os.W_OK):
        raise StateUnusable(f"{path} may not be written; give this user the right to write in it")
    begins, note = is_new(path), noted(path)
    database = Database(path)
    try:
        if begins and topology is not None:
            sync(path.parent)
        if topology is not None and not note and next(database.scan(), None) is None:
            batch = new_batch()
            batch.put(HEAD, encoded(new_head(topology)))
            database.write(batch)
        head = head_of(database, note)
        if topology is not None:
            check_topology(path, head, topology)
    except BaseException:
        database.close()
        raise
    return database
