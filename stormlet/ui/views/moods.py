"""The state of a component in one word, so that a reader's eye finds what is wrong before any number."""

from __future__ import annotations

from typing import Final

RESTARTING: Final = "restarting"
"""A task of it has died, and is not at work again yet."""
LOST: Final = "lost"
"""Its broker cannot be reached."""
FAILING: Final = "failing"
"""Inputs or messages of it fail now."""
BUSY: Final = "busy"
"""It is in user code nearly all the time, or what waits for it fills its queues."""
BLOCKED: Final = "blocked"
"""It waits for room in the queues of others."""
IDLE: Final = "idle"
"""It has nothing to do."""
WELL: Final = "well"

FULL: Final = 0.9
"""The part of a queue from which on it is shown as full."""
MOST: Final = 0.8
"""The part of the time from which on a component is busy."""


def mood_of(
    *,
    restarting: bool,
    lost: bool,
    failed_rate: float,
    rate: float,
    fill: float | None,
    capacity: float | None,
    blocked: float | None,
) -> str:
    """Return the gravest of what holds."""
    if restarting:
        return RESTARTING
    if lost:
        return LOST
    if failed_rate > 0:
        return FAILING
    if (blocked or 0.0) > 0.5:
        return BLOCKED
    if (fill or 0.0) >= FULL or (capacity or 0.0) >= MOST:
        return BUSY
    return WELL if rate > 0 else IDLE
