"""Readers of a directory of RocksDB: commands that look at it while a run may write it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from stormlet.core.state.commits import Entries, Rows, StateId, Stored
from stormlet.errors import StateUnusable
from stormlet.state.places import absolute, check_name, check_surroundings, may_be_written
from stormlet.state.refusals import NotBegun
from stormlet.state.rocksdb.backups import back_up
from stormlet.state.rocksdb.database import Database
from stormlet.state.rocksdb.epoch_note import noted
from stormlet.state.rocksdb.layout import (
    LETTERS,
    OUTBOX,
    POSITIONS,
    Head,
    LetterRow,
    OutboxRow,
    check_topology,
    head_of,
    is_new,
    prefix_of,
    state_rows,
    undelivered,
)

SETTINGS: Final = "rocksdict-config.json"
TRIES: Final = 10


class DirectoryReader:
    """A directory that exists, as it was when the reader was made: whole epochs, and the last one alone. Methods block,
    and raise :class:`~stormlet.errors.StateUnusable`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = absolute(path)
        check_place(self._path)
        if self._path.exists() and not os.access(self._path, os.R_OK | os.X_OK):
            raise StateUnusable(f"{self._path} may not be read; give this user the right to read it")
        if is_new(self._path):
            raise NotBegun(f"there is no state in {self._path}; a run with state= makes it")
        self._own = TemporaryDirectory(prefix="stormlet-")  # for what RocksDB writes of its work
        try:
            self._database, self._head = _opened(self._path, Path(self._own.name))
        except BaseException:
            self._own.cleanup()
            raise

    def load(self) -> Stored:
        """All that is durable."""
        numbers = {id: row.number for id, row in state_rows(self._database)}
        return load(self._database, self._head, numbers)

    def at(self, epoch: int) -> Stored:
        """The same, if this is the last epoch: no other one is kept."""
        refuse_past(self._path, epoch, self._head.epoch)
        return self.load()

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(each.stat().st_size for each in self._path.iterdir() if each.is_file())

    def first_epoch(self) -> int:
        """The last one, as no other can be read."""
        return self._head.epoch

    def topology(self) -> str:
        """The name of the topology that the directory belongs to."""
        return self._head.topology

    def check_topology(self, topology: str) -> None:
        """Raise :class:`~stormlet.errors.StateUnusable` for the directory of another topology."""
        check_topology(self._path, self._head, topology)

    def backup(self, path: str) -> None:
        """Write a copy to a new directory."""
        back_up(self._database, path)

    def close(self) -> None:
        """Let go of the directory."""
        self._database.close()
        self._own.cleanup()


def _opened(path: Path, own: Path) -> tuple[Database, Head]:
    if may_be_written(path / SETTINGS):
        return _looked_into(path, own)
    for attempt in count():
        links = own / str(attempt)
        names = _link(path, links)
        try:
            return _looked_into(path, own, links)
        except StateUnusable:
            # A run of another user may have made files since, to which there are no links.
            if attempt == TRIES or _names(path) == names:
                raise
    raise AssertionError("the last attempt returns or raises")


def _looked_into(path: Path, own: Path, links: Path | None = None) -> tuple[Database, Head]:
    note = noted(path)  # before it is opened, as a run may go on
    database = Database(path, own, links)
    try:
        head = head_of(database, note)
    except BaseException:
        database.close()
        raise
    return database, head


def _link(path: Path, links: Path) -> list[str]:
    """Make a directory of links to the files of another one, for rocksdict to write its settings to: it does so
    whenever it opens a directory, also to read. Return the names in the other one."""
    names = _names(path)
    links.mkdir()
    for name in names:
        if name != SETTINGS:
            (links / name).symlink_to(path / name)
    return names


def _names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


class StateEntries:
    """The entries of one state: :class:`~stormlet.core.state.commits.Entries`."""

    def __init__(self, database: Database, numbers: Mapping[StateId, int], id: StateId) -> None:
        """``numbers`` are those of all states; one that is new gets its number with its first commit."""
        self._database = database
        self._numbers = numbers
        self._id = id
        self._known: bytes | None = None

    def _prefix(self) -> bytes | None:
        """Return the beginning of all its keys; None where it has none yet."""
        if self._known is None:
            number = self._numbers.get(self._id)
            self._known = None if number is None else prefix_of(number)
        return self._known

    def get(self, key: bytes) -> bytes | None:
        """One entry; None if there is none."""
        prefix = self._prefix()
        return None if prefix is None else self._database.get(prefix + key)

    def scan(self, prefix: bytes = b"", begin: bytes = b"") -> Iterator[bytes]:
        """Iterate over the entries whose keys begin so; ``begin`` leaves out smaller ones."""
        own = self._prefix()
        if own is not None:
            for _, blob in self._database.scan(own + prefix, own + begin):
                yield blob

    def last(self, prefix: bytes) -> bytes | None:
        """The last one of these; None if there is none."""
        own = self._prefix()
        found = None if own is None else self._database.last(own + prefix)
        return None if found is None else found[1]


def load(database: Database, head: Head, numbers: Mapping[StateId, int]) -> Stored:
    """All that is durable. Entries are read when they are asked for."""

    def entries(id: StateId) -> Entries:
        return StateEntries(database, numbers, id)

    outbox = (row for _, row in undelivered(database, OUTBOX, OutboxRow))
    letters = (row for _, row in undelivered(database, LETTERS, LetterRow))
    return Stored(
        head.line,
        head.epoch,
        head.closed_at,
        {key[1:].decode(): position for key, position in database.scan(POSITIONS)},
        {id: row.shape for id, row in state_rows(database) if row.shape is not None},
        outbox=tuple(Rows(row.committer, row.epoch, row.blob) for row in outbox),
        letters=tuple((row.epoch, row.letter) for row in letters),
        ancestors=head.ancestors,
        entries=entries,
    )


def check_place(path: Path) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` where there can be no directory of RocksDB."""
    check_name(path)
    check_surroundings(path)
    if path.exists() and not path.is_dir():
        raise StateUnusable(
            f"{path} is a file, and RocksDB has a directory; give the path of a new one, or of a file whose name does "
            f"not end so"
        )


def refuse_past(path: Path, epoch: int, last: int) -> None:
    """Raise :class:`~stormlet.errors.StateUnusable` for an epoch that is not the last one."""
    if epoch != last:
        raise StateUnusable(
            f"{path} does not have epoch {epoch}: RocksDB keeps the last one alone, which is epoch {last}; copies made "
            f"by `stormlet state save` are of earlier ones"
        )
