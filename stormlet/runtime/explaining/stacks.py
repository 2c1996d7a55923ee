"""Where suspended coroutines and running threads are in user code.

A coroutine that waits shows what it awaits, and so on down to the future. Four things hide it, and are looked
through: the awaitables of async generators (``async for``), those of compiled coroutines, another task that is
awaited, also by ``gather`` or ``wait_for``, and :func:`~stormlet.runtime.contexts.within`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import gc
import sys
import threading
from collections.abc import AsyncGenerator, Collection, Coroutine, Iterable, Iterator
from itertools import dropwhile
from pathlib import PurePath
from types import FrameType
from typing import Any, Final, cast

from stormlet.core.calls import Call, call_of, is_ours
from stormlet.runtime.contexts import within

THREADS: Final = (threading.__file__, concurrent.futures.thread.__file__)
"""In a thread, the frames of these lead there."""
ASYNCIO: Final = PurePath(asyncio.__file__).parent
"""What the engine itself waits in, when it has called no user code."""
SUSPENDABLE: Final[tuple[type[Any], ...]] = (AsyncGenerator, Coroutine)
"""Compiled ones among them."""
LONGEST: Final = 50
"""How many frames are followed at most: what awaits itself has no end."""


def thread_frames(ident: int) -> list[FrameType]:
    """The frames of a thread, outermost first."""
    frames: list[FrameType] = []
    frame = sys._current_frames().get(ident)  # pyright: ignore[reportPrivateUsage] - it is documented
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


def frames_of(task: asyncio.Task[Any]) -> list[FrameType]:
    """The frames that a task is suspended in, outermost first, and those of the task that it awaits."""
    frames: list[FrameType] = []
    waiting: asyncio.Future[Any] | None = task
    while isinstance(waiting, asyncio.Task) and len(frames) < LONGEST:
        frames.extend(suspended_frames(waiting.get_coro()))
        waiting = _awaited_by(waiting, frames[-1:])
    return frames[:LONGEST]


def suspended_frames(awaited: object) -> Iterator[FrameType]:
    """The frames from a coroutine or generator down to the future that it waits for; compiled ones have the same
    attributes."""
    while awaited is not None:
        frame: FrameType | None = _first(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            yield frame
        awaited = _first(awaited, "cr_await", "gi_yieldfrom", "ag_await") or _hidden(awaited, frame)


def users_of(frames: Iterable[FrameType]) -> tuple[Call, ...]:
    """The calls of user code among these frames, outermost first, with what it has called."""
    users = [each for each in dropwhile(_leads_there, frames) if each.f_code is not within.__code__]
    if users and PurePath(users[0].f_code.co_filename).is_relative_to(ASYNCIO):
        return ()
    return tuple(call_of(each.f_code, each.f_lineno) for each in users)


def _leads_there(frame: FrameType) -> bool:
    return frame.f_code.co_filename in THREADS or is_ours(frame.f_code)


def _hidden(awaited: object, frame: FrameType | None) -> object:
    """What is awaited by something that does not show it."""
    if frame is None:
        return _within(gc.get_referents(awaited))
    return frame.f_locals.get("steps") if frame.f_code is within.__code__ else None


def _within(referents: Collection[object]) -> object:
    for each in referents:
        if isinstance(each, SUSPENDABLE):
            return cast("object", each)
        if type(each).__name__ == "async_generator_asend":  # what anext() with a default awaits
            return _within(gc.get_referents(each))
    return None


def _awaited_by(task: asyncio.Task[Any], innermost: list[FrameType]) -> asyncio.Future[Any] | None:
    """The future that a task waits for; of those of a ``gather``, the first that is not done."""
    for frame in innermost:
        if frame.f_code is asyncio.wait_for.__code__:  # before Python 3.12 it makes a task
            return frame.f_locals.get("fut")
    waiting: asyncio.Future[Any] | None = getattr(task, "_fut_waiter", None)
    children: Iterable[asyncio.Future[Any]] = getattr(waiting, "_children", ())
    return next((each for each in children if not each.done()), waiting)


def _first(owner: object, *names: str) -> Any:
    return next((found for name in names if (found := getattr(owner, name, None)) is not None), None)
