"""Durations on the command line: ``90``, ``90s``, ``5m``, ``1h``."""

from __future__ import annotations

import math

from stormlet.errors import InvalidConfiguration

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_duration(option: str, text: str) -> float:
    """Seconds; raises :class:`~stormlet.errors.InvalidConfiguration` naming the option."""
    number = text.strip().lower()
    unit = next((each for each in SECONDS if number.endswith(each)), "s")
    try:
        seconds = float(number.removesuffix(unit)) * SECONDS[unit]
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InvalidConfiguration(f"{option} {text}: write seconds, or a number with its unit: 90s, 5m, 1h")
    return seconds


def read_deadline(text: str) -> float | None:
    """The value of ``--drain-timeout``: as :func:`read_duration`, and ``none`` is no deadline."""
    return None if text.strip().lower() in ("none", "null") else read_duration("--drain-timeout", text)
