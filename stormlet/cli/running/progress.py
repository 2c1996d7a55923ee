"""Plain lines about a run, where there is no terminal to draw on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from stormlet.cli.running.meter import Frame
from stormlet.cli.running.observation import PATIENCE, Observation
from stormlet.cli.running.view import reported
from stormlet.cli.units import duration, rough_duration, short_count
from stormlet.core.shortened import printable

EVERY = 10.0
"""Seconds between two lines of progress."""
DRAIN_EVERY = 5.0
"""Seconds between two lines about a drain."""
MOST_SPOUTS = 4
"""How many spouts, and how many reports of progress, one line has."""

Say = Callable[[str], object]


async def report(observation: Observation, say: Say) -> None:
    """Say how far the run is, from time to time, and what a drain waits for."""
    await asyncio.gather(_report_progress(observation, say), _report_drain(observation, say))


async def _report_progress(observation: Observation, say: Say) -> None:
    while True:
        await asyncio.sleep(EVERY)
        say(progress_line(observation.frame()))


async def _report_drain(observation: Observation, say: Say) -> None:
    await observation.ending.begun.wait()
    await asyncio.sleep(PATIENCE)
    while True:
        say(observation.drain())
        await asyncio.sleep(DRAIN_EVERY)


def progress_line(frame: Frame) -> str:
    """``10.0 s  lines 12,340 acked, 0 failed, 1,000 pending; 74.0 k tuples/s; 45 %, 12.0 s left``."""
    return f"{duration(frame.seconds)}  {'; '.join(_parts(frame))}"


def _parts(frame: Frame) -> Iterator[str]:
    spouts = [row for row in frame.rows if row.is_spout]
    for row in spouts[:MOST_SPOUTS]:
        yield f"{printable(row.id)} {row.acked:,} acked, {row.failed:,} failed, {row.waiting:,} pending"
    if len(spouts) > MOST_SPOUTS:
        yield f"and {len(spouts) - MOST_SPOUTS} spouts more"
    yield from (reported(each, "{:,}".format) for each in frame.reports[:MOST_SPOUTS])
    yield f"{short_count(frame.tuples_per_second)} tuples/s"
    if frame.dead_letters:
        yield f"{frame.dead_letters:,} dead letters"
    progress = frame.progress
    if progress is not None and progress.seconds_left is not None:
        yield f"{progress.done / progress.total:.0%} done, {rough_duration(progress.seconds_left)} left"
