"""The context that the tasks of one run share: plan, loop, seed, clock, slices, log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from random import Random, SystemRandom
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from stormlet.core.ids import IdSource
from stormlet.core.trees import OpenTree
from stormlet.model.plan import TaskPlan
from stormlet.runtime.epoch import OpenEpoch
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.slices import Activity, CountedSlices, Slices, TimedSlices
from stormlet.runtime.tracing import Tracing

if TYPE_CHECKING:
    from stormlet.model.planning import Plan
    from stormlet.model.streams import StreamId

ENGINE_FAULT: Final = "this is a fault of stormlet's, or of an object that lets nobody look at it"
"""The advice where the engine itself has raised, of which user code is not to blame (law N2)."""


class CrashSite(msgspec.Struct, frozen=True):
    """The task and the method in which an exception was raised that ends the run."""

    task: TaskPlan
    method: str
    restarts: str = ""
    """The recent restarts of that task, in words; empty if there were none."""
    way_out: str = ""
    """The reason it could not be restarted, and the way to let it be, in words; empty if there is nothing to say."""


class MessageObserver(Protocol):
    """Looks on at the messages of one run. A :class:`Message` is one tree in all its attempts; what a ``Spout`` class
    keeps by itself is another tree in each."""

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        """This spout task begins an attempt: it emits the value."""
        ...

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        """An attempt has its outcome, which the task is about to get."""
        ...


class Engine(msgspec.Struct):
    """The context of one run, which all of its tasks share."""

    plan: Plan
    loop: asyncio.AbstractEventLoop
    slices: Slices
    activity: Activity
    seed: int
    context: Context
    """The context variables of the topology; a message that brings others carries them along (law B10)."""
    crashed: Callable[[CrashSite, BaseException], None]
    """To be called with what user code raised where no tuple answers for it (law C5)."""
    host_leaves: Callable[[], bool]
    """Says if the host that has entered the block is being cancelled."""
    failures: FailureLog
    clock: Callable[[], float]
    """Seconds, to measure how long something takes: the loop's own clock may count whole milliseconds only."""
    simulated: bool = False
    longest_step: float | None = None
    """Seconds that a task may hold the loop without a warning; None: it is not looked at."""
    observer: MessageObserver | None = None
    tracing: Tracing | None = None
    """Traces some of the messages."""
    epoch: OpenEpoch | None = None
    """The open epoch, where messages belong to epochs (law X1)."""
    collected: dict[StreamId, dict[int, list[object]]] = msgspec.field(
        default_factory=dict["StreamId", dict[int, list[object]]]
    )
    """By stream and root, the values that an awaited tree collects (law C4)."""

    def failed(self, task: TaskPlan, error: BaseException) -> None:
        """The engine itself has raised while it worked for this task: crash, with every message counted (law N2)."""
        self.crashed(CrashSite(task, "the engine's part", way_out=ENGINE_FAULT), error)

    def guarded(self, task: TaskPlan, step: Callable[..., object], *arguments: object) -> None:
        """Take a step of the engine for this task in a callback, where nobody would see what it raises (law N2)."""
        try:
            step(*arguments)
        except (Exception, asyncio.CancelledError) as error:
            self.failed(task, error)

    def random(self, task: TaskPlan, purpose: str) -> Random:
        """A generator of its own for each purpose of each task, so that runs with one seed are the same (law
        L16)."""
        # By names and not by order: a component that is added changes the numbers of no other.
        return Random(f"{self.seed}/{task.component}/{task.index}/{purpose}")

    def ids(self, task: TaskPlan) -> IdSource:
        """The id source of one task."""
        return IdSource(self.random(task, "ids"))


def engine_on(
    loop: asyncio.AbstractEventLoop,
    plan: Plan,
    seed: int | None,
    *,
    activity: Activity,
    crashed: Callable[[CrashSite, BaseException], None],
    host_leaves: Callable[[], bool],
    failures: FailureLog,
    observer: MessageObserver | None,
    epoch: OpenEpoch | None = None,
) -> Engine:
    """Make the context of a run that begins now on this loop."""
    simulated = bool(getattr(loop, "simulated_time", False))
    chosen = _seed(loop, simulated=simulated) if seed is None else seed
    clock = _clock(loop, simulated=simulated)
    return Engine(
        plan=plan,
        loop=loop,
        slices=_slices(loop, clock, plan.description.configuration.slice, chosen, simulated=simulated),
        activity=activity,
        seed=chosen,
        context=copy_context(),
        crashed=crashed,
        host_leaves=host_leaves,
        failures=failures,
        clock=clock,
        simulated=simulated,
        observer=observer,
        epoch=epoch,
        longest_step=loop.slow_callback_duration if loop.get_debug() and not simulated else None,
    )


def _seed(loop: asyncio.AbstractEventLoop, *, simulated: bool) -> int:
    # A simulated loop has a seed of its own, so that whatever runs on it can be repeated (law L16).
    return int(getattr(loop, "seed", 0)) if simulated else SystemRandom().getrandbits(64)


def _clock(loop: asyncio.AbstractEventLoop, *, simulated: bool) -> Callable[[], float]:
    # uvloop's clock counts whole milliseconds of this one; a slice of two would be two or three.
    is_monotonic = not simulated and abs(loop.time() - monotonic()) < 0.1
    return monotonic if is_monotonic else loop.time


def _slices(
    loop: asyncio.AbstractEventLoop,
    clock: Callable[[], float],
    budget: float,
    seed: int,
    *,
    simulated: bool,
) -> Slices:
    return CountedSlices(loop, Random(f"{seed}/slices")) if simulated else TimedSlices(loop, budget, clock)
