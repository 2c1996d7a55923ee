"""The store of a run, by what the topology says of its place; and the state at a path, for commands. What needs sqlite
is loaded with the first state file."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Final, cast

from stormlet.core.shortened import shortened
from stormlet.core.state.commits import Store
from stormlet.errors import StateUnusable
from stormlet.state.interfaces import PlacedReader, PlacedStore
from stormlet.state.memory import MemoryStore
from stormlet.state.places import ROCKSDB, is_rocksdb

METHODS: Final = ("load", "declare", "commit", "note_delivered", "close")
"""The methods of a store that a run calls."""


def opened(target: str | os.PathLike[str] | Store | None, topology: str, *, history: float = 0.0) -> Store:
    """Return the state at a path, a store as it is, or one in memory where no place is named; raise
    :class:`~stormlet.errors.StateUnusable` for one that cannot be used, or cannot keep its epochs for so many
    seconds."""
    if target is None:
        return MemoryStore()
    if target == "":
        raise StateUnusable(
            "the path of the state file is empty; give the path of a file, or None for state in memory"
        )
    if not isinstance(target, str | os.PathLike):
        return _checked(target)
    if history and is_rocksdb(target):
        raise StateUnusable(
            f"{os.fspath(target)} cannot keep a history, as RocksDB has the last epoch alone; leave history= out, or "
            f"keep the state in a file, whose name does not end with {ROCKSDB}"
        )
    return owned(target, topology)


def _checked(target: object) -> Store:
    missing = next((name for name in METHODS if not callable(getattr(target, name, None))), None)
    if missing is not None:
        raise StateUnusable(
            f"state={shortened(target)} is neither a path nor a store, as it has no {missing}(); give the path of a "
            f"file, such as 'orders.state'"
        )
    return cast("Store", target)


def owned(path: str | os.PathLike[str], topology: str | None = None) -> PlacedStore:
    """Own the state at a path, which is made if it is missing; without a topology it must exist, and may be any
    topology's. Raise :class:`~stormlet.errors.StateUnusable`."""
    if is_rocksdb(path):
        return cast("PlacedStore", _rocksdb(path, "directory").StateDirectory(path, topology))
    from stormlet.state.sqlite.file import StateFile

    return StateFile(path, topology)


def reader(path: str | os.PathLike[str]) -> PlacedReader:
    """Look at the state at a path, which a run may write. Raise :class:`~stormlet.errors.StateUnusable`."""
    if is_rocksdb(path):
        return cast("PlacedReader", _rocksdb(path, "reading").DirectoryReader(path))
    from stormlet.state.sqlite.reading import StateReader

    return StateReader(path)


def _rocksdb(path: str | os.PathLike[str], module: str) -> ModuleType:
    """A module that needs rocksdict."""
    try:
        return importlib.import_module(f"stormlet.state.rocksdb.{module}")
    except ModuleNotFoundError as error:
        if error.name != "rocksdict":
            raise
        raise StateUnusable(
            f"{os.fspath(path)} needs rocksdict: pip install 'stormlet[rocksdb]', or give a path that does not end "
            f"with {ROCKSDB}"
        ) from error
