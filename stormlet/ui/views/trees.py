"""Messages that are pending: their trees, explained, with their attempts as the rows of a timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from stormlet.core.outcomes import Failure, Outstanding, Place, history_of
from stormlet.core.shortened import cut, printable, shortened
from stormlet.core.timeline import Execution, Timeline
from stormlet.core.tracebacks import stack_line
from stormlet.errors import NotTracked
from stormlet.report.explanation import Explanation
from stormlet.ui.watched import Watched

MOST: Final = 25
"""Trees that are shown."""
MOST_ATTEMPTS: Final = 20
"""Failed attempts of one message that are shown: the last ones."""
MOST_TUPLES: Final = 20
"""Tuples of one attempt that wait and are shown."""
MOST_EXECUTIONS: Final = 100
"""Executions of one attempt that are shown."""
STATES: Final = {Place.EXECUTING: "running", Place.NOWHERE: "no longer there"}
"""Words for a place that are others than its own."""
WAITING: Final = (Place.QUEUED, Place.NOWHERE)
"""The places of tuples that no execution tells of."""


class Hidden:
    """Stands for a value that is not shown."""

    def __repr__(self) -> str:
        return "a tuple"


HIDDEN: Final = Hidden()


class Span(msgspec.Struct, frozen=True):
    """An execution, or a tuple that waits for one. Times are seconds since the first attempt that is shown began."""

    task: str
    delivered: float
    began: float | None
    """None if user code was not called with it yet, or nobody knows when."""
    ended: float | None
    """None if the call has not returned."""
    state: str
    """``acked``, ``failed``, ``running``, ``held``, ``queued``, ``no longer there``."""
    more: str = ""
    """Of a tuple that is not settled, the way that it came, its value and what its task does, as far as that is known
    without its execution."""


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at a message."""

    number: int
    began: float | None
    """Seconds since the first attempt that is shown began; None if nobody knows."""
    seconds: float | None
    """Its duration; None if edges were not recorded."""
    failure: str
    """Empty for the one that is running."""
    spans: tuple[Span, ...] = ()
    """In the order in which the tuples were delivered."""
    left_out: int = 0
    """Executions that are not shown."""


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
    return Tree(
        str(explanation.root or ""),
        explanation.spout,
        "" if explanation.message_id is None else shortened(explanation.message_id),
        explanation.state.value,
        explanation.all_seconds or explanation.seconds,
        explanation.recorded,
        tuple(_attempts(explanation)),
        str(explanation),
    )


def _attempts(explanation: Explanation) -> Iterator[Attempt]:
    failed = history_of(explanation.failures).numbered()[-MOST_ATTEMPTS:]
    clock = Clock([*(each.timeline for _, each in failed), explanation.timeline])
    for number, each in failed:
        yield _attempt(clock, number, each.seconds, each.outstanding, each.timeline, _words(each))
    number = explanation.attempt or (failed[-1][0] + 1 if failed else 1)
    yield _attempt(clock, number, explanation.seconds, explanation.outstanding, explanation.timeline)


class Clock:
    """Counts from the first attempt that is shown; an attempt without a timeline follows the one before at once."""

    def __init__(self, timelines: Sequence[Timeline | None]) -> None:
        self._zero = next((each.began for each in timelines if each is not None), 0.0)
        self._last = 0.0

    def since(self, time: float) -> float:
        """Return a time by the run's clock as seconds since zero."""
        return round(time - self._zero, 6)

    def begin(self, timeline: Timeline | None, seconds: float | None) -> float:
        """Return the begin of the next attempt."""
        began = self._last if timeline is None else self.since(timeline.began)
        self._last = began + (seconds or 0.0)
        return began


def _attempt(
    clock: Clock,
    number: int,
    seconds: float | None,
    outstanding: Sequence[Outstanding],
    timeline: Timeline | None,
    failure: str = "",
) -> Attempt:
    began = clock.begin(timeline, seconds)
    if seconds is None:
        return Attempt(number, None, None, failure)
    # What is executed or held stands in the timeline, if there is one.
    waiting = [each for each in outstanding if timeline is None or each.place in WAITING][:MOST_TUPLES]
    spans = [_waiting(began + seconds, each) for each in waiting]
    if timeline is not None:
        timeline = timeline.shortened(MOST_EXECUTIONS)
        spans += [_executed(clock, each) for each in timeline.executions]
    spans.sort(key=lambda each: each.delivered)
    return Attempt(
        number, began, seconds, failure, tuple(spans), 0 if timeline is None else timeline.left_out
    )


def _executed(clock: Clock, each: Execution) -> Span:
    began = clock.since(each.began)
    ended = None if each.ended is None else clock.since(each.ended)
    return Span(each.name, round(began - each.waited, 6), began, ended, each.ending.value)


def _waiting(now: float, each: Outstanding) -> Span:
    way = f"by way of {' > '.join(each.path)}" if each.path else ""
    value = "" if each.value is HIDDEN else shortened(each.value)
    more = "; ".join(filter(None, (way, value, each.note, stack_line(each.stack))))
    state = STATES.get(each.place, each.place.value)
    return Span(each.name, round(now - (each.seconds or 0.0), 6), None, None, state, more)


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
