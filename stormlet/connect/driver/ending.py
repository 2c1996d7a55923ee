"""The end of tasks that run a client's code, which may lose a cancellation.

A cancellation comes once, and whoever swallows it goes on: ``asyncio.wait_for`` does before Python 3.12, when it comes
at the moment of the result. redis-py and nats-py wait by it for most of what they do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

AGAIN: Final = 1.0
"""Seconds after which a task is cancelled once more: longer than an orderly end takes, which that would cut short."""


async def end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended, and retrieve what they raise: asyncio would log it, with what a client has
    put in it. Whoever is cancelled meanwhile learns that after it."""
    cancelled: asyncio.CancelledError | None = None
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        try:
            await asyncio.wait(running, timeout=AGAIN)
        except asyncio.CancelledError as error:
            cancelled = error
    await asyncio.gather(*tasks, return_exceptions=True)
    if cancelled is not None:
        raise cancelled
