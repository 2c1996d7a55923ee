"""How much memory the process takes, and whether that grows."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

MIB = 1024 * 1024
FEWEST = 8
"""Readings below which nothing can be said."""
WARM_UP = 0.25
"""The part of the readings that does not count: caches fill, and the allocator takes what it will use again."""

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """What the process has in memory, after a garbage collection; the most that it ever had, where the system does
    not tell more; None where it tells nothing, as Windows."""
    gc.collect()
    if _STATM.is_file():
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return _most_bytes()


def _most_bytes() -> int | None:
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:
        return None
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def start_and_end(readings: Sequence[int]) -> tuple[float, float] | None:
    """The medians of the first and of the last third after the warm-up; None for too few readings."""
    if len(readings) < FEWEST:
        return None
    warm = readings[int(len(readings) * WARM_UP) :]
    third = len(warm) // 3
    return median(warm[:third]), median(warm[-third:])
