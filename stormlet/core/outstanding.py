"""Tuples that keep a tree open: the task that has each one, and its place there."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from stormlet.core.calls import Call, stack_line
from stormlet.core.shortened import shortened


class Place(Enum):
    """Place of a tuple at a bolt task."""

    QUEUED = "queued"
    """It is in the inbox: the bolt has not seen it yet."""
    EXECUTING = "executing"
    """User code has been called with it and has not returned."""
    HELD = "held"
    """``execute`` has returned without settling it, as the bolt may settle it later (law B2), or has forgotten to."""
    NOWHERE = "nowhere"
    """It was delivered there, is not settled, and no task has it."""


PHRASES: Final = {
    Place.QUEUED: "is queued at",
    Place.EXECUTING: "is executed by",
    Place.HELD: "is held by",
    Place.NOWHERE: "is no longer at",
}
"""Words for a place, between the value and the task."""


class Outstanding(msgspec.Struct, frozen=True):
    """A tuple that was delivered to a bolt task and is not settled."""

    value: object
    component: str
    """The bolt."""
    task: int
    """The id of the task that has it."""
    name: str
    """Name of this task in messages: ``count[0]``."""
    place: Place
    path: tuple[str, ...]
    """The tasks that it came through; without a recorder, only the one that emitted it."""
    ahead: int | None = None
    """Tuples that the task takes before it; None if it is not queued, or the queue was not looked at."""
    seconds: float | None = None
    """Seconds since its delivery; None without a recorder."""
    stack: tuple[Call, ...] = ()
    """Calls of the user code that has it, or that the task runs meanwhile; outermost first."""
    note: str = ""
    """A further remark."""

    def __str__(self) -> str:
        return (
            f"{shortened(self.value)} {PHRASES[self.place]} {self.name}{self._ahead()}{self._delivered()}"
            f", by way of {' > '.join(self.path)}{self._more()}"
        )

    def _ahead(self) -> str:
        if not self.ahead:
            return ""
        return ", behind another one" if self.ahead == 1 else f", behind {self.ahead:,} others"

    def _delivered(self) -> str:
        return "" if self.seconds is None else f", delivered {spelt(self.seconds)} ago"

    def _more(self) -> str:
        stack = stack_line(self.stack) if self.place is Place.EXECUTING else ""
        more = "; ".join(each for each in (self.note, stack) if each)
        return f": {more}" if more else ""


def spelt(seconds: float) -> str:
    """Return seconds as text, in tenths, below one second in thousandths."""
    return f"{round(seconds, 1 if seconds >= 1 else 3):.12g} s"  # 12 digits, and never 1e+06 s
