"""A loop whose clock is moved by *work*.

A call that costs a millisecond moves it by a millisecond, and nothing else does: what a host then waits is exact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar

from stormlet.testing import SimulatedLoop

SLICE = 0.002
COST = 0.001
"""Seconds that one call of user code takes."""
TASKS = 40
LONGEST = SLICE + 2 * COST
"""What a host may wait: a slice, and the calls that began within it."""


class WorkLoop(SimulatedLoop):
    """A loop whose clock user code moves by working; the engine takes it for a real one."""

    simulated_time: ClassVar[bool] = False
    worked = 0
    """How often."""

    def work(self, seconds: float) -> None:
        """Spend time."""
        self.worked += 1
        self._clock.now += seconds


def work_loop() -> WorkLoop:
    """The running one."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WorkLoop)
    return loop


def work(value: object = None) -> None:
    """What user code does in these tests."""
    work_loop().work(COST)


def on_work_time(test: Coroutine[Any, Any, None]) -> None:
    """Run on such a loop."""
    with asyncio.Runner(loop_factory=WorkLoop) as runner:
        runner.run(test)


async def waits(calls: int) -> list[float]:
    """How long a host waits for each of its turns, until so many calls have worked."""
    loop, waited = work_loop(), list[float]()
    while loop.worked < calls:
        before = loop.time()
        await asyncio.sleep(0)
        waited.append(loop.time() - before)
    return waited


async def longest_wait(calls: int) -> float:
    """The longest of these."""
    return max(await waits(calls))
