"""Outcomes of messages: the failure of an attempt (law L14), the history of attempts, the dead letter (law S6).

Theory of operation
-------------------
An ack needs no record. An attempt that fails gets a :class:`Failure` from the part that ends it: FAILED from the
collector of the bolt, TIMEOUT from the ledger, OVERFLOW from the spout's tracker, TASK_LOST from the task that died,
SHUTDOWN from the run. The failure travels with the settled tree to the spout task, which adds it to the
:class:`History` of the message and asks the replay policy. A message that is given up becomes a :class:`DeadLetter`
with its whole history.

Three facts about the numbers and the lives of these records explain their form:

- *They may be kept for long*, in the history of a message that waits for its replay, or among the last dead letters.
  The traceback of an exception keeps alive every local variable of the frames that it came through. So
  :meth:`without_frames <Failure.without_frames>` replaces the exception by a copy without a traceback, and keeps the
  place of the raise.
- *Very many of them come at once* when a queue is stuck and a hundred thousand trees time out together. Every object
  that stays makes the garbage collector hold the loop for longer. So timeouts with the same holders are one object, and
  so are the histories of messages whose attempts all timed out alike (:attr:`Failure.is_common`).
- *A message may be replayed for ever*, if ``max_attempts`` allows it. So a history keeps the first 10 failures, which
  show how the trouble began, and the last 90, and counts those between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Final, cast

import msgspec

from stormlet.core.shortened import printable, shortened, shown
from stormlet.core.timeline import Timeline
from stormlet.core.tracebacks import Call, raised_in, stack_line, without_traceback
from stormlet.errors import StormletError


class Place(Enum):
    """Place of a tuple at a bolt task."""

    QUEUED = "queued"
    """It is in the inbox: the bolt has not seen it yet."""
    EXECUTING = "executing"
    """User code has been called with it and has not returned."""
    HELD = "held"
    """``execute`` has returned without settling it, as the bolt may settle it later (law B2), or has forgotten to."""
    NOWHERE = "nowhere"
    """It was delivered there, is not settled, and no task has it."""


PHRASES: Final = {
    Place.QUEUED: "is queued at",
    Place.EXECUTING: "is executed by",
    Place.HELD: "is held by",
    Place.NOWHERE: "is no longer at",
}
"""Words for a place, between the value and the task."""


class Outstanding(msgspec.Struct, frozen=True):
    """A tuple that was delivered to a bolt task and is not settled."""

    value: object
    component: str
    """The bolt."""
    task: int
    """The id of the task that has it."""
    name: str
    """Name of this task in messages: ``count[0]``."""
    place: Place
    path: tuple[str, ...]
    """The tasks that it came through; without a recorder, only the one that emitted it."""
    ahead: int | None = None
    """Tuples that the task takes before it; None if it is not queued, or the queue was not looked at."""
    seconds: float | None = None
    """Seconds since its delivery; None without a recorder."""
    stack: tuple[Call, ...] = ()
    """Calls of the user code that has it, or that the task runs meanwhile; outermost first."""
    note: str = ""
    """A further remark."""

    def __str__(self) -> str:
        return (
            f"{shortened(self.value)} {PHRASES[self.place]} {self.name}{self._ahead()}{self._delivered()}"
            f", by way of {' > '.join(self.path)}{self._more()}"
        )

    def _ahead(self) -> str:
        if not self.ahead:
            return ""
        return ", behind another one" if self.ahead == 1 else f", behind {self.ahead:,} others"

    def _delivered(self) -> str:
        return "" if self.seconds is None else f", delivered {spelt(self.seconds)} ago"

    def _more(self) -> str:
        stack = stack_line(self.stack) if self.place is Place.EXECUTING else ""
        more = "; ".join(each for each in (self.note, stack) if each)
        return f": {more}" if more else ""


def spelt(seconds: float) -> str:
    """Return seconds as text, in tenths, below one second in thousandths."""
    return f"{round(seconds, 1 if seconds >= 1 else 3):.12g} s"  # 12 digits, and never 1e+06 s


KEPT_FIRST: Final = 10
"""Failures that a history keeps from its beginning."""
KEPT_LAST: Final = 90
"""Failures that it keeps from its end."""


class FailureKind(Enum):
    """Cause of a tree's failure (law L14)."""

    FAILED = "failed"
    """A bolt failed a tuple of the tree, or raised."""
    TIMEOUT = "timeout"
    """The message timeout passed before the tree was complete."""
    OVERFLOW = "overflow"
    """The acker had no room for another tree, so the emission reached no task (law L13)."""
    TASK_LOST = "task lost"
    """The task that held a tuple of the tree died."""
    SHUTDOWN = "shutdown"
    """The topology stopped before the tree was complete (law C3)."""


# A dataclass, as a msgspec.Struct cannot leave fields out of its comparison and its repr.
@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of one attempt at a message."""

    kind: FailureKind
    component: str | None = None
    """The component that failed the tuple; None where no single one did."""
    task: int | None = None
    """The task id of that component."""
    reason: str = ""
    """The reason that the bolt gave."""
    exception: BaseException | None = None
    """The exception that the bolt raised."""
    permanent: bool = False
    """True if no replay can help: ``Reject``, or ``out.fail(..., permanent=True)``."""
    holders: tuple[str, ...] = ()
    """For a timeout: the components that still held tuples of the tree (law L14)."""
    seconds: float | None = field(default=None, compare=False, repr=False)
    """Duration of the attempt; None if its edges were not recorded."""
    outstanding: tuple[Outstanding, ...] = field(default=(), compare=False, repr=False)
    """For an attempt that timed out or was left over, if its edges were recorded: tuples that were not settled, at
    most 10."""
    timeline: Timeline | None = field(default=None, compare=False, repr=False)
    """Its executions, if its edges were recorded; at most 20, those first that were not acked or took longest."""
    task_index: int | None = field(default=None, compare=False, repr=False)
    """The place of the task among those of its component, from 0; None if it is not known any more."""
    kept_place: Call | None = field(default=None, compare=False, repr=False)
    """The place of the raise, if the exception was parted from its frames."""

    def __post_init__(self) -> None:
        # Checked here, where the bolt fails the tuple: later the error would be raised in the engine, far from its
        # cause.
        if not isinstance(cast("object", self.reason), str):
            raise TypeError(
                f"a failure{self._where()} has reason={shortened(self.reason)}, which is no text; an exception is "
                f"given as exception="
            )
        if self.exception is not None and not isinstance(cast("object", self.exception), BaseException):
            raise TypeError(
                f"a failure{self._where()} has exception={shortened(self.exception)}, which is no exception; give the "
                f"exception itself, or text as the reason"
            )

    @property
    def is_common(self) -> bool:
        """True for a timeout of which nothing more is known: likely to be one object for many attempts."""
        return self.kind is FailureKind.TIMEOUT and self.seconds is None

    @property
    def place(self) -> Call | None:
        """The call in which user code raised the exception; None if there is none."""
        return self.kept_place or (None if self.exception is None else raised_in(self.exception))

    @property
    def has_frames(self) -> bool:
        """True if its exception may have a traceback."""
        return self.exception is not None and self.kept_place is None

    def without_frames(self) -> Failure:
        """Return this failure, fit to be kept for long: with a copy of its exception that has no traceback, as the
        frames of a traceback keep alive every local variable of user code."""
        if self.exception is None or self.kept_place is not None:
            return self
        return replace(self, exception=without_traceback(self.exception), kept_place=self.place)

    def recorded(
        self, seconds: float, outstanding: tuple[Outstanding, ...], timeline: Timeline | None = None
    ) -> Failure:
        """Return this failure with the duration, the outstanding tuples and the executions that a recorder has seen."""
        return replace(self, seconds=seconds, outstanding=outstanding, timeline=timeline)

    def __str__(self) -> str:
        return f"{self.kind.value}{self._where()}{self._why()}"

    def _where(self) -> str:
        if self.component is not None:
            if self.task_index is None:
                return f" in {self.component!r} (task {self.task})"
            return f" in {printable(self.component)}[{self.task_index}]"
        if self.kind is FailureKind.TIMEOUT:
            return (
                f", held by {', '.join(map(repr, self.holders))}"
                if self.holders
                else ", held by no component"
            )
        return ""

    def _why(self) -> str:
        if self.exception is not None:
            return f": {shown(self.exception)}"
        return f": {self.reason}" if self.reason else ""


class History(tuple[Failure, ...]):
    """Failures of a message's attempts, in order; of more than 100 the first 10 and the last 90."""

    left_out: int = 0
    """Failures after the first 10 that are counted, but not kept."""

    def and_also(self, failure: Failure) -> History:
        """Return the history after one more failed attempt."""
        if len(self) < KEPT_FIRST + KEPT_LAST:
            # Sharing pays only where a whole expiry has one history; looking up others would fill the cache.
            is_common = failure.is_common and all(each.is_common for each in self)
            return _all_timed_out(self, failure) if is_common else History((*self, failure))
        # The oldest of the last ones makes room.
        return self._leaving_out((*self[:KEPT_FIRST], *self[KEPT_FIRST + 1 :], failure), self.left_out + 1)

    def without_frames(self) -> History:
        """Return these failures, fit to be kept for long: see :meth:`Failure.without_frames`."""
        if not any(each.has_frames for each in self):
            return self
        return self._leaving_out((each.without_frames() for each in self), self.left_out)

    def numbered(self) -> Sequence[tuple[int, Failure]]:
        """Return the failures that are kept, each with the number of its attempt, from 1."""
        return [
            (place + (self.left_out if place > KEPT_FIRST else 0), failure)
            for place, failure in enumerate(self, start=1)
        ]

    @classmethod
    def _leaving_out(cls, failures: Iterable[Failure], count: int) -> History:
        history = cls(failures)
        history.left_out = count  # set later, as a tuple takes no further argument
        return history


# Cached by what the failures say: ids of objects are no keys here, as they differ between runs with one seed (law L16).
@lru_cache(maxsize=256)
def _all_timed_out(before: History, failure: Failure) -> History:
    """Return the history of messages whose attempts have all timed out alike: one object for all of them."""
    return History((*before, failure))


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that was given up, with all that is known of it (law S6)."""

    component: str
    """The spout that emitted it."""
    value: object
    """The value that it emitted."""
    message_id: object
    attempts: int
    """Attempts that were made, without those that do not count (law S6)."""
    failure: Failure
    """Failure of the last attempt."""
    origin: object = None
    """The source's own remark on the message: ``origin=``."""
    history: tuple[Failure, ...] = ()
    """Failures of all attempts, in order, including those that do not count; of more than 100 the first 10 and the last
    90. Only the last one's exception has its traceback."""
    stream: str = "default"
    """The stream that it was emitted on."""

    def without_frames(self) -> DeadLetter:
        """Return this letter, fit to be kept for long: see :meth:`Failure.without_frames`."""
        history = history_of(self.history).without_frames()
        # The last failure usually is the history's last: one copy serves both.
        failure = (
            history[-1] if history and self.failure is self.history[-1] else self.failure.without_frames()
        )
        return msgspec.structs.replace(self, failure=failure, history=history)


def history_of(failures: tuple[Failure, ...]) -> History:
    """Return these failures as a history; a plain tuple of them is taken as complete."""
    return failures if isinstance(failures, History) else History(failures)


class TupleFailed(StormletError):
    """The awaited tuple tree failed; ``failure`` says why (law L14)."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return str(self.failure)


class TupleTimedOut(TupleFailed):
    """The awaited tuple tree was not complete when its message timeout had passed (law L12)."""
