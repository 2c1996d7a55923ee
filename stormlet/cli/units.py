"""Figures as a person reads them: short, with their unit, and never wider than eight characters; and durations as a
person writes them."""

from __future__ import annotations

import math

from stormlet.errors import InvalidConfiguration

UNITS = ("", " k", " M", " G", " T")
EXACT_BELOW = 10_000


def short_count(count: float) -> str:
    """``9,999``, ``12.3 k``, ``1.23 M``: at most six characters."""
    if count < EXACT_BELOW:
        return f"{count:,.0f}"
    unit = 0
    while count >= 999.5 and unit < len(UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{_three_digits(count)}{UNITS[unit]}"


def size(count: float) -> str:
    """``999 B``, ``12.3 kB``, ``1.23 GB``."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.0f} B" if unit == "B" else f"{_three_digits(count)} {unit}"
        count /= 1000
    return f"{_three_digits(count)} GB"


def rate(per_second: float) -> str:
    """As :func:`short_count`; below a hundred with one decimal."""
    return f"{per_second:.1f}" if 0 < per_second < 99.95 else short_count(per_second)


def latency(seconds: float | None) -> str:
    """``340 µs``, ``1.23 ms``, ``12.3 s``; empty for what is not known."""
    if seconds is None:
        return ""
    for size, unit in ((1e-3, "µs"), (1.0, "ms")):
        if seconds < 0.9995 * size:
            return f"{_three_digits(seconds / size * 1000)} {unit}"
    return f"{_three_digits(seconds)} s" if seconds < 1000 else duration(seconds)


def duration(seconds: float) -> str:
    """``12.4 s``, ``3 min 05 s``, ``2 h 03 min``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def rough_duration(seconds: float) -> str:
    """``12 s``, ``3 min 05 s``: for what is only estimated."""
    return duration(max(seconds, 60.0)) if seconds >= 59.5 else f"{seconds:.0f} s"


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}"


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
