"""Readers of a state file: commands that look at it while a run may write it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from stormlet.core.state.commits import Rows, Shape, StateId, Stored
from stormlet.errors import StateUnusable
from stormlet.state.places import absolute, check_place
from stormlet.state.refusals import refuse_unkept
from stormlet.state.sqlite.backups import back_up
from stormlet.state.sqlite.database import Database
from stormlet.state.sqlite.layout import (
    EpochRow,
    LetterRow,
    LogRow,
    OutboxRow,
    PositionRow,
    ShapeRow,
    ancestors,
    check_marks,
    check_topology,
    meta,
)
from stormlet.state.sqlite.read_only import log_size, look_at


class StateReader:
    """A state file that exists. It sees whole epochs only. Methods block, and raise
    :class:`~stormlet.errors.StateUnusable`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = absolute(path)
        check_place(self._path)
        if not self._path.exists():
            raise StateUnusable(f"there is no file {self._path}; a run with state= makes it")
        self._database = _opened(self._path)

    def load(self) -> Stored:
        """All that is durable."""
        with self._database.transaction("DEFERRED"):
            return load(self._database)

    def at(self, epoch: int) -> Stored:
        """All that was durable after this epoch, without what was delivered since."""
        with self._database.transaction("DEFERRED"):
            return load_at(self._database, epoch)

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def size(self) -> int:
        """Bytes of the file and of the log beside it, which has the last epochs while a run goes on."""
        return self._path.stat().st_size + max(0, log_size(self._path))

    def first_epoch(self) -> int:
        """The first one that can be read."""
        return first_epoch(self._database)

    def topology(self) -> str:
        """The name of the topology that the file belongs to."""
        return meta(self._database, "topology")

    def check_topology(self, topology: str) -> None:
        """Raise :class:`~stormlet.errors.StateUnusable` for the file of another topology."""
        check_topology(self._database, topology)

    def epochs(self) -> Sequence[EpochRow]:
        """The epochs that can be read, in order."""
        return list(self._database.rows(EpochRow, "epochs", "ORDER BY number"))

    def backup(self, path: str) -> None:
        """Write a copy to a new file."""
        back_up(self._path, path)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


TRIES: Final = 5


def _opened(path: Path) -> Database:
    """Open a file to read it; again if a run begins or ends meanwhile, which makes or removes files beside it."""
    for _ in range(TRIES - 1):
        look = look_at(path)
        try:
            return _checked(path)
        except StateUnusable:
            if look_at(path) == look:
                raise
    return _checked(path)


def _checked(path: Path) -> Database:
    database = Database(path, "ro")
    try:
        check_marks(database)
    except BaseException:
        database.close()
        raise
    return database


def load(database: Database) -> Stored:
    """All that is durable, after a look at the whole file."""
    database.check()
    epoch = last_epoch(database)
    return _stored(database, meta(database, "line"), _closed(database, epoch))


def load_at(database: Database, epoch: int) -> Stored:
    """All that was durable after this epoch."""
    refuse_unkept(database.path, epoch, first_epoch(database), last_epoch(database))
    closed = _closed(database, epoch)
    return _stored(database, closed.line, closed)


def first_epoch(database: Database) -> int:
    """The first one that can be read."""
    return database.number("SELECT coalesce(min(number), 0) FROM epochs")


def last_epoch(database: Database) -> int:
    """The last one that is durable."""
    return database.number("SELECT coalesce(max(number), 0) FROM epochs")


def _closed(database: Database, epoch: int) -> EpochRow:
    return database.row(EpochRow, "epochs", "WHERE number = ?", epoch)


def _stored(database: Database, line: str, closed: EpochRow) -> Stored:
    epoch = closed.number
    positions = database.rows(PositionRow, "positions", "WHERE epoch <= ? ORDER BY task, epoch", epoch)
    outbox = database.rows(OutboxRow, "outbox", "WHERE epoch <= ? ORDER BY epoch, n", epoch)
    letters = database.rows(LetterRow, "letters", "WHERE epoch <= ? ORDER BY n", epoch)
    return Stored(
        line,
        epoch,
        closed.closed_at,
        {row.task: row.position for row in positions},  # the last one of a task remains
        {StateId(row.component, row.state): _shape(row) for row in database.rows(ShapeRow, "shapes")},
        _states(database, epoch),
        tuple(Rows(row.committer, row.epoch, row.blob) for row in outbox),
        tuple((row.epoch, row.letter) for row in letters),
        ancestors(database),
    )


def _shape(row: ShapeRow) -> Shape:
    return Shape(row.kind, row.key, row.value)


def _states(database: Database, epoch: int) -> Mapping[StateId, tuple[bytes, ...]]:
    components = database.texts("SELECT DISTINCT component FROM log ORDER BY component")
    states = [
        (component, state)
        for component in components
        for state in database.texts(
            "SELECT DISTINCT state FROM log WHERE component = ? ORDER BY state", component
        )
    ]
    found = {StateId(*names): _blobs(database, *names, epoch) for names in states}
    return {state: blobs for state, blobs in found.items() if blobs}


def _blobs(database: Database, component: str, state: str, epoch: int) -> tuple[bytes, ...]:
    first = first_row(database, component, state, epoch)
    where = "WHERE component = ? AND state = ? AND n >= ? AND epoch <= ? ORDER BY n"
    return tuple(row.blob for row in database.rows(LogRow, "log", where, component, state, first, epoch))


def first_row(database: Database, component: str, state: str, epoch: int) -> int:
    """The row of the log from which on a state is whole after an epoch: the beginning of the last round but one."""
    return database.number(
        "SELECT coalesce((SELECT n FROM log WHERE component = ? AND state = ? AND begins_round AND epoch <= ? "
        "ORDER BY n DESC LIMIT 1 OFFSET 1), 0)",
        *(component, state, epoch),
    )
