"""A seam for tools that look on while a topology runs, such as a test kit; it costs nothing where nobody
does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Protocol

import msgspec

from stormlet.core.trees import OpenTree
from stormlet.model.plan import TaskPlan
from stormlet.report.explanation import Explanation
from stormlet.report.failures import RepeatedFailure
from stormlet.report.health import Health
from stormlet.runtime.context import MessageObserver
from stormlet.runtime.tasks import Tasks


class ObservedRun(msgspec.Struct, frozen=True):
    """A run, as its observer gets it."""

    name: str
    """The name of the topology."""
    tasks: Tasks
    record_edges: Callable[[float], None]
    """Has this share of the trees recorded, without executions unless those are recorded anyway: a tool that looks on
    leaves the ways of bolts as they are."""
    explain_oldest: Callable[[], Sequence[Explanation]]
    """Explains the trees that time out first."""
    health: Callable[[], Health]


class Observer(MessageObserver, Protocol):
    """Looks on at one run."""

    def built(self, run: ObservedRun) -> None:
        """The tasks of the run are wired and none has started: outlets may still be wrapped."""
        ...

    def unanswered(self, task: TaskPlan, failure: RepeatedFailure) -> None:
        """User code has raised where no tuple answers for it: in a method that gets none, or after its input was
        settled."""
        ...

    def ended(self, *, drained: bool) -> None:
        """Every task has ended; ``drained`` if the sources were ended first and the rest was done, or given up
        at the deadline (law C3)."""
        ...


class Observers:
    """Several that look on at the messages of one run."""

    def __init__(self, *observers: MessageObserver) -> None:
        self._observers = observers

    @staticmethod
    def of(*observers: MessageObserver | None) -> MessageObserver | None:
        """All those that there are; None if there is none."""
        # One that is alone is called directly: both are asked for every message.
        there = [each for each in observers if each is not None]
        return Observers(*there) if len(there) > 1 else next(iter(there), None)

    def tracked(self, task: TaskPlan, tree: OpenTree, value: object) -> None:
        for each in self._observers:
            each.tracked(task, tree, value)

    def settled(self, task: TaskPlan, tree: OpenTree) -> None:
        for each in self._observers:
            each.settled(task, tree)


# A context variable, so that a test observes what it runs by any way, and nothing of what runs beside it.
OBSERVE: ContextVar[Callable[[], Observer] | None] = ContextVar("stormlet.observe", default=None)
"""Makes the observer of each run that begins in this context."""
