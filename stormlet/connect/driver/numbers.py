"""The numbers in the ids of messages, of which no two that are under way may have the same (law R3).

Where an instance of a spout has died, its trees go on beside those of the next one, to which their outcomes are told.
So these numbers belong to the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count


class TaskNumbers:
    """Those of one task."""

    def __init__(self) -> None:
        self.unnamed: Iterator[int] = count(1)
        """For messages without a name."""
        self.suffixes: Iterator[int] = count()
        """Behind the names of messages; see :class:`~stormlet.core.settlement.receipts.Receipts`."""


class Numbers:
    """Those of all tasks; one object for a whole run."""

    def __init__(self) -> None:
        self._by_task: dict[int, TaskNumbers] = {}

    def of(self, task: int) -> TaskNumbers:
        """Return those of the task with this id."""
        return self._by_task.setdefault(task, TaskNumbers())
