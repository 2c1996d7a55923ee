"""Calls that block, in a thread that lives no longer than they do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

R = TypeVar("R")


async def beside(call: Callable[[], R], name: str) -> R:
    """Call in a thread of its own, while the loop goes on; gives its result, or raises its exception.

    The loop's own executor would keep its threads until the loop is closed. A call whose wait is cancelled goes
    on to its end.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[R] = loop.create_future()

    def tell(result: R | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(cast("R", result))
        else:
            outcome.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await outcome
