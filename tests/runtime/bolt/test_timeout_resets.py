"""When what a task has is given its full time again."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest

from stormlet.runtime.bolt.batches import RESETS_AT_ONCE, TimeoutResets
from tests.helpers import now

pytestmark = pytest.mark.simulated_time


class Holder:
    """Some tuples; notes when which of them were reset."""

    def __init__(self, *held: str) -> None:
        self.held = list(held)
        self.noted: list[tuple[float, str]] = []

    def resets(self, message_timeout: float) -> TimeoutResets:
        return TimeoutResets(asyncio.get_running_loop(), message_timeout, self._unsettled, self._reset)

    def _unsettled(self) -> Any:
        return self.held

    def _reset(self, tup: object) -> None:
        self.noted.append((now(), cast("str", tup)))


async def test_everything_held_is_reset_three_times_in_a_timeout() -> None:
    """Each reset is for all that is there at that moment."""
    holder = Holder("a", "b")
    holder.resets(3.0).arm()
    await asyncio.sleep(1.5)
    holder.held.remove("a")
    await asyncio.sleep(1)
    assert holder.noted == [(1.0, "a"), (1.0, "b"), (2.0, "b")]


async def test_it_rests_while_nothing_is_held() -> None:
    """No timer runs then, until there is another input."""
    holder = Holder()
    resets = holder.resets(3.0)
    resets.arm()
    await asyncio.sleep(10)
    holder.held.append("a")
    await asyncio.sleep(10)
    assert holder.noted == []
    resets.arm()
    await asyncio.sleep(1)
    assert holder.noted == [(21.0, "a")]


async def test_more_inputs_make_no_more_timers() -> None:
    """However often it is armed, there is one reset in a third of the timeout."""
    holder = Holder("a")
    resets = holder.resets(3.0)
    for _ in range(5):
        resets.arm()
    await asyncio.sleep(1)
    assert holder.noted == [(1.0, "a")]


async def test_others_have_turns_while_many_are_reset() -> None:
    """A sink may hold hundreds of thousands; each is reset once, and no input that comes meanwhile makes a timer."""
    held = [str(number) for number in range(5 * RESETS_AT_ONCE + 1)]
    holder = Holder(*held)
    resets = holder.resets(3.0)
    resets.arm()
    await asyncio.sleep(1)
    seen = [len(holder.noted)]
    while seen[-1] < len(held):
        resets.arm()
        await asyncio.sleep(0)
        seen.append(len(holder.noted))
    assert max(after - before for before, after in pairwise(seen)) == RESETS_AT_ONCE
    assert holder.noted == [(1.0, tup) for tup in held]
    holder.held = ["a"]
    await asyncio.sleep(1)
    assert holder.noted[len(held) :] == [(2.0, "a")]


async def test_one_that_is_cancelled_half_way_ends_there() -> None:
    """The instance is over, and with it what it held."""
    holder = Holder(*map(str, range(5 * RESETS_AT_ONCE)))
    resets = holder.resets(3.0)
    resets.arm()
    await asyncio.sleep(1)
    resets.cancel()
    done = len(holder.noted)
    await asyncio.sleep(10)
    assert RESETS_AT_ONCE <= len(holder.noted) == done < 5 * RESETS_AT_ONCE


async def test_one_that_has_raised_is_armed_again() -> None:
    """Or nothing that the task gets would be reset any more."""
    holder = Holder("a")
    resets = holder.resets(3.0)
    raised = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
    holder.noted = cast("Any", None)
    resets.arm()
    await asyncio.sleep(1)
    assert len(raised) == 1
    holder.noted = []
    resets.arm()
    await asyncio.sleep(1)
    assert holder.noted == [(2.0, "a")]


async def test_what_is_queued_at_a_restart_is_reset_at_once() -> None:
    """``prepare`` comes next, and may hold the loop for long."""
    holder = Holder(*map(str, range(2 * RESETS_AT_ONCE)))
    resets = holder.resets(3.0)
    resets.begin()
    assert len(holder.noted) == 2 * RESETS_AT_ONCE
    resets.cancel()


async def test_a_cancelled_one_resets_nothing() -> None:
    """It may never have been armed, too."""
    holder = Holder("a")
    resets = holder.resets(3.0)
    resets.cancel()
    resets.arm()
    resets.cancel()
    await asyncio.sleep(10)
    assert holder.noted == []
