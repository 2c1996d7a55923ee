"""User code that awaits for ages."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from stormlet import Running, Stream, Tree
from tests.law.puppets import until

AGES = 1000.0
"""Seconds that user code spends in an await."""


NOTE: ContextVar[str] = ContextVar("NOTE", default="")


async def dawdle(value: object) -> None:
    """Return at once, but not for "second"."""
    if value == "second":
        await asyncio.sleep(AGES)


async def begin(
    running: Running, feed: Stream[Any], *values: object, context: str = "plain"
) -> list[Tree[Any]]:
    """Emit some messages at once, and let everything happen that needs less than a second. With a context
    variable set, tuples take another way through the bolts."""
    token = NOTE.set(context) if context != "plain" else None
    trees = [await running.emit(feed, value) for value in values]
    if token is not None:
        NOTE.reset(token)
    await until(1)
    return trees
