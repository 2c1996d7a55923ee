"""Work that lets others run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count

import pytest

from stormlet.report.steps import Steps, at_once, each_of
from stormlet.runtime.run.sliced import Sliced

pytestmark = pytest.mark.simulated_time


def twenty(log: list[object]) -> Steps[str]:
    try:
        yield from each_of(enumerate(range(20)), lambda place, _: log.append(place))
    finally:
        log.append("closed")
    return "done"


def test_steps_can_be_taken_at_once() -> None:
    """Their result is that of the generator."""
    log: list[object] = []
    assert (at_once(twenty(log)), log) == ("done", [*range(20), "closed"])


async def test_others_run_after_each_slice() -> None:
    """A slice ends with the step in which 5 ms are over; the time for which it holds the loop is counted."""
    log, ticks = list[object](), count()

    async def other() -> None:
        while True:
            log.append("other")
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    sliced = Sliced(lambda: next(ticks) / 1000)  # each look at the clock takes a millisecond
    assert await sliced.run(twenty(log)) == "done"
    beside.cancel()
    turns = "".join("." if each == "other" else "x" for each in log).split(".")
    assert max(map(len, turns)) <= 6
    assert sliced.seconds == pytest.approx(0.029, abs=0.005)


async def test_who_is_cancelled_takes_no_more_steps() -> None:
    """And the work is closed."""
    log, ticks = list[object](), count()
    task = asyncio.create_task(Sliced(lambda: next(ticks) / 100).run(twenty(log)))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert log == [0, "closed"]
