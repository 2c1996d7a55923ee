"""User code that tries to end the process, with ``sys.exit()`` or ``KeyboardInterrupt``: a crash of its component
(law C5), which leaves nothing undone in silence."""

from __future__ import annotations

import asyncio
from traceback import walk_tb
from typing import Any, Protocol, TypeVar

from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.runtime.task import Task

R = TypeVar("R")


class Escapable(Protocol):
    """Is told of it."""

    def escaped(self, error: BaseException) -> None:
        """User code raised this, which ended the loop; it will be run on."""
        ...


def run_to_the_end(loop: asyncio.AbstractEventLoop, main: asyncio.Task[R], session: Escapable) -> R:
    """Run the loop until ``main`` is done, however often it is ended."""
    loop.set_exception_handler(_handle)
    while True:
        try:
            return loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            session.escaped(error)


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), SystemExit | KeyboardInterrupt):  # that is told already
        loop.default_exception_handler(context)


def crash_of(topology: str, error: BaseException) -> TopologyCrashed:
    """The crash of the component whose code raised it."""
    owners = (frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__))
    task = next((each for each in owners if isinstance(each, Task)), None)
    crash = TopologyCrashed(topology, "the topology" if task is None else task.name, "user code")
    crash.__cause__ = error
    return crash


def start_failure_of(topology: str, error: BaseException) -> StartFailed:
    """The failure of a start that the constructor of a component wanted to end."""
    failure = StartFailed(topology, "a component", "the constructor")
    failure.__cause__ = error
    return failure
