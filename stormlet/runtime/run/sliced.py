"""Work that holds the event loop for a slice at a time, and lets others run in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final, TypeVar

from stormlet.report.steps import Steps

T = TypeVar("T")

SLICE: Final = 0.005
"""Seconds of a turn on the loop, after which others have theirs; a step that is longer is not cut."""


class Sliced:
    """Takes steps, a slice of the loop at a time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.seconds = 0.0
        """Seconds for which it has held the loop."""

    async def run(self, steps: Steps[T]) -> T:
        """Take all steps, and return their result; the work is closed if this is cancelled."""
        with closing(steps):
            while True:
                began = self._clock()
                try:
                    next(steps)  # one at least, however late it is
                    while self._clock() - began < SLICE:
                        next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result
                finally:
                    self.seconds += self._clock() - began
                await asyncio.sleep(0)


async def in_slices(steps: Steps[T]) -> T:
    """Take all steps, a slice of the loop at a time, and return their result."""
    return await Sliced().run(steps)
