"""The loop of a simulation: the seed chooses the next one among the tasks that are ready."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from stormlet.runtime.run.kit import Kit
from stormlet.testing.livelock import Livelock
from stormlet.testing.loop import SimulatedLoop

MOST_CANDIDATES = 8
SHORTER = 10
"""Moments without progress are, than those of other simulated loops: rounds cost more here, and a seed that hangs is
run again and again to find the fewest faults."""
LONGER_AT_WORK = 5
"""Moments in which messages are emitted or settled are; all of these are kept for the report."""


class SeededLoop(SimulatedLoop):
    """A simulated loop that steps tasks in an order of the seed's. Callbacks keep theirs, as asyncio promises.

    ``begins`` is called with each coroutine before its next step; ``progress`` grows with every message that is emitted
    or settled.
    """

    def __init__(
        self,
        seed: int,
        kit: Kit,
        begins: Callable[[asyncio.Task[Any]], None],
        progress: Callable[[], int],
    ) -> None:
        self.kit = kit
        """The kit that the runtime finds here, and uses."""
        super().__init__(seed)
        self._ready = _Shuffled(Random(f"{seed}/order"), begins)
        self._progress = progress
        self._done = self._done_before = 0
        self.advances = False
        """True if messages were emitted or settled in the rounds that ended with a livelock."""

    def _another_round(self) -> None:
        shortest = self.longest_moment // SHORTER
        try:
            self._rounds.another(self.time(), shortest)
        except Livelock as error:
            done = self._progress()
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

    def __init__(self, random: Random, begins: Callable[[asyncio.Task[Any]], None]) -> None:
        super().__init__()
        self._random = random
        self._begins = begins

    def popleft(self) -> asyncio.Handle:
        candidates = 0
        for handle in self:
            if candidates == MOST_CANDIDATES or _task_of(handle) is None:
                break
            candidates += 1
        if candidates > 1:
            place = self._random.randrange(candidates)
            if place:
                self[0], self[place] = self[place], self[0]
        handle = super().popleft()
        if (task := _task_of(handle)) is not None:
            try:
                self._begins(task)
            except BaseException:
                self.appendleft(handle)  # of a process that was killed; its end goes through all tasks
                raise
        return handle


def _task_of(handle: Any) -> asyncio.Task[Any] | None:
    """The task whose step this is; None for any other callback."""
    owner: Any = getattr(handle._callback, "__self__", None)
    return owner if issubclass(type(owner), asyncio.Task) else None
