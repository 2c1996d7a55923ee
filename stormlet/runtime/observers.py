"""A seam for tools that look on while a topology runs, such as a test kit; it costs nothing where nobody
does."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

from stormlet.core.health import Health
from stormlet.runtime.assembly import Tasks
from stormlet.runtime.messages import MessageObserver


class Observed(Protocol):
    """A run, as its observer sees it."""

    def health(self) -> Health:
        """How it is now."""
        ...


class Observer(MessageObserver, Protocol):
    """Looks on at one run."""

    def built(self, name: str, run: Observed, tasks: Tasks) -> None:
        """The tasks of the topology of this name are wired and none has started: outlets may still be
        wrapped."""
        ...

    def ended(self, *, drained: bool) -> None:
        """Every task has ended; ``drained`` if the sources were ended first and the rest was done, or given up
        at the deadline (law C3)."""
        ...


OBSERVE: ContextVar[Callable[[], Observer] | None] = ContextVar("stormlet.observe", default=None)
"""Makes the observer of each run that begins in this context."""
