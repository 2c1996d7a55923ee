"""The loop of a simulation: which of the tasks that are ready goes first is for the seed to decide."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Any

from stormlet.runtime.parts import Parts
from stormlet.testing.loop import SimulatedLoop

MOST_CANDIDATES = 8


class SeededLoop(SimulatedLoop):
    """A simulated loop that steps tasks in an order of the seed's. Callbacks keep theirs, as asyncio promises."""

    def __init__(self, seed: int, parts: Parts) -> None:
        self.parts = parts
        """What the runtime finds here, and uses."""
        super().__init__(seed)
        self._ready = _Shuffled(Random(f"{seed}/order"))

    def jump(self, seconds: float) -> None:
        """Let so much time pass at once, as if something had blocked the loop."""
        self._clock.now += seconds


class _Shuffled(deque[asyncio.Handle]):
    """What is ready. Of the tasks at its head, up to the first callback, any may go first."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    def popleft(self) -> asyncio.Handle:
        candidates = 0
        for handle in self:
            if candidates == MOST_CANDIDATES or not _is_step(handle):
                break
            candidates += 1
        if candidates > 1:
            place = self._random.randrange(candidates)
            if place:
                self[0], self[place] = self[place], self[0]
        return super().popleft()


def _is_step(handle: Any) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)
