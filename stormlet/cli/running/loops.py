"""The event loop of a run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Literal

from stormlet.errors import InvalidConfiguration

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
