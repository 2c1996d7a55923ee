"""Timeline of an attempt: the executions of its tuples, as a recorder has seen them."""

from __future__ import annotations

from enum import Enum
from math import inf

import msgspec


class Ending(Enum):
    """Result of an execution, at the time of the report or at the end of its attempt."""

    RUNNING = "running"
    """User code has been called and has neither returned nor settled the input."""
    HELD = "held"
    """The call has returned, and the bolt settles the input later (law B2)."""
    ACKED = "acked"
    FAILED = "failed"
    """The input has failed, perhaps with its task."""


class Execution(msgspec.Struct, frozen=True):
    """One execution of a tuple. Times are seconds by the clock of the run, whose zero says nothing."""

    component: str
    """The bolt."""
    task: int
    """The id of the task that executes it."""
    name: str
    """Name of this task in messages: ``count[0]``."""
    began: float
    ended: float | None
    """Return of the call; None if it has not returned. Waits for room (law B6) are no part of it."""
    waited: float
    """Seconds between the delivery and :attr:`began`: in the queue, and in a batch that was not full."""
    ending: Ending


class Timeline(msgspec.Struct, frozen=True):
    """Executions of one attempt, in the order in which they began."""

    began: float
    """Begin of the attempt, by the same clock."""
    executions: tuple[Execution, ...] = ()
    left_out: int = 0
    """Executions that are not among them, as there were too many."""

    def shortened(self, most: int) -> Timeline:
        """Return it with at most so many executions: first those that were not acked, then those that took longest."""
        if len(self.executions) <= most:
            return self
        kept = sorted(self.executions, key=_weight)[:most]
        kept.sort(key=lambda each: each.began)
        return Timeline(self.began, tuple(kept), self.left_out + len(self.executions) - most)


def _weight(execution: Execution) -> tuple[bool, float]:
    taken = inf if execution.ended is None else execution.ended - execution.began
    return execution.ending is Ending.ACKED, -taken
