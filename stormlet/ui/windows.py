"""The spans of time that numbers are for."""

from __future__ import annotations

from typing import Final

WINDOWS: Final = {"1m": 60, "10m": 600, "1h": 3600, "all": None}
"""By name, in seconds; None: since the start."""
ALL: Final = "all"
STORMS_ALL: Final = ":all-time"
"""Storm's word for the last one."""


def window_named(text: str) -> str | None:
    """Return the window of this name, ours or Storm's (``600``, ``:all-time``); None if there is none."""
    if text in WINDOWS:
        return text
    if text == STORMS_ALL:
        return ALL
    return next((name for name, seconds in WINDOWS.items() if str(seconds) == text), None)


def storms_name(window: str) -> str:
    """Return Storm's name of a window."""
    seconds = WINDOWS[window]
    return STORMS_ALL if seconds is None else str(seconds)
