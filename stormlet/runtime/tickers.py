"""The clocks of a topology: the ticker that rotates the ackers, and the ticks of bolts (law L12, B5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import ceil

from stormlet.runtime.ackers import AckerTask
from stormlet.runtime.bolts import BoltTask


async def rotate_ackers(ackers: Sequence[AckerTask], message_timeout: float, buckets: int) -> None:
    """Rotate all ackers every ``message_timeout / (buckets - 1)`` seconds on the loop's clock, as long as there
    is something that can expire: idle costs nothing (law S4).

    The time runs from one rotation to the next: catching up on late ones would let trees expire too early
    (L12).
    """
    loop = asyncio.get_running_loop()
    stirred = asyncio.Event()
    for acker in ackers:
        acker.stirred = stirred.set
    interval = message_timeout / (buckets - 1)
    last = loop.time()
    while True:
        stirred.clear()
        if not any(acker.may_expire for acker in ackers):
            await stirred.wait()
        missed = max(0, ceil((loop.time() - last) / interval) - 1)
        await _until(loop, last + (missed + 1) * interval)
        for acker in ackers:
            acker.rotate_soon()
        last = loop.time()


async def tick_bolts(tasks: Sequence[BoltTask], seconds: float) -> None:
    """Have ``tick`` called every so many seconds at each of these tasks, without drift.

    Ticks that a lagging loop has missed are left out. After a tick that took longer than its interval comes a
    pause: else there might never be a moment of calm, and a finite run would not end (law S5).
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    ticks = 0
    while True:
        ticks = max(ticks, int((loop.time() - start) / seconds)) + 1
        await _until(loop, start + ticks * seconds)
        for task in tasks:
            if not task.has_just_ticked(seconds):
                task.ask("tick")


async def _until(loop: asyncio.AbstractEventLoop, when: float) -> None:
    waiter = loop.create_future()
    timer = loop.call_at(when, _ring, waiter)
    try:
        await waiter
    finally:
        timer.cancel()


def _ring(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
