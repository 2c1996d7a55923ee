"""Refusals of the functions that run topologies, before anything runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from stormlet.core.shortened import shortened
from stormlet.errors import InvalidConfiguration
from stormlet.topology import Topology


def refuse_in_a_loop(name: str, *, otherwise: str = "") -> None:
    """Raises :class:`RuntimeError` where a loop is running: no other one can be started there. ``otherwise`` is the way
    out, if it is not a function of the same name with ``_async`` at its end."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    way_out = otherwise or f"in a coroutine, write await {name}_async(...)"
    raise RuntimeError(f"{name} starts an event loop of its own; {way_out}")


IN_A_PLAIN_FUNCTION = "call it from a plain function, or by asyncio.to_thread"


def check_topology(name: str, topology: object) -> Topology:
    """Return a topology; raise :class:`~stormlet.errors.InvalidConfiguration` for anything else."""
    if isinstance(topology, Topology):
        return topology
    call = "; call it, and pass what it returns" if callable(topology) else ""
    raise InvalidConfiguration(f"{name}: {shortened(topology)} is no Topology{call}")


def check_sources(name: str, sources: object) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` for sources that are not named."""
    if sources is not None and not isinstance(sources, Mapping):
        given = shortened(sources)
        raise InvalidConfiguration(
            f"{name}: sources are a dict from spouts to what they give, as {{'lines': [...]}}, not {given}"
        )
