"""What became of a message: the reasons of a failure (law L14) and the dead letter (law S6)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from stormlet.core.calls import Call, raised_in
from stormlet.core.outstanding import Outstanding
from stormlet.core.shortened import shown


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

    @property
    def place(self) -> Call | None:
        """Where user code raised the exception; None if there is none."""
        return None if self.exception is None else raised_in(self.exception)

    def held_by(self, holders: tuple[str, ...]) -> Failure:
        """This failure with the components that still hold tuples of the tree."""
        return replace(self, holders=holders)

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


@dataclass(frozen=True, slots=True)
class DeadLetter:
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
    """Why each attempt failed, in order; those that do not count are here too."""
    stream: str = "default"
    """The stream that it was emitted on."""
