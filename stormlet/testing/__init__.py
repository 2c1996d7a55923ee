"""Tools for testing topologies: simulated time with a pytest plugin, whole topologies on given values, single bolts,
spouts and bolts that a test holds in its hands, simulations with faults, and soaks.

The names are loaded when they are first used: pytest imports this package in every run of every user.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stormlet.testing.bolt_results import BoltResult, InputResult
    from stormlet.testing.bolt_runs import run_bolt, run_bolt_async
    from stormlet.testing.bolt_trial import Input
    from stormlet.testing.chaos.faults import Fault, FaultKind, Faults
    from stormlet.testing.chaos.simulating import SimulationFailed, SimulationReport, simulate
    from stormlet.testing.chaos.simulator import SeedResult
    from stormlet.testing.collecting import CollectingBolt
    from stormlet.testing.completed import Completed
    from stormlet.testing.completing import NotCompleted, complete, complete_async
    from stormlet.testing.feeder import Feeder, Settled
    from stormlet.testing.leaks import Leak, Leaked
    from stormlet.testing.livelock import Livelock
    from stormlet.testing.loop import Deadlock, SimulatedLoop, run_simulated
    from stormlet.testing.recorded_run import Emission, Outcome
    from stormlet.testing.scripted import Ack, Delay, Fail, Hold, Raise, ScriptedBolt
    from stormlet.testing.simulation import Simulation
    from stormlet.testing.soaking.report import SoakFailed, SoakReport
    from stormlet.testing.soaking.soak import soak

_HOMES = {
    "bolt_results": ["BoltResult", "InputResult"],
    "bolt_runs": ["run_bolt", "run_bolt_async"],
    "bolt_trial": ["Input"],
    "chaos.faults": ["Fault", "FaultKind", "Faults"],
    "chaos.simulator": ["SeedResult"],
    "chaos.simulating": ["SimulationFailed", "SimulationReport", "simulate"],
    "collecting": ["CollectingBolt"],
    "completed": ["Completed"],
    "completing": ["NotCompleted", "complete", "complete_async"],
    "feeder": ["Feeder", "Settled"],
    "leaks": ["Leak", "Leaked"],
    "livelock": ["Livelock"],
    "loop": ["Deadlock", "SimulatedLoop", "run_simulated"],
    "recorded_run": ["Emission", "Outcome"],
    "scripted": ["Ack", "Delay", "Fail", "Hold", "Raise", "ScriptedBolt"],
    "simulation": ["Simulation"],
    "soaking.report": ["SoakFailed", "SoakReport"],
    "soaking.soak": ["soak"],
}

__all__ = [
    "Ack",
    "BoltResult",
    "CollectingBolt",
    "Completed",
    "Deadlock",
    "Delay",
    "Emission",
    "Fail",
    "Fault",
    "FaultKind",
    "Faults",
    "Feeder",
    "Hold",
    "Input",
    "InputResult",
    "Leak",
    "Leaked",
    "Livelock",
    "NotCompleted",
    "Outcome",
    "Raise",
    "ScriptedBolt",
    "SeedResult",
    "Settled",
    "SimulatedLoop",
    "Simulation",
    "SimulationFailed",
    "SimulationReport",
    "SoakFailed",
    "SoakReport",
    "complete",
    "complete_async",
    "run_bolt",
    "run_bolt_async",
    "run_simulated",
    "simulate",
    "soak",
]


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
