"""Tells a cancellation of the engine from one that user code let out."""

from __future__ import annotations

import asyncio

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


def is_stray() -> bool:
    """Whether nobody has cancelled the running task."""
    task = asyncio.current_task()
    return task is None or task.cancelling() == 0
