"""Stores for topologies with ``state=`` in tests: in memory, so that no test touches the file that is named."""

from __future__ import annotations

from stormlet.core.state.commits import Store
from stormlet.state.memory import MemoryStore
from stormlet.topology import Sources, Topology


def in_memory(topology: Topology, sources: Sources | None) -> Store | None:
    """Return a store for one run, if the topology is to have one."""
    return MemoryStore() if topology.describe(sources).state else None
