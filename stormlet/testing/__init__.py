"""Tools for testing topologies: simulated time with a pytest plugin, whole topologies on given values, single bolts,
spouts and bolts that a test holds in its hands, simulations with faults, and soaks.

From the ground up::

    leaks, livelock      errors: something is left behind; simulated time does not pass
    images               images of values, to see whether one was changed after it was emitted
    outside/             threads, child processes and connections that hold simulated time
    loop                 the event loop with simulated time
    watched_run          a look at one run: its emits, its outcomes, and what it leaves behind
    feeder, bolts        a spout in the hands of a test; bolts that collect, or follow a script
    completing           a whole topology on given values
    bolt_runs            one bolt on given values
    simulation           a test on simulated time: its hands, its task, its topologies
    claims, plugin       the async tests that pytest leaves to the plugin
    chaos/               simulations with faults, judged by a witness
    soaking/             full load in real time, with faults

The names are loaded when they are first used: pytest imports this package in every run of every user.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stormlet.testing.bolt_runs import BoltResult, Input, InputResult, run_bolt, run_bolt_async
    from stormlet.testing.bolts import Ack, CollectingBolt, Delay, Fail, Hold, Raise, ScriptedBolt
    from stormlet.testing.chaos.evidence import SeedResult
    from stormlet.testing.chaos.faults import Fault, FaultKind, Faults
    from stormlet.testing.chaos.simulating import SimulationFailed, SimulationReport, simulate
    from stormlet.testing.completing import Completed, NotCompleted, complete, complete_async
    from stormlet.testing.feeder import Feeder, Settled
    from stormlet.testing.leaks import Leak, Leaked
    from stormlet.testing.livelock import Livelock
    from stormlet.testing.loop import Deadlock, SimulatedLoop, run_simulated, work
    from stormlet.testing.simulation import Simulation
    from stormlet.testing.soaking.report import SoakFailed, SoakReport
    from stormlet.testing.soaking.soak import soak
    from stormlet.testing.watched_run import Emission, Outcome

_HOMES = {
    "bolt_runs": ["BoltResult", "Input", "InputResult", "run_bolt", "run_bolt_async"],
    "bolts": ["Ack", "CollectingBolt", "Delay", "Fail", "Hold", "Raise", "ScriptedBolt"],
    "chaos.faults": ["Fault", "FaultKind", "Faults"],
    "chaos.simulating": ["SimulationFailed", "SimulationReport", "simulate"],
    "chaos.evidence": ["SeedResult"],
    "completing": ["Completed", "NotCompleted", "complete", "complete_async"],
    "feeder": ["Feeder", "Settled"],
    "leaks": ["Leak", "Leaked"],
    "livelock": ["Livelock"],
    "loop": ["Deadlock", "SimulatedLoop", "run_simulated", "work"],
    "simulation": ["Simulation"],
    "soaking.report": ["SoakFailed", "SoakReport"],
    "soaking.soak": ["soak"],
    "watched_run": ["Emission", "Outcome"],
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
    "work",
]


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
