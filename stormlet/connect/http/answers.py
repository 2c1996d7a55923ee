"""The meaning of a service's answers for one request, and for all that come after it."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

import msgspec

LONGEST_WAIT: Final = 300.0
"""Seconds of a ``Retry-After`` that are heeded."""


class Meaning(Enum):
    """The kinds of answers."""

    DONE = "done"
    NEVER = "never"
    """The same request will not be taken at any time."""
    LATER = "later"
    """This request may be taken at another attempt."""
    AWAY = "away"
    """The service takes nothing now, whatever the request is."""
    LIMITED = "limited"
    """The service takes no more for the moment, as it has taken others."""
    REFUSED = "refused"
    """It takes nothing from this caller."""


class Answer(msgspec.Struct, frozen=True):
    """One answer of a service, or that none came."""

    meaning: Meaning
    words: str
    retry_after: float = 0.0
    """Seconds for which the service asks to be left alone."""


OF_ITSELF: Final = frozenset({408, 409, 425, 500})
"""Errors that may be due to this request: 409 says that another attempt at it is under way."""
OF_ALL: Final = frozenset({502, 503, 504})
TOO_MANY: Final = 429
OF_THE_CALLER: Final = frozenset({401, 403, 407})


def meaning_of(status: int) -> Meaning:
    """Return the meaning of a status. A redirection is none of a request that writes: it would be another one."""
    if 200 <= status < 300:
        return Meaning.DONE
    if status in OF_THE_CALLER:
        return Meaning.REFUSED
    if status == TOO_MANY:
        return Meaning.LIMITED
    if status in OF_ALL:
        return Meaning.AWAY
    return Meaning.LATER if status in OF_ITSELF or status > 504 else Meaning.NEVER


def seconds_of(header: str | None, now: float) -> float:
    """Return the seconds that a ``Retry-After`` has; ``now`` is a time since 1970. 0 for one that cannot be read."""
    if not header:
        return 0.0
    try:
        seconds = (
            float(header) if header.strip().isdecimal() else parsedate_to_datetime(header).timestamp() - now
        )
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, min(seconds, LONGEST_WAIT))
