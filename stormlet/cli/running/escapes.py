"""User code that tries to end the process, with ``sys.exit()`` or ``KeyboardInterrupt``, or stops the loop: a crash
of its component (law C5), which leaves nothing undone in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from traceback import walk_tb
from typing import Any, Protocol, TypeVar

from stormlet.errors import StartFailed, TopologyCrashed
from stormlet.model.description import BoltSpec, SpoutSpec
from stormlet.runtime.task import Task

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
    """The crash of the component whose code has ended the loop with this."""
    if isinstance(error, RuntimeError):
        return LoopStopped(topology, "the topology", "user code")
    task = next((each for each in _owners(error) if isinstance(each, Task)), None)
    name, doing = ("the topology", "user code") if task is None else (task.name, task.doing)
    crash = (TopologyCrashed if started else StartFailed)(topology, name, doing)
    crash.__cause__ = error
    return crash


def start_failure_of(topology: str, error: BaseException) -> StartFailed:
    """The failure of a start that the constructor of a component wanted to end."""
    specs = [frame.f_locals.get("spec") for frame, _ in walk_tb(error.__traceback__)]
    component = next((_named(each) for each in reversed(specs) if isinstance(each, BoltSpec | SpoutSpec)), "")
    failure = StartFailed(topology, component or "a component", "the constructor")
    failure.__cause__ = error
    return failure


def _owners(error: BaseException) -> Iterator[object]:
    return (frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__))


def _named(spec: BoltSpec | SpoutSpec) -> str:
    return f"{'bolt' if isinstance(spec, BoltSpec) else 'spout'} {spec.id!r}"
