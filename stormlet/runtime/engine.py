"""What the tasks of one running topology share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Protocol

import msgspec

from stormlet.core.description import StreamId
from stormlet.core.ids import IdSource
from stormlet.core.plan import Plan, TaskPlan
from stormlet.core.restarts import RestartPolicy, Restarts
from stormlet.runtime.activity import Activity
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.messages import MessageObserver
from stormlet.runtime.parts import Parts
from stormlet.runtime.slices import Slices


class Culprit(Protocol):
    """Whose user code raised."""

    plan: TaskPlan
    doing: str
    restarts: Restarts

    @property
    def way_out(self) -> str:
        """Why it could not be restarted, and what would let it, in words; empty if there is nothing to say."""
        ...


class EnginePart(msgspec.Struct):
    """The engine itself, at work for a task: what it raises is no fault of user code (law N2)."""

    plan: TaskPlan
    doing: str = "the engine's part"
    restarts: Restarts = msgspec.field(default_factory=lambda: Restarts(RestartPolicy()))
    way_out: str = "this is a fault of stormlet's, or of an object that lets nobody look at it"


class Engine(msgspec.Struct):
    """The surroundings of a task."""

    plan: Plan
    loop: asyncio.AbstractEventLoop
    slices: Slices
    activity: Activity
    seed: int
    context: Context
    """The context variables of the topology; a message that brings others carries them along (law B10)."""
    crashed: Callable[[Culprit, BaseException], None]
    """To be called with what user code raised where no tuple answers for it (law C5)."""
    host_leaves: Callable[[], bool]
    """Says if the host that has entered the block is being cancelled."""
    failures: FailureLog
    clock: Callable[[], float]
    """Seconds, to measure how long something takes: the loop's own clock may count whole milliseconds only."""
    parts: Parts
    simulated: bool = False
    longest_step: float | None = None
    """Seconds that a task may hold the loop without a warning; None: it is not looked at."""
    observer: MessageObserver | None = None
    collected: dict[StreamId, dict[int, list[object]]] = msgspec.field(
        default_factory=dict[StreamId, dict[int, list[object]]]
    )
    """By stream and root, the values that an awaited tree collects (law C4)."""

    def failed(self, task: TaskPlan, error: BaseException) -> None:
        """The engine itself has raised while it worked for this task: crash, with every message counted (law N2)."""
        self.crashed(EnginePart(task), error)

    def random(self, task: TaskPlan, purpose: str) -> Random:
        """A generator of its own for each purpose of each task, so that runs with one seed are the same (law
        L16)."""
        return Random(f"{self.seed}/{task.component}/{task.index}/{purpose}")

    def ids(self, task: TaskPlan) -> IdSource:
        """The id source of one task."""
        return IdSource(self.random(task, "ids"))
