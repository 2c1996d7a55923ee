"""Tools for testing topologies: an event loop with simulated time, and the pytest plugin that runs tests on
it.

The names are loaded when they are first used: pytest imports this package in every run of every user.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stormlet.testing.chaos.faults import Fault, FaultKind, Faults
    from stormlet.testing.chaos.simulating import (
        SeedResult,
        SimulationFailed,
        SimulationReport,
        simulate,
    )
    from stormlet.testing.loop import Deadlock, SimulatedLoop, run_simulated

__all__ = [
    "Deadlock",
    "Fault",
    "FaultKind",
    "Faults",
    "SeedResult",
    "SimulatedLoop",
    "SimulationFailed",
    "SimulationReport",
    "run_simulated",
    "simulate",
]

_HOMES = {
    "stormlet.testing.loop": ("Deadlock", "SimulatedLoop", "run_simulated"),
    "stormlet.testing.chaos.faults": ("Fault", "FaultKind", "Faults"),
    "stormlet.testing.chaos.simulating": (
        "SeedResult",
        "SimulationFailed",
        "SimulationReport",
        "simulate",
    ),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
