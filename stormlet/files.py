"""Files that must survive: fsync, and locks that end with the process that has them."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from threading import Lock
from weakref import WeakSet

if sys.platform != "win32":
    import fcntl

DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC,)
"""Numbers of errors that say so, or that this user has no more of it."""

_turn = Lock()
"""Held from the lock to the note of the process id: a second thread reads the id of the first, not an empty file."""

_taken: WeakSet[FileClaim] = WeakSet()
"""The claims of this process that have their locks."""


def sync(path: Path) -> None:
    """Fsync a file, or the names in a directory. Raises :class:`OSError`."""
    if os.name == "nt":  # has no handles to sync what is only read
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Claimed(Exception):
    """Another claim holds the file."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.is_ours = holder == str(os.getpid())
        """True if that claim is of this process."""
        self.by = f"process {holder}" if holder else "another process"


class NotLockable(Exception):
    """The file system has no locks; the message says which file it refused to lock, and why."""


class FileClaim:
    """A lock on a file or directory, so that no other run, of this process or another, uses it meanwhile.

    It locks a file next to it. The kernel releases the lock when the process dies, however it does; the file stays. On
    Windows nothing is locked.

    A process that this one forks, such as a worker of a pool, has the open file as well, and would keep the lock for as
    long as it lives: it closes the file at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        self._handle: int | None = None

    def take(self) -> None:
        """Take the lock. Raises :class:`Claimed`, :class:`NotLockable`, or :class:`OSError` if there can be no
        file."""
        if sys.platform == "win32" or self._handle is not None:
            return
        with _turn:
            self._take()

    def _take(self) -> None:
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.write(handle, b"%d\n" % os.getpid())
            self._handle = handle
            _taken.add(self)
        except BlockingIOError as error:
            raise Claimed(_holder(handle)) from error
        except OSError as error:
            os.close(handle)
            if error.errno in DISK_IS_FULL:
                raise
            raise NotLockable(f"{self._path} cannot be locked: {error}") from error

    def release(self) -> None:
        """Release the lock."""
        # By itself, as a process that was forked a moment ago may still have the file open.
        if sys.platform != "win32" and self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """Close the file, and leave the lock to the process that has taken it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def __del__(self) -> None:
        self.release()  # of a start that was cancelled while a thread took it


def _let_go() -> None:
    """In a process that was forked: have it hold no lock of the one that it came from, nor the turn of a thread."""
    for claim in _taken:
        claim.forget()
    _taken.clear()
    _turn.release()


if sys.platform != "win32":
    # No fork comes between the opening of a file and its note here.
    os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_let_go)


def _holder(handle: int) -> str:
    """The number that the holder has left in the file, which is closed."""
    try:
        return os.read(handle, 20).decode(errors="replace").strip()
    finally:
        os.close(handle)
