"""How a running topology is, for readiness probes."""

from __future__ import annotations

from enum import Enum

import msgspec


class RunState(Enum):
    """The stages of a run (law C1 to C5)."""

    STARTING = "starting"
    """Components are prepared and opened."""
    RUNNING = "running"
    INACTIVE = "inactive"
    """Spouts are not asked for tuples; ``running.emit`` works."""
    DRAINING = "draining"
    """No new messages; what is there is finished."""
    STOPPED = "stopped"
    CRASHED = "crashed"


class Health(msgspec.Struct, frozen=True):
    """The state of a run, at one moment."""

    state: RunState
    pending: int
    """Messages without an outcome."""
    full: tuple[str, ...]
    """Bolts with a full queue: what feeds them waits for room (law B6)."""
    crash: str | None
    """What crashed the topology; None if nothing did."""
    closing: tuple[str, ...] = ()
    """When everything else is over: the tasks whose ``close`` or ``cleanup`` has not returned."""
    restarting: tuple[str, ...] = ()
    """The tasks that have died and are not at work again yet; what is sent to them waits."""

    @property
    def ready(self) -> bool:
        """Whether it takes messages: ``running.emit`` may wait for room, but is not refused."""
        return self.state in (RunState.RUNNING, RunState.INACTIVE)
