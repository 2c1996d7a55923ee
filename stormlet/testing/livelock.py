"""Simulated time that never passes, because there is always something to do first."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from stormlet.errors import StormletError

WATCHED: Final = 1000
"""The last rounds, in which it is noted who keeps the loop busy."""
NAMED: Final = 5
ADVICE: Final = (
    "time passes when nothing is ready: let the source end, or await something, such as asyncio.sleep(0.001)",
    "or, if it only takes long, raise stormlet.testing.SimulatedLoop.longest_moment (simulate() allows a part of it)",
)


class Livelock(StormletError, RuntimeError):
    """Simulated time stands still: in every round of the loop something is ready, so that no timer is ever due."""

    def __init__(self, now: float, rounds: int, busy: Sequence[str], sources: Sequence[str] = ()) -> None:
        super().__init__(now, rounds, busy, sources)
        self.now = now
        """Simulated seconds at which time stands still."""
        self.rounds = rounds
        """The number of times that something was ready then."""
        self.busy = busy
        """The tasks that were ready most often, the busiest first."""
        self.sources = sources
        """A line for each spout that goes on, where the topology is known."""

    def knowing(self, sources: Iterable[str]) -> Livelock:
        """The same with these sources."""
        return Livelock(self.now, self.rounds, self.busy, tuple(sources))

    def __str__(self) -> str:
        stands = f"simulated time stands still at {self.now:g} s: in {self.rounds:,} rounds of the loop"
        busy = ", ".join(self.busy) or "callbacks"
        return "\n  ".join((f"{stands} there was always something to do, for {busy}", *self.sources, *ADVICE))


class Rounds:
    """Counts the rounds of a loop in which something is ready, while time stands still."""

    def __init__(self, ready: Callable[[], Iterable[asyncio.Handle]]) -> None:
        self._ready = ready
        self._now = 0.0
        self._count = 0
        self._excused = 0
        self._busy = Counter[str]()

    def another(self, now: float, most: int) -> None:
        """One more, at this time. Raises :class:`Livelock` when there are so many."""
        if now != self._now:
            self._begin(now)
        self._count += 1
        if self._count > most - WATCHED:
            self._busy.update(filter(None, map(_task_of, self._ready())))
            if self._count >= most:
                rounds = self._excused + self._count
                error = Livelock(now, rounds, [name for name, _ in self._busy.most_common(NAMED)])
                self._begin(now)
                raise error

    def excuse(self, livelock: Livelock) -> None:
        """There was progress in these rounds: let as many follow before the next :class:`Livelock`."""
        self._excused = livelock.rounds

    def _begin(self, now: float) -> None:
        self._now, self._count, self._excused = now, 0, 0
        self._busy.clear()


def _task_of(handle: Any) -> str | None:
    """The name of the task of which this is a step."""
    task: object = getattr(handle._callback, "__self__", None)
    return task.get_name() if isinstance(task, asyncio.Task) else None
