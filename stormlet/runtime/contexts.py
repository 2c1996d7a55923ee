"""Awaiting user code in context variables of its own, without a task of its own (law B10)."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from contextvars import Context
from functools import partial
from types import coroutine
from typing import Any, TypeVar, cast

R = TypeVar("R")


@coroutine
def within(context: Context, awaitable: Awaitable[R]) -> Generator[Any, Any, R]:
    """Await ``awaitable`` so that each of its steps runs in ``context``."""
    steps = awaitable.__await__()
    advance = partial(next, steps)
    while True:
        try:
            step = context.run(advance)
        except StopIteration as end:
            return cast("R", end.value)
        try:
            yield step
        except BaseException as error:
            advance = partial(_throw, steps, error)
        else:
            advance = partial(next, steps)


def _throw(steps: Generator[Any, Any, Any], error: BaseException) -> object:
    return steps.throw(error)
