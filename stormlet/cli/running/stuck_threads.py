"""What keeps the process from ending when a run is over: user code in threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection


def await_threads(tasks: Collection[str], say: Callable[[str], object], *, grace: float = 1.0) -> None:
    """Wait for the threads of these tasks, and say so where it takes long: the process cannot end before they
    do, and user code in them cannot be cancelled (law B9)."""
    _join(tasks, grace)
    stuck = tasks_of_threads(tasks)
    if stuck:
        say(f"waiting for user code in the threads of {', '.join(stuck)} to return; Ctrl-C kills")
        _join(tasks, None)


async def await_default_threads(say: Callable[[str], object], *, grace: float = 1.0) -> None:
    """The same for those of the running loop's default executor."""
    ending = asyncio.ensure_future(asyncio.get_running_loop().shutdown_default_executor())
    done, _ = await asyncio.wait([ending], timeout=grace)
    if not done:
        say("waiting for user code in threads (asyncio.to_thread, run_in_executor) to return; Ctrl-C kills")
        await ending


def tasks_of_threads(tasks: Collection[str]) -> list[str]:
    """Those of these tasks, such as ``split[0]``, that have threads."""
    return sorted({_task_of(each) for each in threading.enumerate()} & set(tasks))


def _task_of(thread: threading.Thread) -> str:
    return thread.name.rpartition("_")[0]


def _join(tasks: Collection[str], seconds: float | None) -> None:
    threads = [each for each in threading.enumerate() if _task_of(each) in tasks]
    deadline = None if seconds is None else time.monotonic() + seconds
    for thread in threads:
        thread.join(None if deadline is None else max(deadline - time.monotonic(), 0))
