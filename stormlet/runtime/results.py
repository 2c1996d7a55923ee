"""What user code returned: that of a function bolt is told apart once per type (law B1), that of methods which emit
by their collector is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from enum import Enum
from typing import Final, cast

from stormlet.core.components import BoltBase, Spout
from stormlet.core.plan import TaskPlan
from stormlet.core.shortened import shortened
from stormlet.errors import MistakenFactory

COMPONENTS = (BoltBase, Spout)

MOST_TYPES: Final = 1000
"""How many types are remembered before they are all forgotten: user code may make one for each value."""


class ResultKind(Enum):
    """What is done with a result that is not None."""

    VALUE = "value"
    """It is one output, lists and tuples too."""
    ITERATOR = "iterator"
    """It is drained: each item is an output."""
    AWAITABLE = "awaitable"
    """It is awaited, and what it gives is the result."""
    ASYNC_ITERATOR = "async iterator"
    """It is drained asynchronously."""
    CLASS = "class"
    """It is one output, unless it is a class of bolts or spouts."""


def kind_of(result: type) -> ResultKind:
    """What kind the instances of this type are."""
    if issubclass(result, type):
        return ResultKind.CLASS
    if issubclass(result, Awaitable):
        return ResultKind.AWAITABLE
    if issubclass(result, AsyncIterator):
        return ResultKind.ASYNC_ITERATOR
    return ResultKind.ITERATOR if issubclass(result, Iterator) else ResultKind.VALUE


class Kinds(dict[type, ResultKind]):
    """The kind of each type that this bolt has returned; raises :class:`~stormlet.errors.MistakenFactory` for bolts and
    spouts."""

    def __init__(self, bolt: str) -> None:
        super().__init__()
        self._bolt = bolt

    def __missing__(self, result: type) -> ResultKind:
        if len(self) >= MOST_TYPES:
            self.clear()
        self.check_class(result)
        kind = self[result] = kind_of(result)
        return kind

    def check_class(self, result: object) -> None:
        """Raises :class:`~stormlet.errors.MistakenFactory` for a class of bolts or spouts."""
        if isinstance(result, type) and issubclass(result, COMPONENTS):
            raise _mistaken_factory(self._bolt, cast("type[object]", result))


def _mistaken_factory(bolt: str, made: type[object]) -> MistakenFactory:
    name = made.__name__
    kind = "spout" if issubclass(made, Spout) else "bolt"
    return MistakenFactory(
        f"bolt {bolt!r} has a parameter and so was called with a value, but it makes a {kind}, {name}: as a factory it "
        f"must take no parameters; bind what it needs by functools.partial({name}, ...)"
    )


def dropped(plan: TaskPlan, method: str, result: object) -> TypeError:
    """The error for what a method has returned that nobody takes."""
    return TypeError(
        f"{method} of {plan.component!r} (task {plan.task}) returned {shortened(result)}, which nothing takes: emit it "
        f"with out.emit(...), and return nothing"
    )
