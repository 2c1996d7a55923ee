"""The coroutines of a run besides its tasks: rotation of the ackers, ticks of bolts, the conductor, and reports of
stuck trees (law L12, B5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from math import ceil
from typing import Any

from stormlet.model.description import Description
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.epochs.keeper import EpochKeeper
from stormlet.runtime.explain.explainer import Explainer
from stormlet.runtime.explain.stuck import StuckTrees
from stormlet.runtime.run.conductor import Conductor
from stormlet.runtime.run.loop_probe import LoopProbe
from stormlet.runtime.run.monitor import Monitor
from stormlet.runtime.tasks import Tasks


def _never() -> bool:
    return False


async def rotate_ackers(ackers: Sequence[AckerTask], message_timeout: float, buckets: int) -> None:
    """Rotate all ackers every ``message_timeout / (buckets - 1)`` seconds on the loop's clock, as long as there
    is something that can expire: idle costs nothing (law S4).

    The time runs from one rotation to the next: catching up on late ones would let trees expire too early
    (L12).
    """
    loop = asyncio.get_running_loop()
    # A timer that is always there would keep simulated time from standing still, and a deadlock from being found.
    stirred = asyncio.Event()
    for acker in ackers:
        acker.stirred = stirred.set
    interval = message_timeout / (buckets - 1)
    last = loop.time()
    while True:
        stirred.clear()
        if not any(acker.may_expire for acker in ackers):
            await stirred.wait()
        # After a loop that was held up, one rotation makes up for all that were missed: two at once would let a
        # young tree expire.
        missed = max(0, ceil((loop.time() - last) / interval) - 1)
        await _until(loop, last + (missed + 1) * interval)
        for acker in ackers:
            acker.rotate_soon()
        last = loop.time()


async def tick_bolts(
    tasks: Sequence[BoltTask], seconds: float, leaves_out: Callable[[], bool] = _never
) -> None:
    """Have ``tick`` called every so many seconds at each of these tasks, without drift.

    Ticks that a lagging loop has missed are left out, and those for which ``leaves_out`` says so. After a tick that
    took longer than its interval comes a pause: else there might never be a quiet moment, and a finite run would not
    end (law S5).
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    ticks = 0
    while True:
        # Counted from the start, and not from the last tick: the time that a tick takes would add up.
        ticks = max(ticks, int((loop.time() - start) / seconds)) + 1
        await _until(loop, start + ticks * seconds)
        if leaves_out():
            continue
        for task in tasks:
            # Each task for itself: one that is slow must not take their ticks from the others.
            if not task.ticks.has_just_ended(seconds):
                task.ask("tick")


async def _until(loop: asyncio.AbstractEventLoop, when: float) -> None:
    waiter = loop.create_future()
    timer = loop.call_at(when, _ring, waiter)
    try:
        await waiter
    finally:
        # A helper that is cancelled would leave its timer with the loop until it is due.
        timer.cancel()


def _ring(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


ORPHAN_TIMEOUT = 30.0
"""Seconds after which the ackers forget what they know of trees that never began, where timeouts are off
(law L5)."""


def background(
    description: Description,
    tasks: Tasks,
    conductor: Conductor,
    explainer: Explainer,
    epochs: EpochKeeper | None,
    probe: LoopProbe | None,
    monitor: Monitor | None,
) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    """Each with its name; to be run from the start of the spouts to the end."""
    configuration = description.configuration
    yield "conductor", conductor.run()
    if probe is not None:
        yield "loop probe", probe.watch()
    if monitor is not None:
        yield "monitor", monitor.run()
    if tasks.ackers:
        timeout = configuration.message_timeout or ORPHAN_TIMEOUT
        yield "ticker", rotate_ackers(tasks.ackers, timeout, configuration.timeout_buckets)
    for id, spec in description.bolts.items():
        # run(tick=) is for all bolts of a topology, and most of them have nothing to do at a tick.
        ticked = [task for task in tasks.bolts[id] if task.worker.method("tick") is not None]
        if spec.tick is not None and ticked:
            # What a tick emits after bolts were told of the end of an epoch would be missing in it (law X5).
            leaves_out = _never if epochs is None else epochs.is_ending
            yield f"ticks of {id}", tick_bolts(ticked, spec.tick, leaves_out)
    if configuration.explain_stuck is not None and tasks.ackers:
        stuck = StuckTrees(
            description.name, explainer, configuration.explain_stuck, configuration.message_timeout
        )
        yield "stuck trees", stuck.watch()
