"""What a function bolt returned, told apart once per type (law B1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator
from enum import Enum
from typing import Final

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


def kind_of(result: type) -> ResultKind:
    """What kind the instances of this type are."""
    if issubclass(result, Awaitable):
        return ResultKind.AWAITABLE
    if issubclass(result, AsyncIterator):
        return ResultKind.ASYNC_ITERATOR
    return ResultKind.ITERATOR if issubclass(result, Iterator) else ResultKind.VALUE


class Kinds(dict[type, ResultKind]):
    """The kind of each type that was seen."""

    def __missing__(self, result: type) -> ResultKind:
        if len(self) >= MOST_TYPES:
            self.clear()
        kind = self[result] = kind_of(result)
        return kind
