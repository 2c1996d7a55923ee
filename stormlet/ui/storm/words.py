"""Numbers and names as Storm writes them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from stormlet.report.health import RunState

STATUSES: Final = {RunState.RUNNING: "ACTIVE"}
UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def status(state: RunState) -> str:
    """``ACTIVE``, ``INACTIVE``; the other states of a run go by their own names: ``STARTING``, ``DRAINING``."""
    return STATUSES.get(state, state.value.upper())


def pretty(seconds: float) -> str:
    """``1h 2m 3s``."""
    left, words = int(seconds), list[str]()
    for size, unit in UNITS:
        number, left = divmod(left, size)
        if number or words or unit == "s":
            words.append(f"{number}{unit}")
    return " ".join(words)


def milliseconds(seconds: float | None) -> str:
    """Milliseconds with three decimals; what is not known is 0, as in Storm."""
    return f"{(seconds or 0.0) * 1000:.3f}"


def in_url(name: str) -> str:
    """A name as a part of an address."""
    return quote(name, safe="", errors="replace")


def sanitized(stream: str) -> str:
    """The name of a stream as Storm has it in the visualization."""
    plain = re.sub(r"[^A-Za-z_\-.]", "_", stream)
    return plain if re.match(r"[A-Za-z]", stream) else f"_s{plain}"
