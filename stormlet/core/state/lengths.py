"""The length of an epoch in time (law X1).

Theory of operation
-------------------
While an epoch ends, its sources wait until the slowest call of its messages has returned. With calls of two seconds and
an epoch each second they would wait for two thirds of the time. So an epoch that ends by its time lasts
:data:`STRETCH` times as long as they have waited for the last such end. It lasts :data:`STRETCH` times as long as
wanted at most, as results come no earlier.

An attempt that is repeated says nothing about that: it was done twice.
"""

from __future__ import annotations

from typing import Final

STRETCH: Final = 10.0
AT_ONCE: Final = 0.001
"""Seconds that are not waited for."""


class Length:
    """The length of the open epoch, by what the end of the last one has taken. All times are of one clock."""

    def __init__(self, seconds: float) -> None:
        """``seconds`` is what an epoch lasts that ends at once (``epoch_seconds``)."""
        self._wanted = seconds
        self._began = 0.0
        self._closed: float | None = None
        self._waited = 0.0

    @property
    def seconds(self) -> float:
        """Seconds that an epoch lasts from its first message until it is closed."""
        return max(self._wanted, STRETCH * min(self._waited, self._wanted))

    def begin(self, now: float) -> None:
        """Note its first message."""
        self._began = now

    def left(self, now: float) -> float:
        """Return the seconds until it is to be closed; 0 if that is now."""
        left = self._began + self.seconds - now
        return left if left > AT_ONCE else 0.0

    def close(self, now: float) -> None:
        """Note that the sources wait for its end from now on."""
        if self._closed is None:
            self._closed = now

    def repeat(self) -> None:
        """Note that another attempt begins."""
        self._closed = None

    def end(self, now: float) -> None:
        """Note that the next one is open."""
        if self._closed is not None:
            self._waited = now - self._closed
        self._closed = None
