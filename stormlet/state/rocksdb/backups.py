"""A copy of a directory while a run goes on."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

from stormlet.errors import StateUnusable
from stormlet.files import sync
from stormlet.state.places import ROCKSDB, check_name, check_surroundings, is_rocksdb
from stormlet.state.rocksdb.database import Database, new_batch

AT_ONCE = 10_000
"""Records that are written together."""


def back_up(source: Database, path: str) -> None:
    """Copy all that a reader has, to a new directory that is durable when this returns. Raises
    :class:`~stormlet.errors.StateUnusable`."""
    copy = Path(path).absolute()
    check_name(copy)
    if copy.exists():
        raise StateUnusable(f"{copy} is there already; a copy needs a new path")
    check_surroundings(copy)
    if not is_rocksdb(copy):
        raise StateUnusable(
            f"{copy} would be a directory of RocksDB, and none that is found by its name; give a name that ends with "
            f"{ROCKSDB}"
        )
    partial = copy.with_name(f"{copy.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
        _write(source, partial)
        sync(partial)
        partial.rename(copy)
        sync(copy.parent)
    except OSError as error:
        raise StateUnusable(f"{copy} cannot be written: {error}; give another path") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(source: Database, partial: Path) -> None:
    database = Database(partial)
    try:
        left = source.scan()
        while records := list(islice(left, AT_ONCE)):
            batch = new_batch()
            for key, value in records:
                batch.put(key, value)
            database.write(batch)
    finally:
        database.close()
