"""The event loop of a run, and user code that keeps it from its end.

User code may try to end the process, by ``sys.exit()`` or ``KeyboardInterrupt``, or stop the loop: that is a crash of
its component (law C5). User code in threads cannot be cancelled (law B9), and the process cannot end before it returns.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Any, Literal

from stormlet.cli.running.signals import signals_handled_by
from stormlet.errors import InvalidConfiguration, StartFailed, TopologyCrashed
from stormlet.runtime.run.instances import UNMADE

LoopName = Literal["uvloop", "asyncio"]
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loop_factory(name: LoopName | None) -> LoopFactory:
    """The loop asked for; otherwise that of uvloop where it is installed.

    Raises :class:`~stormlet.errors.InvalidConfiguration` if uvloop is asked for and cannot be had.
    """
    if name == "asyncio":
        return asyncio.new_event_loop
    try:
        return _uvloop()
    except InvalidConfiguration:
        if name is None:
            return asyncio.new_event_loop
        raise


def _uvloop() -> LoopFactory:
    try:
        import uvloop
    except ImportError:
        raise InvalidConfiguration(
            "--loop uvloop: uvloop is not installed: pip install 'stormlet[uvloop]', or leave --loop out"
        ) from None
    if not _standard_streams_are_open():
        raise InvalidConfiguration("--loop uvloop: it needs open standard streams; use --loop asyncio")
    return uvloop.new_event_loop


def _standard_streams_are_open() -> bool:
    # uvloop opens files of its own under the numbers of closed ones, and aborts when it closes them.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            return False
    return True


@contextmanager
def event_loop(make: LoopFactory, *, debug: bool) -> Generator[asyncio.AbstractEventLoop]:
    """A new loop, closed in the end as by ``asyncio.run``. A signal kills meanwhile: uvloop cannot be closed after a
    ``KeyboardInterrupt`` in the midst of that."""
    runner = asyncio.Runner(loop_factory=make, debug=debug or None)
    try:
        yield runner.get_loop()
    finally:
        with signals_handled_by(signal.SIG_DFL):
            runner.close()


def run_on(loop: asyncio.AbstractEventLoop, main: asyncio.Task[Any]) -> BaseException | None:
    """Run the loop until ``main`` is done, and return None; or until user code ends the loop, and return the exception
    that it raised, or that the loop raised as it was stopped. Then it can be run on."""
    loop.set_exception_handler(_handle)
    try:
        loop.run_until_complete(main)
    except (SystemExit, KeyboardInterrupt) as error:
        return error
    except RuntimeError as error:
        if main.done():
            raise
        return error
    return None


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), SystemExit | KeyboardInterrupt):  # that was reported already
        loop.default_exception_handler(context)


class LoopStopped(TopologyCrashed):
    """User code called ``stop()`` of the event loop."""

    def __str__(self) -> str:
        return (
            f"topology {self.topology!r} crashed: {self.what} of {self.task} has stopped the event loop, on which "
            f"everything runs; raise an exception to crash, or signal.raise_signal(signal.SIGTERM) to drain"
        )


def crash_of(topology: str, error: BaseException, *, started: bool) -> TopologyCrashed:
    """The crash by code that runs in no task of the topology, such as a task of the user's own."""
    if isinstance(error, RuntimeError):
        return LoopStopped(topology, "the topology", "user code")
    crash = (TopologyCrashed if started else StartFailed)(topology, "the topology", "user code")
    crash.__cause__ = error
    return crash


def start_failure_of(topology: str, error: BaseException) -> StartFailed:
    """The failure of a start that the constructor of a component wanted to end."""
    failure = StartFailed(topology, UNMADE.get(), "the constructor")
    failure.__cause__ = error
    return failure


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
