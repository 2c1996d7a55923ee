"""The event loop that workloads run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias, TypeVar

T = TypeVar("T")

LoopName: TypeAlias = Literal["asyncio", "uvloop"]

LOOP: ContextVar[LoopName] = ContextVar("LOOP", default="asyncio")
"""Which one :func:`run` makes."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run this coroutine on a new loop of the kind that was asked for."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(main)


def _factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if LOOP.get() == "asyncio":
        return asyncio.new_event_loop
    import uvloop

    return uvloop.new_event_loop
