"""The store of a run, by what the topology says of its place."""

from __future__ import annotations

import os

from stormlet.core.state.commits import Store
from stormlet.errors import StateUnusable
from stormlet.state.memory import MemoryStore
from stormlet.state.sqlite.file import StateFile


def opened(target: str | os.PathLike[str] | Store | None, topology: str) -> Store:
    """Return the file at a path, a store as it is, or one in memory where no place is named; raise
    :class:`~stormlet.errors.StateUnusable` for a file that cannot be used."""
    if target is None:
        return MemoryStore()
    if target == "":
        raise StateUnusable(
            "the path of the state file is empty; give the path of a file, or None for state in memory"
        )
    if isinstance(target, str | os.PathLike):
        return StateFile(target, topology)
    return target
