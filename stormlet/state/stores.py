"""The store of a run, by what the topology says of its place."""

from __future__ import annotations

import os

from stormlet.core.commits import Store
from stormlet.state.file import StateFile
from stormlet.state.memory import MemoryStore


def opened(target: str | os.PathLike[str] | Store | None, topology: str) -> Store:
    """Return the file at a path, a store as it is, or one in memory where no place is named; raise
    :class:`~stormlet.errors.StateUnusable` for a file that cannot be used."""
    if target is None:
        return MemoryStore()
    if isinstance(target, str | os.PathLike):
        return StateFile(target, topology)
    return target
