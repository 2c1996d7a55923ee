"""Messages that are pending: their trees, explained, with their attempts as the rows of a timeline."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from stormlet.core.outcomes import Failure, Outstanding, history_of
from stormlet.core.shortened import cut, printable, shortened
from stormlet.core.tracebacks import stack_line
from stormlet.errors import NotTracked
from stormlet.report.explanation import Explanation
from stormlet.ui.watched import Watched

MOST: Final = 25
"""Trees that are shown."""
MOST_TUPLES: Final = 20
"""Tuples of one tree that are shown."""


class Hidden:
    """Stands for a value that is not shown."""

    def __repr__(self) -> str:
        return "a tuple"


HIDDEN: Final = Hidden()


class Span(msgspec.Struct, frozen=True):
    """A tuple that is not settled."""

    task: str
    place: str
    seconds: float | None
    """Since its delivery; None if edges are not recorded."""
    path: str
    doing: str
    value: str


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at a message."""

    number: int
    seconds: float | None
    """Its duration; None if edges were not recorded."""
    failure: str
    """Empty for the one that is running."""
    spans: tuple[Span, ...] = ()


class Tree(msgspec.Struct, frozen=True):
    """One message."""

    root: str
    """As text: JSON's numbers are too short for it in a browser."""
    spout: str
    message_id: str
    state: str
    seconds: float | None
    recorded: bool
    attempts: tuple[Attempt, ...]
    text: str
    """The explanation in words."""


class Trees(msgspec.Struct, frozen=True):
    """The messages that are open for longest."""

    trees: tuple[Tree, ...] = ()
    note: str = ""


def trees_of(watched: Watched, *, values: bool) -> Trees:
    """Return the messages that are open for longest; their values only if ``values``."""
    try:
        found = watched.running.explain_oldest(MOST)
    except NotTracked:
        return Trees(note="this topology has no ackers, so nothing is tracked")
    return Trees(tuple(_tree(each, values=values) for each in found))


def _tree(explanation: Explanation, *, values: bool) -> Tree:
    if not values:
        explanation = without_values(explanation)
    failed = [
        Attempt(number, each.seconds, _words(each), _spans(each.outstanding))
        for number, each in history_of(explanation.failures).numbered()
    ]
    number = explanation.attempt or len(failed) + 1
    running = Attempt(number, explanation.seconds, "", _spans(explanation.outstanding))
    return Tree(
        str(explanation.root or ""),
        explanation.spout,
        "" if explanation.message_id is None else shortened(explanation.message_id),
        explanation.state.value,
        explanation.all_seconds or explanation.seconds,
        explanation.recorded,
        (*failed[-MOST_TUPLES:], running),
        str(explanation),
    )


def without_values(explanation: Explanation) -> Explanation:
    """Return it without anything that a spout or a bolt has emitted."""
    return replace(
        explanation,
        value=None,
        outstanding=tuple(replace(each, value=HIDDEN) for each in explanation.outstanding),
        failures=tuple(
            each.recorded(
                each.seconds,
                tuple(replace(one, value=HIDDEN) for one in each.outstanding),
                each.timeline,
            )
            if each.seconds is not None
            else each
            for each in explanation.failures
        ),
    )


def _words(failure: Failure) -> str:
    return printable(cut(str(failure), 500))


def _spans(outstanding: tuple[Outstanding, ...]) -> tuple[Span, ...]:
    return tuple(
        Span(
            each.name,
            each.place.value,
            each.seconds,
            " > ".join(each.path),
            "; ".join(filter(None, (each.note, stack_line(each.stack)))),
            "" if each.value is HIDDEN else shortened(each.value),
        )
        for each in outstanding[:MOST_TUPLES]
    )
