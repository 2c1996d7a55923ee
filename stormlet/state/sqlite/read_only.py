"""Files that may only be read: those of other users, on a read-only mount, or marked so; and those on a full disk.

Theory of operation
-------------------
Sqlite reads a file with a write-ahead log by ``-wal`` and ``-shm`` beside it. It makes both where they are missing, and
the last connection to be closed brings the log into the file. Whoever may write the file and its directory reads it so.
For all others there are three cases, and nothing is written in any:

- There is a log, and its index ``-shm``. A run has the file, or was killed. Sqlite reads both; where no run keeps the
  index, it makes one of its own, in memory.
- There is no log, or an empty one without index. All is in the file, which sqlite reads as ``immutable``: without
  locks, and without a look for a log. A run of another user may begin meanwhile, so the file must be the same
  afterwards.
- There is a log without its index, or a journal of a start that was cut short. Reading would have to mend the file
  first, and is refused.

Where the disk has no room for ``-shm``, everyone reads a file without a log as ``immutable``. Sqlite would fail, and
leave the beginning of its index and an empty log; so an index that is shorter than any is none.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from stormlet.errors import StateUnusable

THROUGH_LOG = "mode=ro&readonly_shm=1"
IMMUTABLE = "mode=ro&immutable=1"
LEAST_INDEX = 32 * 1024
"""Bytes of the shortest index of a log."""
LEAST_ROOM = 2 * LEAST_INDEX
"""Bytes that the disk must have for sqlite to make its files beside another one."""


class Look(NamedTuple):
    """A file and those beside it, as they are at one moment."""

    identity: tuple[int, ...]
    """Of the file: another one has other numbers, and so has one that was written."""
    log: int
    """Bytes of the write-ahead log; -1 if there is none."""
    has_index: bool
    """True if the log has its index."""
    journal: int
    """Bytes of the journal; -1 if there is none."""


def look_at(path: Path) -> Look:
    """Look at a file and those beside it, without opening any: to close one would end the locks of this process."""
    found = path.stat()
    return Look(
        (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns),
        log_size(path),
        _size(path, "-shm") >= LEAST_INDEX,
        _size(path, "-journal"),
    )


def log_size(path: Path) -> int:
    """Return the bytes of the write-ahead log of a file; -1 if there is none."""
    return _size(path, "-wal")


def _size(path: Path, ending: str) -> int:
    try:
        return path.with_name(f"{path.name}{ending}").stat().st_size
    except FileNotFoundError:
        return -1


def is_without_room(path: Path) -> bool:
    """Return True for a file that is whole without a log, and whose disk has no room for the index of one."""
    look = look_at(path)
    is_whole = look.log <= 0 and look.journal <= 0 and not look.has_index
    return is_whole and shutil.disk_usage(path.parent).free < LEAST_ROOM


def options_for(path: Path, look: Look) -> str:
    """Return the options by which sqlite reads a file without writing anything. Raise
    :class:`~stormlet.errors.StateUnusable` where it cannot."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        each = path.with_name(name)
        if each.exists() and not os.access(each, os.R_OK):
            raise StateUnusable(f"{each} may not be read; give this user the right to read it")
    if look.journal > 0:
        raise StateUnusable(f"{path} {_unfinished('a -journal')}")
    if look.log >= 0 and look.has_index:
        return THROUGH_LOG
    if look.log > 0:
        raise StateUnusable(f"{path} {_unfinished('a -wal without its -shm')}")
    return IMMUTABLE


def _unfinished(left: str) -> str:
    return (
        f"cannot be read without writing to it, as a killed run has left {left}; ask a user who may write it and its "
        f"directory, or copy it with the files beside it (-wal, -shm, -journal) to a directory of your own"
    )


def written_meanwhile(path: Path) -> StateUnusable:
    """Return the error for a file that has changed while it was read without locks."""
    return StateUnusable(f"{path} was written while it was read, as a run has begun to use it; look again")
