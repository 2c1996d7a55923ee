"""The time for which tasks of one component wait for room in the queues of another (law B6)."""

from __future__ import annotations

from collections.abc import Callable


class RoomWaits:
    """A block for each wait: the time in which there is at least one counts."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting = 0
        self._since = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Seconds so far, with those of a wait that goes on."""
        return self._seconds + (self._clock() - self._since if self._waiting else 0.0)

    def __enter__(self) -> None:
        if not self._waiting:
            self._since = self._clock()
        self._waiting += 1

    def __exit__(self, *error: object) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._seconds += self._clock() - self._since
