"""User code that tries to end the process, with ``sys.exit()`` or ``KeyboardInterrupt``, or stops the loop: a crash
of its component (law C5), which leaves nothing undone in silence."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, TypeVar

from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.runtime.run.assembly import UNMADE

R = TypeVar("R")


class Escapable(Protocol):
    """Is told of it."""

    def escaped(self, error: BaseException) -> None:
        """User code raised this, or stopped the loop, which raised this then; it will be run on."""
        ...


def run_to_the_end(loop: asyncio.AbstractEventLoop, main: asyncio.Task[R], session: Escapable) -> R:
    """Run the loop until ``main`` is done, however often it is ended."""
    loop.set_exception_handler(_handle)
    while True:
        try:
            return loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            session.escaped(error)
        except RuntimeError as error:
            if main.done():
                raise
            session.escaped(error)


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), SystemExit | KeyboardInterrupt):  # that is told already
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
