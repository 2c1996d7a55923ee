"""A note of the last durable epoch, in a file beside those of RocksDB.

RocksDB recovers its log up to the first record that is not as it was written. At the end of the log that is what a
loss of power has left of a write that nobody was told of. Anywhere else it is damage, by which epochs would be lost
without a word. The note tells the one from the other. It is not synced: an older note says less, and nothing that is
wrong.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from stormlet.errors import StateUnusable
from stormlet.state.rocksdb.failures import damaged, unusable

NAME: Final = "stormlet-epoch"
FORM: Final = b"%020d\n"
"""Of one length, so that a number takes the place of the one before."""


class EpochNote:
    """The note of a run. Raises :class:`~stormlet.errors.StateUnusable` where it cannot be made or written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._handle = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT, 0o666)
        except OSError as error:
            raise unusable(folder, error) from error

    def write(self, epoch: int) -> None:
        """Note an epoch that is durable."""
        try:
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, FORM % epoch)
        except OSError as error:
            raise unusable(self._folder, error) from error

    def close(self) -> None:
        """Let go of the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def noted(folder: Path) -> int:
    """Return the epoch of the note; 0 if there is none, or it has not survived."""
    try:
        return int((folder / NAME).read_bytes())
    except (OSError, ValueError):
        return 0


def lost(folder: Path, noted: int, epoch: int = 0) -> StateUnusable:
    """Return the error for a directory that had the noted epoch, and ends with an earlier one now; 0 for none."""
    end = f", and ends with epoch {epoch}" if epoch else ""
    return StateUnusable(f"{folder} {damaged(f'it has epoch {noted} no more{end}')}")
