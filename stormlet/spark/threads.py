"""Threads for calls that block: one for a call, one for a task, and one for Spark's jobs.

The loop's own executor is not used: it would keep its threads until the loop is closed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

R = TypeVar("R")

CANCEL_AGAIN = 0.2
"""Seconds after which jobs are cancelled again: the next one may have started meanwhile."""
CANCEL_TIMES = 50


async def in_thread(call: Callable[[], R], name: str) -> R:
    """Call in a new thread while the loop goes on. Return the result, or raise the exception.

    A call whose wait is cancelled goes on to its end.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[R] = loop.create_future()

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:
            error = raised
        post(loop, resolve, outcome, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await outcome


def run_to_end(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on a loop of its own, and block until its end. In the calling thread a loop may be running, as in
    a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    with ThreadPoolExecutor(1, thread_name_prefix="stormlet spark loop") as executor:
        return executor.submit(copy_context().run, asyncio.run, main).result()


def post(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *arguments: object) -> None:
    """Schedule a callback on the loop's thread from another thread; do nothing if the loop is closed."""
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(callback, *arguments)


def resolve(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    """Set a future's result, or its exception if there is one; leave a future that is done."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class CallThread:
    """One thread for all blocking calls of a task, one after another, so that they can keep state of their thread,
    such as Spark's job tags."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def call(self, function: Callable[[], R]) -> R:
        """Call in the thread. A call whose wait is cancelled goes on to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    async def close(self) -> None:
        """Wait for earlier calls, also those whose wait was cancelled, and end the thread."""
        await self.call(_nothing)
        self.abandon()

    def abandon(self) -> None:
        """End the thread after the call under way, without a wait."""
        self._executor.shutdown(wait=False)


def _nothing() -> None:
    """Return once all earlier calls of the thread have."""


class JobThread:
    """A thread that has Spark do jobs, under a tag of its own, so that they can be cancelled.

    ``target`` must call :meth:`enter` before anything else. ``name`` describes its jobs, and together with ``role``
    the thread.
    """

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
        """Tag and name the jobs of the calling thread."""
        self._context.addJobTag(self._tag)
        self._context.setJobDescription(self._name)

    @property
    def running(self) -> bool:
        """True while the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait for its end, at most ``seconds``."""
        if self._thread is not None:
            self._thread.join(seconds)

    def close(self) -> None:
        """Cancel the jobs and wait for the thread. Blocks, so never call it on the loop's thread."""
        for _ in range(CANCEL_TIMES):
            if not self.running:
                return
            with suppress(Exception):  # the user may have stopped the session
                self._context.cancelJobsWithTag(self._tag)
            self.join(CANCEL_AGAIN)
        logger.warning("%s: Spark does not let go of its jobs; the thread is left behind", self._name)
