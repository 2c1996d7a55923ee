"""A topology that the host feeds."""

from __future__ import annotations

from typing import Any

from stormlet import Topology, Tree


async def tree_of(tree: Tree[Any]) -> object:
    """Await a tree in a coroutine of its own."""
    return await tree


def host_topology(logic: Any, **options: Any) -> tuple[Topology, Any]:
    """A topology that the host feeds, and its spout's stream."""
    topology = Topology("host", **options)
    fed = topology.spout("fed")
    topology.bolt("logic", logic, fed.shuffle())
    return topology, fed
