"""Timers of keys: set, cancelled and fired as a part of the state (law K7).

A timer is a key and a time. It is kept as an entry of a map, so that it is rolled back, sealed and loaded as any other
state is; the entry's value is the order in which it was set. The heap only finds what is due: one is set only if
the table says so, too. What was taken from it comes back when the attempt is rolled back.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final

from stormlet.core.state.map_table import MapTable
from stormlet.core.state.tables import Declared

NAME: Final = "on_timer"
"""The name of the timers among the states of a bolt: no attribute of a user's can have it."""


def timers_by(key: Any) -> Declared:
    """Return the declaration of timers, for keys of this type."""
    return Declared("map", int, float, key)


class Timers:
    """The timers of one task."""

    def __init__(self, table: MapTable, first: int = 1) -> None:
        """``first`` is the least place in the order of those that are set from now on."""
        self._table = table
        self._first = first
        self._heap: list[tuple[float, int, int, Any]] = []
        self._taken: list[tuple[float, int, int, Any]] = []
        self._late: list[tuple[float, int, int, Any]] = []
        """Those that were set for a time that was past: they are due in the next epoch (law K7)."""
        self._order = 0
        self.load()

    def load(self) -> None:
        """Take what the table has."""
        timers = [
            (at, order, key) for key, each in self._table.committed_items() for at, order in each.items()
        ]
        # The number tells timers apart that several tasks have set in one order: keys cannot be compared.
        self._heap = [(at, order, number, key) for number, (at, order, key) in enumerate(timers)]
        self._taken = []
        self._late = []
        self._order = max([self._first - 1, *(order for _, order, _ in timers)])
        heapify(self._heap)

    def set(self, key: Any, at: float) -> None:
        """Set a timer; one that is set already stays. Raise :class:`TypeError` for a time that is no number, and
        :class:`ValueError` for one that never comes."""
        at = _checked(at)
        if self._table.get(key, at) is None:
            self._order += 1
            self._table.put(key, at, self._order)
            timer = (at, self._order, len(self._heap), key)
            if at <= self._table.now:
                self._late.append(timer)
            else:
                heappush(self._heap, timer)

    def cancel(self, key: Any, at: float) -> None:
        """Cancel a timer, if it is set."""
        self._table.put(key, _checked(at), None)

    @property
    def next(self) -> float | None:
        """The time of the earliest timer; None if there is none."""
        while self._heap and not self._is_set(self._heap[0]):
            self._taken.append(heappop(self._heap))
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[tuple[float, Any]]:
        """Take the timers that are due, with their keys: by time, then in the order they were set."""
        found: list[tuple[float, Any]] = []
        while (at := self.next) is not None and at <= now:
            timer = heappop(self._heap)
            self._taken.append(timer)
            self._table.put(timer[3], at, None)
            found.append((at, timer[3]))
        return found

    def sealed(self) -> None:
        """Forget what was taken: the table has been sealed, and another epoch begins."""
        self._taken = []
        for each in self._late:
            heappush(self._heap, each)
        self._late = []

    def rolled_back(self) -> None:
        """Take back what was taken: the table has been rolled back."""
        for each in self._taken:
            heappush(self._heap, each)
        self._taken = []
        self._late = []

    def _is_set(self, timer: tuple[float, int, int, Any]) -> bool:
        at, order, _, key = timer
        return bool(self._table.get(key, at) == order)


def _checked(at: float) -> float:
    time = float(at)
    if not abs(time) < float("inf"):
        raise ValueError(f"a timer is set for a number of seconds since 1970, not {at!r}")
    return time
