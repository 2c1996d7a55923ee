"""What became of a message: the reasons of a failure (law L14) and the dead letter (law S6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Final, cast

import msgspec

from stormlet.core.calls import Call, raised_in
from stormlet.core.frameless import frameless
from stormlet.core.outstanding import Outstanding
from stormlet.core.shortened import shortened, shown

KEPT_FIRST: Final = 10
KEPT_LAST: Final = 90


class FailureKind(Enum):
    """Why a tuple tree failed (law L14)."""

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


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one attempt at a message failed."""

    kind: FailureKind
    component: str | None = None
    """The component that failed the tuple; None where no single one did."""
    task: int | None = None
    """The task id of that component."""
    reason: str = ""
    """What the bolt said when it failed the tuple."""
    exception: BaseException | None = None
    """The exception that the bolt raised."""
    permanent: bool = False
    """True if no replay can help: ``Reject``, or ``out.fail(..., permanent=True)``."""
    holders: tuple[str, ...] = ()
    """For a timeout: the components that still held tuples of the tree (law L14)."""
    seconds: float | None = field(default=None, compare=False, repr=False)
    """How long the attempt took; None if its edges were not recorded."""
    outstanding: tuple[Outstanding, ...] = field(default=(), compare=False, repr=False)
    """For an attempt that timed out or was left over, if its edges were recorded: tuples that were not settled, at
    most 10."""
    kept_place: Call | None = field(default=None, compare=False, repr=False)
    """Where the exception was raised, if it was parted from its frames."""

    def __post_init__(self) -> None:
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
        """Whether it is likely to be one object for many attempts: those that have timed out, and of which nothing more
        is known."""
        return self.kind is FailureKind.TIMEOUT and self.seconds is None

    @property
    def place(self) -> Call | None:
        """Where user code raised the exception; None if there is none."""
        return self.kept_place or (None if self.exception is None else raised_in(self.exception))

    @property
    def has_frames(self) -> bool:
        """Whether its exception may have a traceback."""
        return self.exception is not None and self.kept_place is None

    def without_frames(self) -> Failure:
        """This failure, to be kept for long: with a twin of its exception that has no traceback, as the frames of one
        keep alive every local variable of user code."""
        if self.exception is None or self.kept_place is not None:
            return self
        return replace(self, exception=frameless(self.exception), kept_place=self.place)

    def recorded(self, seconds: float, outstanding: tuple[Outstanding, ...]) -> Failure:
        """This failure with what a recorder knows of the attempt."""
        return replace(self, seconds=seconds, outstanding=outstanding)

    def __str__(self) -> str:
        return f"{self.kind.value}{self._where()}{self._why()}"

    def _where(self) -> str:
        if self.component is not None:
            return f" in {self.component!r} (task {self.task})"
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
    """Why each attempt failed, in order; of more than 100 the first 10 and the last 90, as a message may be replayed
    for ever."""

    left_out: int = 0
    """How many there were after the first 10 of which nothing is kept."""

    def and_also(self, failure: Failure) -> History:
        """One more attempt has failed."""
        if len(self) < KEPT_FIRST + KEPT_LAST:
            is_common = failure.is_common and all(each.is_common for each in self)
            return _all_timed_out(self, failure) if is_common else History((*self, failure))
        return self._leaving_out((*self[:KEPT_FIRST], *self[KEPT_FIRST + 1 :], failure), self.left_out + 1)

    def without_frames(self) -> History:
        """These failures, to be kept for long: see :meth:`Failure.without_frames`."""
        if not any(each.has_frames for each in self):
            return self
        return self._leaving_out((each.without_frames() for each in self), self.left_out)

    def numbered(self) -> Sequence[tuple[int, Failure]]:
        """Each with the number of its attempt, from 1."""
        return [
            (place + (self.left_out if place > KEPT_FIRST else 0), failure)
            for place, failure in enumerate(self, start=1)
        ]

    @classmethod
    def _leaving_out(cls, failures: Iterable[Failure], count: int) -> History:
        history = cls(failures)
        history.left_out = count
        return history


@lru_cache(maxsize=256)
def _all_timed_out(before: History, failure: Failure) -> History:
    """The history of messages whose attempts have all timed out in the same way: one object for all of them, as the
    garbage collector looks into each of many."""
    return History((*before, failure))


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that was given up, with all that is known of it (law S6)."""

    component: str
    """The spout that emitted it."""
    value: object
    """The value that it emitted."""
    message_id: object
    attempts: int
    """How many attempts were made; attempts that do not count (law S6) are left out."""
    failure: Failure
    """Why the last attempt failed."""
    origin: object = None
    """What the source said of the message itself."""
    history: tuple[Failure, ...] = ()
    """Why each attempt failed, in order; those that do not count are here too. Of more than 100 these are the first 10
    and the last 90. Only the last one's exception has its traceback."""
    stream: str = "default"
    """The stream that it was emitted on."""

    def without_frames(self) -> DeadLetter:
        """This letter, to be kept for long: see :meth:`Failure.without_frames`."""
        history = history_of(self.history).without_frames()
        failure = (
            history[-1] if history and self.failure is self.history[-1] else self.failure.without_frames()
        )
        return msgspec.structs.replace(self, failure=failure, history=history)


def history_of(failures: tuple[Failure, ...]) -> History:
    """These failures, of which none was left out unless they know of it."""
    return failures if isinstance(failures, History) else History(failures)
