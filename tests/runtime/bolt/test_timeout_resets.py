"""When what a task has is given its full time again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from stormlet.runtime.bolt.batches import TimeoutResets
from tests.helpers import now

pytestmark = pytest.mark.simulated_time


class Holder:
    """A task with some tuples; notes when which of them were reset."""

    def __init__(self, *held: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.out: Any = self
        self.held = list(held)
        self.resets: list[tuple[float, str]] = []

    def tuples(self) -> Iterator[Any]:
        yield from self.held

    def reset_timeout(self, tup: object) -> None:
        self.resets.append((now(), cast("str", tup)))


async def test_everything_held_is_reset_three_times_in_a_timeout() -> None:
    """Each reset is for all that is there at that moment."""
    holder = Holder("a", "b")
    TimeoutResets(holder, 3.0).arm()
    await asyncio.sleep(1.5)
    holder.held.remove("a")
    await asyncio.sleep(1)
    assert holder.resets == [(1.0, "a"), (1.0, "b"), (2.0, "b")]


async def test_it_rests_while_nothing_is_held() -> None:
    """No timer runs then, until there is another input."""
    holder = Holder()
    resets = TimeoutResets(holder, 3.0)
    resets.arm()
    await asyncio.sleep(10)
    holder.held.append("a")
    await asyncio.sleep(10)
    assert holder.resets == []
    resets.arm()
    await asyncio.sleep(1)
    assert holder.resets == [(21.0, "a")]


async def test_more_inputs_make_no_more_timers() -> None:
    """However often it is armed, there is one reset in a third of the timeout."""
    holder = Holder("a")
    resets = TimeoutResets(holder, 3.0)
    for _ in range(5):
        resets.arm()
    await asyncio.sleep(1)
    assert holder.resets == [(1.0, "a")]


async def test_a_cancelled_one_resets_nothing() -> None:
    """It may never have been armed, too."""
    holder = Holder("a")
    resets = TimeoutResets(holder, 3.0)
    resets.cancel()
    resets.arm()
    resets.cancel()
    await asyncio.sleep(10)
    assert holder.resets == []
