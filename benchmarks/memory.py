"""The memory of this process."""

from __future__ import annotations

import sys
from pathlib import Path

STATM = Path("/proc/self/statm")


def peak_mib() -> float:
    """The most that was ever resident. Raises :class:`ImportError` on Windows."""
    from resource import RUSAGE_SELF, getrusage

    unit = 1 if sys.platform == "darwin" else 1024
    return getrusage(RUSAGE_SELF).ru_maxrss * unit / 2**20


def resident_bytes() -> int | None:
    """The bytes that are resident now; None where the system is not Linux."""
    if not STATM.exists():
        return None
    from resource import getpagesize

    return int(STATM.read_text("ascii").split()[1]) * getpagesize()
