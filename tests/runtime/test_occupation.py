"""The time shares of one task by themselves, with a clock and coroutines in the hands of the test."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, cast

import pytest

from stormlet.runtime.occupation import AWAITING, BLOCKED, IDLE, IN_THREAD, LIMITED, Occupation, Steps


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@coroutine
def suspended() -> Generator[None, object, object]:
    return (yield)


def task(places: int = 1) -> tuple[Clock, Occupation]:
    clock = Clock()
    return clock, Occupation(clock, places)


def sums(of: Occupation) -> tuple[float, float, float, float, float]:
    of.look()
    return of.on_loop, of.threads, of.awaiting, of.blocked, of.limited


async def waits(clock: Clock, of: Occupation, *whiles: int) -> None:
    """Runs for a second before each wait."""
    for doing in whiles:
        clock.now += 1
        before = of.switch(doing)
        await suspended()
        of.switch(before)
    clock.now += 1


@pytest.mark.parametrize(
    ("doing", "place"), [(IN_THREAD, 1), (AWAITING, 2), (BLOCKED, 3), (LIMITED, 4), (IDLE, None)]
)
def test_a_suspended_coroutine_does_what_it_said(doing: int, place: int | None) -> None:
    """Its steps are execution, and the time between them is what it has announced."""
    clock, of = task()
    steps = Steps(waits(clock, of, doing), of)
    next(cast("Any", steps))
    clock.now += 10
    with pytest.raises(StopIteration):
        steps.send(None)
    expected = [2.0, 0.0, 0.0, 0.0, 0.0]
    if place is not None:
        expected[place] = 10.0
    assert (sums(of), of.uptime) == (tuple(expected), 12.0)


def test_time_before_the_first_step_and_after_the_end_is_no_time_of_the_task() -> None:
    """Its uptime begins with its first step."""
    clock, of = task()
    clock.now = 5.0
    steps = Steps(waits(clock, of, AWAITING), of)
    assert sums(of) == (0, 0, 0, 0, 0)
    steps.send(None)
    clock.now += 2
    of.end()
    clock.now += 100
    assert (sums(of), of.uptime) == ((1, 0, 2, 0, 0), 3.0)
    steps.close()


def test_a_place_counts_once() -> None:
    """What waits within a wait is the inner one: room within an await, a thread within either."""
    clock, of = task()
    with pytest.raises(StopIteration):
        Steps(waits(clock, of), of).send(None)
    for doing in (AWAITING, BLOCKED, IN_THREAD):
        of.note(doing, 1)
        clock.now += 1
    assert sums(of) == (1, 1, 1, 1, 0)


def test_each_place_has_its_part() -> None:
    """Of four places one is blocked and two await, for a second; then a fifth wait changes nothing."""
    clock, of = task(places=4)
    steps = [Steps(waits(clock, of, doing), of) for doing in (BLOCKED, AWAITING, AWAITING)]
    for each in steps:
        each.send(None)
    before = sums(of)
    clock.now += 1
    assert sums(of)[2:4] == pytest.approx((before[2] + 0.5, before[3] + 0.25))
    before = sums(of)
    of.note(IN_THREAD, 7)
    clock.now += 1
    assert sums(of) == pytest.approx((before[0], before[1] + 1, *before[2:]))
    for each in steps:
        each.close()


def test_what_is_thrown_in_is_a_step() -> None:
    """A cancelled coroutine executes what it does about it."""
    clock, of = task()
    steps = Steps(waits(clock, of, AWAITING), of)
    steps.send(None)
    clock.now += 3
    with pytest.raises(asyncio.CancelledError):
        steps.throw(asyncio.CancelledError())
    clock.now += 1
    assert (sums(of), of.current) == ((1, 0, 3, 0, 0), None)


def test_others_say_nothing() -> None:
    """What runs in no coroutine of the task has no part in what it does."""
    clock, of = task()
    assert of.switch(BLOCKED) == BLOCKED
    clock.now += 1
    assert sums(of) == (0, 0, 0, 0, 0)


@pytest.mark.asyncio
async def test_it_is_a_coroutine_for_asyncio_and_shows_the_one_it_drives() -> None:
    """Tasks take it, and those who look into a task see the frame of the code that runs in it."""
    clock, of = task()
    own = waits(clock, of)
    steps = cast("Coroutine[Any, Any, None]", Steps(own, of))
    assert inspect.isawaitable(steps)
    assert steps.cr_code is own.cr_code  # type: ignore[attr-defined]
    running = asyncio.get_running_loop().create_task(steps)
    assert "waits" in repr(running)
    await running
    assert sums(of)[0] == 1
    await cast("Coroutine[Any, Any, None]", Steps(waits(clock, of), of))
