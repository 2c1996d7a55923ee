"""Tells a cancellation of the engine from one that user code let out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from stormlet.errors import StrayCancellation


def check_stray(error: asyncio.CancelledError) -> None:
    """Raise :class:`~stormlet.errors.StrayCancellation` if nobody has cancelled the running task: the error
    came out of something that user code awaited, and is an exception of that code like any other."""
    if is_stray():
        raise stray(error)


def stray(error: asyncio.CancelledError) -> StrayCancellation:
    """The exception that a stray cancellation counts as."""
    counted = StrayCancellation("user code awaited something that was cancelled")
    counted.__cause__ = error
    return counted


def as_exception(error: Exception | asyncio.CancelledError) -> Exception:
    """What user code has raised where nothing was awaited: a cancellation is a stray one there."""
    return error if isinstance(error, Exception) else stray(error)


def is_stray() -> bool:
    """Whether nobody has cancelled the running task."""
    task = asyncio.current_task()
    return task is None or task.cancelling() == 0


async def all_ended(running: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for the end of every task, whoever cancels the one that waits: the end of a run must not be cut short."""
    while left := [each for each in running if not each.done()]:
        with suppress(asyncio.CancelledError):
            await asyncio.wait(left)
