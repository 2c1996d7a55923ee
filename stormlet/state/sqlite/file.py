"""The file that a topology's state is kept in.

Theory of operation
-------------------
Sqlite is the container, not the key-value table: a commit of 10,000 changed keys out of a million writes one blob where
an upsert writes most pages of the file. What a commit brings is appended to the table ``log``, in one transaction with
positions, outgoing rows and dead letters, and is fsynced when it returns (write-ahead log, ``synchronous=FULL``).
Sqlite copies that log into the file now and then, within a commit.

The log is kept short by rounds (:mod:`stormlet.core.state.commits`): when a round over all keys of a state begins,
the rows from before the beginning of the last round are dropped. Their pages are used again; the file does not shrink
(``auto_vacuum`` would move pages at each commit for that).

Each row ends with a checksum, and a run begins with a check of the structure. So a file that the disk has changed is
refused, not half read. A file is told from others by sqlite's ``application_id``, its layout by ``user_version``, and
its topology by the table ``meta``.

One run at a time owns a file, by a lock on ``….lock`` beside it; readers need none. That lock and sqlite's log go by
the name of the file, so one with a second name that is no symbolic link is refused. Where there are no locks (Windows),
the number of the epoch still has the second of two runs refused, as it follows what that run has read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from stormlet.core.state.commits import Append, Commit, Shape, StateId, Stored
from stormlet.errors import StateUnusable
from stormlet.files import FileClaim
from stormlet.state.claims import take
from stormlet.state.interfaces import Rewound
from stormlet.state.places import absolute, check_alone, check_place
from stormlet.state.refusals import refuse_gap, refuse_large
from stormlet.state.retention import first_kept
from stormlet.state.sqlite import renaming, rewinding
from stormlet.state.sqlite.backups import back_up
from stormlet.state.sqlite.database import Database
from stormlet.state.sqlite.layout import (
    EpochRow,
    LetterRow,
    LogRow,
    OutboxRow,
    PositionRow,
    ShapeRow,
    check_marks,
    check_topology,
    create,
    is_empty,
    meta,
    settle,
)
from stormlet.state.sqlite.reading import first_row, last_epoch, load, load_at
from stormlet.state.sqlite.user_tables import write_rows

T = TypeVar("T")


class StateFile:
    """One run's hold on a state file: a :class:`~stormlet.core.state.commits.Store`. Methods block, and raise
    :class:`~stormlet.errors.StateUnusable`."""

    def __init__(self, path: str | os.PathLike[str], topology: str | None = None) -> None:
        """Open a file, and make it if it is missing. Without a topology it must exist, and may be any topology's."""
        self._path = absolute(path)
        check_place(self._path)
        check_alone(self._path)
        if topology is None and not self._path.exists():
            raise StateUnusable(f"there is no file {self._path}; a run with state= makes it")
        self._claim = FileClaim(self._path)
        take(self._claim, self._path, "" if topology is None else ", or give this run another file")
        try:
            self._database = _opened(self._path, topology)
        except BaseException:
            self._claim.release()
            raise

    def load(self) -> Stored:
        """All that is durable."""
        with self._database.transaction("DEFERRED"):
            return load(self._database)

    def declare(self, shapes: Mapping[StateId, Shape]) -> None:
        """Note the types that the program has declared."""
        with self._database.transaction():
            for state, shape in shapes.items():
                self._database.put("shapes", *ShapeRow(*_names(state), shape.kind, shape.key, shape.value))

    def commit(self, commit: Commit) -> None:
        """Make this epoch durable, as a whole. If the disk itself fails, the next run may find it so in spite of the
        error."""
        refuse_large(self._path, commit)
        with self._database.transaction():
            last = last_epoch(self._database)
            refuse_gap(self._path, commit.epoch, last)
            self._deliver(commit.delivered, commit.letters_delivered)
            self._write(commit)
            for each in commit.tables:
                write_rows(self._database, each)
            self._append(commit.epoch, commit.appends)
            needed = self._first_needed(commit)
            begun = [each.state for each in commit.appends if each.begins_round]
            dropped = sum(self._drop_before(state, needed) for state in begun)
            self._forget(first_kept(commit.epoch, needed, dropped=dropped > 0))

    def _deliver(self, rows: Iterable[tuple[str, int]], letters: int) -> None:
        for committer, epoch in rows:
            self._database.run("DELETE FROM outbox WHERE committer = ? AND epoch <= ?", committer, epoch)
        self._database.run("DELETE FROM letters WHERE epoch <= ?", letters)

    def _write(self, commit: Commit) -> None:
        line = meta(self._database, "line")
        self._database.put("epochs", *EpochRow(commit.epoch, line, float(commit.closed_at)))
        for task, position in commit.positions.items():
            self._database.put("positions", *PositionRow(task, commit.epoch, position))
        for n, rows in self._numbered("outbox", commit.outbox):
            self._database.put("outbox", *OutboxRow(n, rows.epoch, rows.committer, rows.blob))
        for n, letter in self._numbered("letters", commit.letters):
            self._database.put("letters", *LetterRow(n, commit.epoch, letter))

    def _append(self, epoch: int, appends: Sequence[Append]) -> None:
        for n, append in self._numbered("log", appends):
            row = LogRow(n, epoch, *_names(append.state), int(append.begins_round), append.blob)
            self._database.put("log", *row)

    def _first_needed(self, commit: Commit) -> int:
        """The first epoch that must be readable: the last one that was closed before the history began."""
        if not commit.history:
            return commit.epoch
        return self._database.number(
            "SELECT coalesce(min(number), ?) - 1 FROM epochs WHERE closed_at > ?",
            *(commit.epoch, commit.closed_at - commit.history),
        )

    def _drop_before(self, state: StateId, epoch: int) -> int:
        """Drop the rows that neither this epoch nor a later one needs."""
        names = _names(state)
        return self._database.run(
            "DELETE FROM log WHERE component = ? AND state = ? AND n < ?",
            *(*names, first_row(self._database, *names, epoch)),
        )

    def _numbered(self, table: str, rows: Sequence[T]) -> Iterator[tuple[int, T]]:
        """Rows that are to be written, each with its number."""
        # Each statement waits for the interpreter several times, so none is made in vain.
        first = self._database.number(f"SELECT coalesce(max(n), 0) + 1 FROM {table}") if rows else 1
        return enumerate(rows, first)

    def _forget(self, first: int) -> None:
        """Leave nothing that only epochs before this one have."""
        if first > 0:
            self._database.run("DELETE FROM epochs WHERE number < ?", first)
            self._database.run(
                "DELETE FROM positions WHERE epoch < (SELECT max(epoch) FROM positions AS newer "
                "WHERE newer.task = positions.task AND newer.epoch <= ?)",
                first,
            )

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        """Note what committers and the sink of dead letters have had."""
        with self._database.transaction():
            self._deliver(rows, letters)

    def at(self, epoch: int) -> Stored:
        """All that was durable after this epoch, without what was delivered since."""
        with self._database.transaction("DEFERRED"):
            return load_at(self._database, epoch)

    def backup(self, path: str) -> None:
        """Write a copy to a new file."""
        back_up(self._path, path)

    def rewind(self, epoch: int) -> Rewound:
        """Forget all epochs after this one, and begin another line of epochs."""
        return rewinding.rewind(self._database, epoch)

    def epoch_at(self, moment: float) -> int:
        """The last epoch that was durable at a moment, in seconds since 1970."""
        return rewinding.epoch_at(self._database, moment)

    def drop(self, component: str) -> None:
        """Forget all that is kept under a component's id."""
        renaming.drop(self._database, component)

    def drop_state(self, state: StateId) -> None:
        """Forget one state of a component."""
        renaming.drop_state(self._database, state)

    def rename(self, old: str, new: str) -> None:
        """Have all that is kept under a component's id go by another one."""
        renaming.rename(self._database, old, new)

    def close(self) -> None:
        """Let go of the file, so that another run can have it."""
        self._database.close()
        self._claim.release()


def _opened(path: Path, topology: str | None) -> Database:
    if path.exists() and not os.access(path, os.W_OK):  # sqlite would notice at the first commit
        raise StateUnusable(
            f"{path} may not be written; give this user the right to write it and its directory"
        )
    database = Database(path, "rwc")
    try:
        if topology is not None and is_empty(database):
            create(database, topology)
        check_marks(database)
        if topology is not None:
            check_topology(database, topology)
        settle(database)
    except BaseException:
        database.close()
        raise
    return database


def _names(state: StateId) -> tuple[str, str]:
    return state.component, state.state
