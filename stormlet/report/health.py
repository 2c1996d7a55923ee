"""State of a running topology, for readiness probes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from stormlet.report.connections import Connection


class RunState(Enum):
    """The stages of a run (law C1 to C5)."""

    STARTING = "starting"
    """Components are prepared and opened."""
    RUNNING = "running"
    INACTIVE = "inactive"
    """Spouts are not asked for tuples; ``running.emit`` works."""
    DRAINING = "draining"
    """New messages are refused; those that are under way are finished."""
    STOPPED = "stopped"
    CRASHED = "crashed"


class Health(msgspec.Struct, frozen=True):
    """The state of a run, at one moment."""

    state: RunState
    pending: int
    """Messages without an outcome."""
    full: tuple[str, ...]
    """Bolts with a full queue: their producers wait for room (law B6)."""
    crash: str | None
    """The crash of the topology, in words; None if there was none."""
    closing: tuple[str, ...] = ()
    """Tasks whose ``close`` or ``cleanup`` has not returned, once everything else is over."""
    restarting: tuple[str, ...] = ()
    """Tasks that have died and are not at work again yet; tuples that are sent to them wait."""

    epoch: int | None = None
    """The last epoch that is durable; None where messages do not belong to epochs."""
    epoch_age: float | None = None
    """Seconds since it was committed; None before the first."""

    connections: Mapping[str, Connection] = {}
    """The connections of tasks to their brokers, by the names of the tasks, such as ``orders[0]``."""

    @property
    def ready(self) -> bool:
        """True if it takes messages: ``running.emit`` may wait for room, but is not refused; and all sources and sinks
        have their brokers."""
        running = self.state in (RunState.RUNNING, RunState.INACTIVE)
        return running and all(each.is_ready for each in self.connections.values())
