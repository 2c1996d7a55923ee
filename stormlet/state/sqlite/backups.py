"""A copy of a state file while a run goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from stormlet.errors import StateUnusable
from stormlet.files import sync
from stormlet.state.places import ROCKSDB, check_name, is_rocksdb
from stormlet.state.sqlite.database import Database


def back_up(source: Path, path: str) -> None:
    """Copy a state file, as it is at one moment, to a new file that is durable when this returns.

    It has a connection of its own, so that epochs are committed meanwhile. Raises
    :class:`~stormlet.errors.StateUnusable`.
    """
    copy = Path(path).absolute()
    check_name(copy)
    if copy.exists():
        raise StateUnusable(f"{copy} is there already; a copy needs a new path")
    if not copy.parent.is_dir():
        raise StateUnusable(
            f"{copy} cannot be written, as there is no directory {copy.parent}; make that first"
        )
    if is_rocksdb(copy):
        raise StateUnusable(
            f"{copy} would be a file of sqlite, and none that is found by its name; give a name that does not end with "
            f"{ROCKSDB}"
        )
    partial = copy.with_name(f"{copy.name}.partial")
    try:
        _write(source, partial)
        sync(partial)
        partial.rename(copy)
        sync(copy.parent)
    except OSError as error:
        raise StateUnusable(f"{copy} cannot be written: {error}; give another path") from error
    finally:
        partial.unlink(missing_ok=True)


def _write(source: Path, partial: Path) -> None:
    partial.write_bytes(b"")  # in the place of one that a killed process has left
    with closing(Database(source, "ro")) as original, closing(Database(partial, "rw")) as database:
        original.copy_to(database)
