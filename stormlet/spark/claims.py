"""A claim on a file: no other source, of this process or another, takes it meanwhile."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Lock

from stormlet.errors import InvalidTopology

if sys.platform != "win32":
    import fcntl

_turn = Lock()
"""So that of two threads the second one reads which process the first one is of."""


class Claim:
    """A lock on a file beside the one that is claimed. The kernel takes it back when the process dies, however it
    does; the file stays. On Windows nothing is locked."""

    def __init__(self, path: Path) -> None:
        self._claimed = path
        self._path = path.with_name(f"{path.name}.lock")
        self._handle: int | None = None

    def take(self) -> None:
        """Raises :class:`~stormlet.errors.InvalidTopology` if another source has the file, or if it cannot be
        locked."""
        if sys.platform == "win32" or self._handle is not None:
            return
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InvalidTopology(f"{self._claimed} cannot be a checkpoint: {error}") from error
        try:
            with _turn:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(handle, 0)
                os.write(handle, b"%d\n" % os.getpid())
        except OSError as error:
            holder = os.read(handle, 20).decode(errors="replace").strip()
            os.close(handle)
            raise InvalidTopology(self._why_not(error, holder)) from error
        self._handle = handle

    def release(self) -> None:
        """Others may have it."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def __del__(self) -> None:
        self.release()  # of a start that was cancelled while a thread took it

    def _why_not(self, error: OSError, holder: str) -> str:
        if not isinstance(error, BlockingIOError):
            return f"{self._path} cannot be locked: {error}"
        if holder == str(os.getpid()):
            return f"{self._claimed} is the checkpoint of another source of this process; give each a file of its own"
        by = f"by process {holder}" if holder else "by another process"
        return f"{self._claimed} is in use {by}; wait for its end, or give this run a checkpoint of its own"
