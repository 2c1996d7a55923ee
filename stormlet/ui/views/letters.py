"""Messages that were given up, with the cause."""

from __future__ import annotations

from typing import Final

import msgspec

from stormlet.core.outcomes import DeadLetter
from stormlet.core.shortened import cut, printable, shortened
from stormlet.core.tracebacks import raised_in
from stormlet.ui.watched import Watched

MOST: Final = 100
"""Letters that are shown, of those that are kept."""


class Letter(msgspec.Struct, frozen=True):
    """One message."""

    number: int
    """Counted from the first dead letter of the run."""
    component: str
    stream: str
    message_id: str
    attempts: int
    cause: str
    place: str
    """File and line that raised; empty if nothing was raised."""
    history: tuple[str, ...]
    value: str | None
    """None where values are not shown."""
    again: str
    """The fate of its replay; empty if there was none."""


class Letters(msgspec.Struct, frozen=True):
    """The last messages that were given up."""

    total: int
    letters: tuple[Letter, ...]
    """The last one first."""


def letters_of(watched: Watched, *, values: bool) -> Letters:
    """Return the last dead letters; their values only if ``values``."""
    kept = watched.numbered_letters()
    shown = [_letter(watched, number, each, values=values) for number, each in reversed(kept[-MOST:])]
    return Letters(watched.running.statistics().dead_letters, tuple(shown))


def _letter(watched: Watched, number: int, letter: DeadLetter, *, values: bool) -> Letter:
    failure = letter.failure
    place = failure.place or (None if failure.exception is None else raised_in(failure.exception))
    return Letter(
        number,
        letter.component,
        letter.stream,
        shortened(letter.message_id),
        letter.attempts,
        printable(cut(str(failure), 500)),
        "" if place is None else str(place),
        tuple(printable(cut(str(each), 300)) for each in letter.history[-20:]),
        shortened(letter.value) if values else None,
        watched.again.get(number, ""),
    )
