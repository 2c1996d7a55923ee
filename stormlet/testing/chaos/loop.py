"""The loop of a simulation: the seed chooses the next one among the tasks that are ready."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Any

from stormlet.testing.chaos.disturbances import Steps
from stormlet.testing.chaos.kit import DisturbedKit
from stormlet.testing.livelock import Livelock
from stormlet.testing.loop import SimulatedLoop

MOST_CANDIDATES = 8
SHORTER = 10
"""Moments without progress are, than those of other simulated loops: rounds cost more here, and a seed that hangs is
run again and again to find the fewest faults."""
LONGER_AT_WORK = 5
"""Moments in which messages are emitted or settled are; all of these are kept for the report."""


class SeededLoop(SimulatedLoop):
    """A simulated loop that steps tasks in an order of the seed's. Callbacks keep theirs, as asyncio promises."""

    def __init__(self, seed: int, kit: DisturbedKit) -> None:
        self.kit = kit
        """The kit that the runtime finds here, and uses."""
        super().__init__(seed)
        self._ready = _Shuffled(Random(f"{seed}/order"), kit.steps)
        self._done = self._done_before = 0
        self.advances = False
        """True if messages were emitted or settled in the rounds that ended with a livelock."""

    def _another_round(self) -> None:
        shortest = self.longest_moment // SHORTER
        try:
            self._rounds.another(self.time(), shortest)
        except Livelock as error:
            done = self.kit.progress
            if error.rounds == shortest:
                self._done_before = done
            self.advances = done > self._done
            self._done = done
            if not self.advances or max(error.rounds, done - self._done_before) >= shortest * LONGER_AT_WORK:
                raise
            self._rounds.excuse(error)

    def jump(self, seconds: float) -> None:
        """Let so much time pass at once, as if something had blocked the loop."""
        self._clock.now += seconds


class _Shuffled(deque[asyncio.Handle]):
    """The callbacks that are ready. Of the tasks at the head, up to the first other callback, any may go first."""

    def __init__(self, random: Random, steps: Steps) -> None:
        super().__init__()
        self._random = random
        self._steps = steps

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
        handle = super().popleft()
        if candidates:
            self._steps.begins(_owner(handle))
        return handle


def _is_step(handle: Any) -> bool:
    return isinstance(_owner(handle), asyncio.Task)


def _owner(handle: Any) -> object:
    return getattr(handle._callback, "__self__", None)
