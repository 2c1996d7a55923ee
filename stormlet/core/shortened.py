"""Values as log lines, tables and messages show them: never longer than a line or two, and never an exception."""

from __future__ import annotations

from reprlib import Repr
from typing import Final

LONGEST: Final = 200
"""Characters."""


def _limits() -> Repr:
    limits = Repr()
    limits.maxstring = limits.maxother = LONGEST
    limits.maxlong = 50
    limits.maxlist = limits.maxtuple = limits.maxdict = limits.maxset = limits.maxfrozenset = 20
    return limits


_LIMITS: Final = _limits()


def shortened(value: object) -> str:
    """The ``repr`` of a value, its middle left out where it is longer than 200 characters."""
    return cut(_LIMITS.repr(value))


def cut(text: str) -> str:
    """A text, its middle left out where it is longer than 200 characters."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - 3) // 2
    return f"{text[:half]}...{text[-half:]}"
