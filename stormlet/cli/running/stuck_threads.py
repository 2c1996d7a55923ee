"""What keeps the process from ending when a run is over: user code in threads."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager

from stormlet.cli.running.endings import SIGNALS


def await_threads(tasks: Collection[str], say: Callable[[str], object], *, grace: float = 1.0) -> None:
    """Wait for the threads of these tasks, and say so where it takes long: the process cannot end before they
    do, and user code in them cannot be cancelled (law B9). A signal kills meanwhile."""
    _join(tasks, grace)
    stuck = tasks_of_threads(tasks)
    if stuck:
        say(f"waiting for user code in the threads of {', '.join(stuck)} to return; Ctrl-C kills")
        with _deadly_signals():
            _join(tasks, None)


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


@contextmanager
def _deadly_signals() -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
