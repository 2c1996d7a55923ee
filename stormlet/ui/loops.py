"""The event loop of a topology, which need not be that of the page: a host may run its server in another thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from stormlet.ui.answers import Unavailable

T = TypeVar("T")

PATIENCE: Final = 5.0
"""Seconds in which another event loop must have done what it is asked for."""


async def on_loop(
    loop: asyncio.AbstractEventLoop, topology: str, work: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Do this on the event loop of a topology; raise :class:`~stormlet.ui.answers.Unavailable` if that is another one
    that is closed, or held up."""
    if loop is asyncio.get_running_loop():
        return await work()
    if loop.is_closed():
        raise Unavailable(f"topology {topology!r} is over, and its event loop is closed")

    is_late = False

    async def done_in_time() -> T:
        if is_late:  # nobody waits any more, and the answer was that it is not done
            raise asyncio.CancelledError
        return await work()

    asked = asyncio.run_coroutine_threadsafe(done_in_time(), loop)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(asked), PATIENCE)
    except TimeoutError:
        is_late = True
        raise Unavailable(
            f"the event loop of topology {topology!r} has not answered for {PATIENCE:g} s"
        ) from None
