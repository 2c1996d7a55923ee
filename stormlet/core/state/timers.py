"""Timers of keys: set, cancelled and fired as a part of the state (law K7).

A timer is a key and a time. It is kept as an entry of a map, so that it is rolled back, sealed and loaded as any other
state is; the entry's value is the order in which it was set. The heap only finds what is due: one is set only if
the table says so, too. What was taken from it comes back when the attempt is rolled back.

One that was cancelled stays on the heap until it is the earliest. Where keys put off their timers again and again, that
may be never: so it is noted that it is gone, and when half of the heap is, it is built anew without these.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

from stormlet.core.state.map_table import MapTable
from stormlet.core.state.tables import Declared

NAME: Final = "on_timer"
"""The name of the timers among the states of a bolt: no attribute of a user's can have it."""


LEAST_GONE: Final = 1000
"""Timers that are gone, before the heap is built anew."""

Timer: TypeAlias = tuple[float, int, int, Any]
"""Its time, its order, a number and its key."""


def timers_by(key: Any) -> Declared:
    """Return the declaration of timers, for keys of this type."""
    return Declared("map", int, float, key)


class Timers:
    """The timers of one task."""

    def __init__(self, table: MapTable, first: int = 1) -> None:
        """``first`` is the least place in the order of those that are set from now on."""
        self._table = table
        self._first = first
        self._heap: list[Timer] = []
        self._taken: list[Timer] = []
        self._new: list[Timer] = []
        """Those that the open attempt has set, without the late ones."""
        self._cancelled: list[Timer] = []
        """Those that the open attempt has cancelled."""
        self._gone: dict[tuple[float, int, Any], None] = {}
        """Those that were cancelled or rolled back before the open attempt, and may be on the heap."""
        self._late: list[Timer] = []
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
        self._gone = {}
        self._begin()
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
                self._new.append(timer)

    def cancel(self, key: Any, at: float) -> None:
        """Cancel a timer, if it is set."""
        at = _checked(at)
        order = self._table.get(key, at)
        self._table.put(key, at, None)
        if order is not None:
            self._cancelled.append((at, order, 0, key))

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
        for each in self._late:
            heappush(self._heap, each)
        self._gone |= dict.fromkeys(map(_known_by, self._cancelled))
        self._begin()

    def rolled_back(self) -> None:
        """Take back what was taken: the table has been rolled back."""
        for each in self._taken:
            heappush(self._heap, each)
        self._gone |= {_known_by(each): None for each in self._new if not self._is_set(each)}
        self._begin()

    def _begin(self) -> None:
        """Another attempt begins."""
        self._taken = []
        self._new = []
        self._cancelled = []
        self._late = []
        if len(self._gone) > max(LEAST_GONE, len(self._heap) / 2):
            self._heap = [each for each in self._heap if _known_by(each) not in self._gone]
            self._gone = {}
            heapify(self._heap)

    def _is_set(self, timer: Timer) -> bool:
        at, order, _, key = timer
        return bool(self._table.get(key, at) == order)


def _known_by(timer: Timer) -> tuple[float, int, Any]:
    at, order, _, key = timer
    return at, order, key


def _checked(at: float) -> float:
    time = float(at)
    if not abs(time) < float("inf"):
        raise ValueError(f"a timer is set for a number of seconds since 1970, not {at!r}")
    return time
