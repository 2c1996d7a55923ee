"""Explanation of a tree that is open or has failed: for programs as an object, for people as its text."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import chain, starmap
from typing import Final

import msgspec

from stormlet.core.outcomes import Failure, Outstanding, history_of, spelt
from stormlet.core.shortened import counted, printable, shortened
from stormlet.core.timeline import Timeline
from stormlet.core.tracebacks import Call, stack_line

MOST_LINES: Final = 10
"""Outstanding tuples that a text names."""
FIRST_ATTEMPTS: Final = 3
"""Failed attempts that a text describes from the beginning."""
LAST_ATTEMPTS: Final = 3
"""Failed attempts that it describes from the end."""


class TreeState(Enum):
    """Stage of a message."""

    OPEN = "open"
    """Tuples of it are outstanding, or their acks are under way."""
    WAITING = "waiting for a replay"
    """Its last attempt has failed, and another one will be made (law S6)."""
    BURYING = "being given up"
    """``dead_letters=`` has it and has not returned (law S6)."""
    TELLING = "settled"
    """Its verdict is known, and its spout has not been notified yet (law L17)."""
    ACKED = "acked"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """There is no such tree: it is settled and forgotten, or there never was one."""


class Occupation(msgspec.Struct, frozen=True):
    """Present activity of a task that has outstanding tuples."""

    name: str
    """Name of the task in messages: ``count[0]``."""
    doing: str
    """The activity in words."""
    stack: tuple[Call, ...] = ()
    """Calls of the user code that it runs or waits in, outermost first; empty if there are none."""
    full: str | None = None
    """The task for room in whose queue it waits (law B6)."""

    def __str__(self) -> str:
        stack = f": {stack_line(self.stack)}" if self.stack else ""
        return f"{self.name} {self.doing}{stack}"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Report on one message and its tree; its ``str`` is a text of several lines."""

    state: TreeState
    root: int | None = None
    """The root of its running or last attempt, as in ``Tuple.roots``; None if that is not known."""
    spout: str = ""
    """The spout that emitted it; empty if it is unknown."""
    message_id: object = None
    value: object = None
    """The emitted value; None where the engine knows no more than the message id."""
    attempt: int | None = None
    """The number of the running attempt; None where a ``Spout`` class counts for itself, and when there is none."""
    seconds: float | None = None
    """Seconds since the running attempt began; None if that is not known."""
    exact: bool = False
    """True if :attr:`seconds` is exact; otherwise the attempt may have begun earlier."""
    all_seconds: float | None = None
    """Seconds since its first attempt began, at the least; None if that is not known, or the first one is running."""
    outstanding: tuple[Outstanding, ...] = ()
    """The tuples that have not been settled; those that most likely keep it open come first."""
    occupations: tuple[Occupation, ...] = ()
    """Activities of the tasks that have them queued or held, and of the tasks that those wait for."""
    acks: tuple[str, ...] = ()
    """Tasks with acks or fails for this tree that its acker has not seen yet."""
    failures: tuple[Failure, ...] = ()
    """Failures of earlier attempts, in order; of more than 100 the first 10 and the last 90."""
    replay_in: float | None = None
    """Seconds until the next attempt; 0 if that waits for room."""
    recorded: bool = False
    """True if a recorder has followed its running attempt."""
    timeline: Timeline | None = None
    """Executions of its running attempt; None without a recorder. Those of earlier ones are in their failures."""
    note: str = ""
    """A further remark."""

    def __str__(self) -> str:
        return "\n  ".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self._name()} {self._status()}"
        yield from self._tuples()
        yield from map(str, self.occupations)
        if self.acks:
            yield f"acks or fails of it are on their way from {', '.join(self.acks)}"
        yield from self._attempts()
        if self.note:
            yield self.note

    def _name(self) -> str:
        if not self.spout:
            return f"tree {self.root}"
        id = "" if self.message_id is None else f" {shortened(self.message_id)}"
        value = "" if self.value is None else f", {shortened(self.value)},"
        return f"message{id} of {self.spout!r}{value}"

    def _status(self) -> str:
        match self.state:
            case TreeState.OPEN:
                attempt = f", attempt {self.attempt}" if self.failures and self.attempt else ""
                if self.all_seconds is None:
                    return f"is open{self._age()} (root {self.root}{attempt})"
                return (
                    f"is open for at least {spelt(self.all_seconds)} (root {self.root}{attempt}{self._age()})"
                )
            case TreeState.WAITING:
                when = f"in {spelt(self.replay_in)}" if self.replay_in else "now: it waits for room"
                return f"waits for its replay {when}"
            case TreeState.BURYING:
                return "was given up, and dead_letters= has not returned"
            case TreeState.TELLING:
                return "has its outcome, and its spout is about to be notified"
            case TreeState.UNKNOWN:
                return "is not open: it was acked or failed, which nobody remembers, or there never was one"
            case _:
                return f"was {self.state.value}" if self.state is TreeState.ACKED else "failed"

    def _age(self) -> str:
        if self.seconds is None:
            return ""
        return f" for {'' if self.exact else 'at least '}{spelt(self.seconds)}"

    def _tuples(self) -> Iterator[str]:
        for each in self.outstanding[:MOST_LINES]:
            yield str(each)
        more = len(self.outstanding) - MOST_LINES
        if more > 0:
            yield f"and {counted(more, 'more tuple')}"

    def _attempts(self) -> Iterator[str]:
        numbered = history_of(self.failures).numbered()
        more = len(numbered) - FIRST_ATTEMPTS - LAST_ATTEMPTS
        if more <= 1:  # whose line would be no shorter than that of the attempt itself
            yield from chain.from_iterable(starmap(_attempt, numbered))
            return
        first, last = numbered[:FIRST_ATTEMPTS], numbered[-LAST_ATTEMPTS:]
        yield from chain.from_iterable(starmap(_attempt, first))
        yield f"{last[0][0] - first[-1][0] - 1:,} more attempts failed"
        yield from chain.from_iterable(starmap(_attempt, last))


def _attempt(number: int, failure: Failure) -> Iterator[str]:
    yield f"attempt {number:,} failed{after(failure)}: {printable(str(failure))}{raised_at(failure)}"
    yield from (f"  {each}" for each in failure.outstanding)


def after(failure: Failure) -> str:
    """Return the duration of the attempt in words; empty where no recorder has followed it."""
    return "" if failure.seconds is None else f" after {spelt(failure.seconds)}"


def raised_at(failure: Failure) -> str:
    """Return the place where user code raised, in words; empty if it did not."""
    place = failure.place
    return "" if place is None else f", raised in {place}"
