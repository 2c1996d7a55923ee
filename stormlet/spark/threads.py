"""Calls that block, in a thread that lives no longer than they do."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar, cast
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark import SparkContext


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


logger = logging.getLogger(__name__)

CANCEL_AGAIN = 0.2
"""Seconds after which a job is cancelled again: the next one may have started meanwhile."""
CANCEL_TIMES = 50


class JobThread:
    """Runs ``target`` in a thread; it must call :meth:`enter` before anything else. ``name`` describes its jobs,
    and together with ``role`` the thread."""

    def __init__(self, context: SparkContext, name: str, role: str, target: Callable[[], None]) -> None:
        self._context = context
        self._name = name
        self._role = role
        self._target = target
        self._tag = f"stormlet-{uuid4()}"
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        from pyspark import InheritableThread

        # It inherits what the caller has set for jobs: the scheduler's pool, the job group.
        self._thread = InheritableThread(target=self._target, name=f"{self._name} {self._role}", daemon=True)
        self._thread.start()

    def enter(self) -> None:
        """Tag and name the jobs of the thread, in which it is called."""
        self._context.addJobTag(self._tag)
        self._context.setJobDescription(self._name)

    @property
    def running(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None and self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait so long for its end."""
        if self._thread is not None:
            self._thread.join(seconds)

    def close(self) -> None:
        """Cancel the jobs and wait for the thread; to be called from another thread than the loop's."""
        for _ in range(CANCEL_TIMES):
            if not self.running:
                return
            with suppress(Exception):  # the user may have stopped the session
                self._context.cancelJobsWithTag(self._tag)
            self.join(CANCEL_AGAIN)
        logger.warning("%s: Spark does not let go of its jobs; the thread is left behind", self._name)
