"""What a run takes from the loop that it runs on, and from the context that it begins in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from random import Random, SystemRandom
from time import monotonic

from stormlet.core.plan import Plan
from stormlet.runtime.activity import Activity
from stormlet.runtime.engine import Culprit, Engine
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.messages import MessageObserver
from stormlet.runtime.parts import Parts
from stormlet.runtime.slices import CountedSlices, Slices, TimedSlices


def engine_on(
    loop: asyncio.AbstractEventLoop,
    plan: Plan,
    seed: int | None,
    *,
    activity: Activity,
    crashed: Callable[[Culprit, BaseException], None],
    host_leaves: Callable[[], bool],
    failures: FailureLog,
    observer: MessageObserver | None,
) -> Engine:
    """The surroundings of the tasks of a run on this loop, which begins now."""
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
        parts=getattr(loop, "parts", None) or Parts(),
        simulated=simulated,
        observer=observer,
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
