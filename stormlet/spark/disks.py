"""What must outlive a loss of power."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have the disk hold a file, or the names of what is in a directory. Raises :class:`OSError`."""
    if os.name == "nt":  # has no handles to sync what is only read
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(top: Path) -> None:
    """Have the disk hold a directory with all that is in it. Raises :class:`OSError`."""
    for directory, _, files in os.walk(top):
        for name in files:
            sync(Path(directory, name))
        sync(Path(directory))
