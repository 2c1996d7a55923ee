"""Tools for testing topologies: an event loop with simulated time, and the pytest plugin that runs tests on
it.

The names are loaded when they are first used: pytest imports this package in every run of every user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stormlet.testing.loop import Deadlock, SimulatedLoop, run_simulated

__all__ = ["Deadlock", "SimulatedLoop", "run_simulated"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stormlet.testing import loop

    return getattr(loop, name)
