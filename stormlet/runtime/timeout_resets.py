"""Keeps what a bolt task has from timing out while it works on it, for bolts that ask for that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from stormlet.runtime.collectors import AnyTuple, BoltCollector

RESETS_PER_TIMEOUT = 3
"""So that one late reset does no harm yet."""


class Holder(Protocol):
    """What is needed of the task."""

    loop: asyncio.AbstractEventLoop
    out: BoltCollector

    def tuples(self) -> Iterable[AnyTuple]:
        """Every unsettled tuple that is with the task: queued, in hand or held."""
        ...


class TimeoutResets:
    """Gives the trees of all that a task has their full time again (law L12), as long as it has anything
    (law S4)."""

    def __init__(self, holder: Holder, message_timeout: float) -> None:
        self._holder = holder
        self._interval = message_timeout / RESETS_PER_TIMEOUT
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The bolt is prepared: what is queued by now has waited for the restart of the task."""
        self._reset()
        self.arm()

    def arm(self) -> None:
        """The task has got an input."""
        if self._timer is None:
            self._timer = self._holder.loop.call_later(self._interval, self._reset)

    def cancel(self) -> None:
        """The task ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _reset(self) -> None:
        self._timer = None
        unsettled = list(self._holder.tuples())
        for tup in unsettled:
            self._holder.out.reset_timeout(tup)
        if unsettled:
            self.arm()
