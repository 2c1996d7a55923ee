"""Why a tree is still open, or what went wrong with it: for programs as an object, for people as its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from stormlet.core.calls import Call, stack_line
from stormlet.core.outcomes import Failure
from stormlet.core.outstanding import Outstanding, spelt
from stormlet.core.shortened import shortened

MOST_LINES: Final = 10
"""How many outstanding tuples a text names."""


class TreeState(Enum):
    """How far a message has come."""

    OPEN = "open"
    """Tuples of it are outstanding, or their acks are under way."""
    WAITING = "waiting for a replay"
    """Its last attempt has failed, and another one will be made (law S6)."""
    BURYING = "being given up"
    """``dead_letters=`` has it and has not returned (law S6)."""
    TELLING = "settled"
    """Its verdict is known, and its spout has not been told yet (law L17)."""
    ACKED = "acked"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """There is no such tree: it is settled and forgotten, or there never was one."""


@dataclass(frozen=True, slots=True)
class Occupation:
    """What a task that has outstanding tuples does instead."""

    name: str
    """The task, as messages call it: ``count[0]``."""
    doing: str
    """What it does, in words."""
    stack: tuple[Call, ...] = ()
    """Where its user code waits, outermost call first; empty if it is in none."""
    full: str | None = None
    """The task for room in whose queue it waits (law B6)."""

    def __str__(self) -> str:
        stack = f": {stack_line(self.stack)}" if self.stack else ""
        return f"{self.name} {self.doing}{stack}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is known of one message and its tree; its ``str`` is a text of several lines."""

    state: TreeState
    root: int | None = None
    """The root of its running or last attempt, as in ``Tuple.roots``; None if that is not known."""
    spout: str = ""
    """The spout that emitted it; empty if it is unknown."""
    message_id: object = None
    value: object = None
    """What the spout emitted; None where the engine knows no more than the message id."""
    attempt: int | None = None
    """The number of the running attempt; None where a ``Spout`` class counts for itself, and when there is none."""
    seconds: float | None = None
    """How long ago the running attempt began; None if that is not known."""
    exact: bool = False
    """Whether it began then, and not earlier."""
    outstanding: tuple[Outstanding, ...] = ()
    """The tuples that have not been settled; those of whoever has had his longest come first, where that is known."""
    occupations: tuple[Occupation, ...] = ()
    """What the tasks do that have them queued or held, and the tasks that those wait for."""
    acks: tuple[str, ...] = ()
    """Tasks that have acks or fails for this tree which its acker has not seen yet."""
    failures: tuple[Failure, ...] = ()
    """Why earlier attempts failed, in order."""
    replay_in: float | None = None
    """Seconds until the next attempt; 0 if that waits for room."""
    recorded: bool = False
    """Whether a recorder has followed its running attempt."""
    note: str = ""
    """What else is to be said."""

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
                return f"is open{self._age()} (root {self.root}{attempt})"
            case TreeState.WAITING:
                when = f"in {spelt(self.replay_in)}" if self.replay_in else "now: it waits for room"
                return f"waits for its replay {when}"
            case TreeState.BURYING:
                return "was given up, and dead_letters= has not returned"
            case TreeState.TELLING:
                return "has its outcome, and its spout is about to be told"
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
            yield f"and {more:,} more tuples"

    def _attempts(self) -> Iterator[str]:
        for number, failure in enumerate(self.failures, start=1):
            yield f"attempt {number} failed{after(failure)}: {failure}{raised_at(failure)}"
            yield from (f"  {each}" for each in failure.outstanding)


def after(failure: Failure) -> str:
    """How long the attempt took, where a recorder knows."""
    return "" if failure.seconds is None else f" after {spelt(failure.seconds)}"


def raised_at(failure: Failure) -> str:
    """Where user code raised."""
    place = failure.place
    return "" if place is None else f", raised in {place}"
