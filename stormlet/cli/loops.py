"""The event loop of a run, and what leaves it on the way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

from stormlet.errors import InvalidConfiguration

R = TypeVar("R")

LoopName = Literal["uvloop", "asyncio"]
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loop_factory(name: LoopName | None) -> LoopFactory:
    """The loop asked for; otherwise that of uvloop where it is installed.

    Raises :class:`~stormlet.errors.InvalidConfiguration` if uvloop is asked for and cannot be had.
    """
    if name == "asyncio":
        return asyncio.new_event_loop
    try:
        import uvloop
    except ImportError:
        if name is None:
            return asyncio.new_event_loop
        raise InvalidConfiguration(
            "--loop uvloop: uvloop is not installed: pip install 'stormlet[uvloop]', or leave --loop out"
        ) from None
    if _standard_streams_are_open():
        return uvloop.new_event_loop
    if name is None:
        return asyncio.new_event_loop
    raise InvalidConfiguration("--loop uvloop: it needs open standard streams; use --loop asyncio")


def _standard_streams_are_open() -> bool:
    # uvloop opens files of its own under the numbers of closed ones, and aborts when it closes them.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            return False
    return True


class Escapable(Protocol):
    """Is told of user code that tried to end the process."""

    def escaped(self, error: BaseException) -> None:
        """It raised ``SystemExit`` or ``KeyboardInterrupt``, which ended the loop."""
        ...


def run_to_the_end(loop: asyncio.AbstractEventLoop, main: asyncio.Task[R], session: Escapable) -> R:
    """Run the loop until ``main`` is done, however often user code calls ``sys.exit()``."""
    loop.set_exception_handler(_handle)
    while True:
        try:
            return loop.run_until_complete(main)
        except (SystemExit, KeyboardInterrupt) as error:
            session.escaped(error)


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), SystemExit | KeyboardInterrupt):  # that is told already
        loop.default_exception_handler(context)
