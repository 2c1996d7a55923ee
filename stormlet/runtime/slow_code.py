"""The places of user code in suspended coroutines and running threads.

A coroutine that waits shows what it awaits, and so on down to the future. Four things hide it, and are looked
through: the awaitables of async generators (``async for``), those of compiled coroutines, another task that is
awaited, also by ``gather``, and :func:`~stormlet.runtime.usercode.Within`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import gc
import logging
import sys
import threading
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import contextmanager
from itertools import chain, dropwhile
from pathlib import PurePath
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar, cast

from stormlet.core.shortened import counted
from stormlet.core.tracebacks import Call, call_of, is_ours, stack_line
from stormlet.model.plan import TaskPlan
from stormlet.report.failures import log_fields
from stormlet.runtime.usercode import Within, all_ended

THREADS: Final = (threading.__file__, concurrent.futures.thread.__file__)
"""In a thread, the frames of these lead there."""
ASYNCIO: Final = PurePath(asyncio.__file__).parent
"""The folder of asyncio: the engine itself waits in its files, when it has called no user code."""
SUSPENDABLE: Final[tuple[type[Any], ...]] = (AsyncGenerator, Coroutine)
"""Compiled ones among them."""
LONGEST: Final = 50
"""The number of frames followed at most: a chain that awaits itself has no end."""


def thread_frames(ident: int) -> list[FrameType]:
    """The frames of a thread, outermost first."""
    frames: list[FrameType] = []
    # A thread that ends meanwhile has none; its ident may have been given to another thread by then.
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
        waiting = _awaited_by(waiting)
    # The outermost are kept: they name the user's function, and a chain that is cut is a circle.
    return frames[:LONGEST]


def suspended_frames(awaited: object) -> Iterator[FrameType]:
    """The frames from a coroutine or generator down to the future that it waits for; compiled ones have the same
    attributes."""
    while awaited is not None:
        frame: FrameType | None = _first(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            yield frame
        shown = _first(awaited, "cr_await", "gi_yieldfrom", "ag_await")
        # What has a frame and awaits nothing is the innermost one. What has neither is an object in C, which must
        # be looked through by what it refers to.
        awaited = shown if shown is not None or frame is not None else _hidden(awaited)


def users_of(frames: Iterable[FrameType]) -> tuple[Call, ...]:
    """The calls of user code among these frames, outermost first, with what it has called."""
    # The engine's own frames come first, then the user's; those of libraries that the user calls are kept, as they
    # name the wait.
    users = list(dropwhile(_leads_there, frames))
    if users and _is_of_asyncio(users[0]):
        return ()
    return tuple(call_of(each.f_code, each.f_lineno) for each in users)


def _leads_there(frame: FrameType) -> bool:
    return frame.f_code.co_filename in THREADS or is_ours(frame.f_code)


def _hidden(awaited: object) -> object:
    """The awaitable behind one that does not show it."""
    if isinstance(awaited, Within):
        return cast("Within[object]", awaited).steps
    # The awaitables of async generators show nothing of the generator that they step.
    return _suspendable(gc.get_referents(awaited))


def _suspendable(referents: Collection[object]) -> object:
    for each in referents:
        if isinstance(each, SUSPENDABLE):
            return cast("object", each)
        if type(each).__name__ == "async_generator_asend":  # what anext() with a default awaits
            return _suspendable(gc.get_referents(each))
    return None


def _awaited_by(task: asyncio.Task[Any]) -> asyncio.Future[Any] | None:
    """The future that a task waits for; of those of a ``gather``, the first that is not done."""
    # Before Python 3.12 wait_for() awaits a plain future while a task of its own runs, and nothing leads on to that.
    waiting: asyncio.Future[Any] | None = getattr(task, "_fut_waiter", None)
    children: Iterable[asyncio.Future[Any]] = getattr(waiting, "_children", ())
    return next((each for each in children if not each.done()), waiting)


def _is_of_asyncio(frame: FrameType) -> bool:
    return PurePath(frame.f_code.co_filename).is_relative_to(ASYNCIO)


def _first(owner: object, *names: str) -> Any:
    return next((found for name in names if (found := getattr(owner, name, None)) is not None), None)


logger = logging.getLogger(__name__)

PATIENCE: Final = 5.0
"""Seconds after which user code that is still at work is logged, once."""
MOST_NAMED: Final = 3


class CodeInUse(NamedTuple):
    """The user code of one task that may take long."""

    plan: TaskPlan
    place: Callable[[], str]
    """Finds the place where it is now, in words."""


async def wait_for_end(topology: str, running: Mapping[asyncio.Task[None], CodeInUse]) -> None:
    """Wait until all of these tasks have ended, however long that takes; log those that take long."""
    # A timer and no timeout: user code may take as long as it wants, and the log says who does.
    notice = asyncio.get_running_loop().call_later(PATIENCE, _log_slow_end, topology, running)
    await all_ended(running)
    notice.cancel()


def _log_slow_end(topology: str, running: Mapping[asyncio.Task[None], CodeInUse]) -> None:
    late = [code for task, code in running.items() if not task.done()]
    for plan, place in late[:MOST_NAMED]:
        logger.warning(
            "topology %r cannot end: %s still runs %g s after it was asked to end, in %s",
            topology,
            plan.name,
            PATIENCE,
            place(),
            extra=log_fields(topology, plan.component, plan.task),
        )
    if len(late) > MOST_NAMED:
        logger.warning("topology %r waits for %s", topology, counted(len(late) - MOST_NAMED, "more task"))


@contextmanager
def restarting(topology: str, code: CodeInUse) -> Generator[None]:
    """A block between the death of a task and its next life; it is logged if it takes long."""
    # While a task is dead its inputs wait and time out, which alone would not say why.
    notice = asyncio.get_running_loop().call_later(PATIENCE, _log_slow_restart, topology, code)
    try:
        yield
    finally:
        notice.cancel()


def _log_slow_restart(topology: str, code: CodeInUse) -> None:
    plan, place = code
    logger.warning(
        "%s of topology %r is not restarted yet: for %g s it has been in %s",
        plan.name,
        topology,
        PATIENCE,
        place(),
        extra=log_fields(topology, plan.component, plan.task),
    )


@contextmanager
def passing_over(topology: str, plan: TaskPlan, durable: int, passed: Callable[[], int]) -> Generator[None]:
    """A block in which a source gives again what is durable; it is logged if that takes long."""
    notice = asyncio.get_running_loop().call_later(
        PATIENCE, _log_slow_source, topology, plan, durable, passed
    )
    try:
        yield
    finally:
        notice.cancel()


def _log_slow_source(topology: str, plan: TaskPlan, durable: int, passed: Callable[[], int]) -> None:
    logger.warning(
        "%s of topology %r goes through what is durable already: in %g s it has passed over %s of %s values; a "
        "function with a parameter resume= is called with the last number, and can begin after it",
        plan.name,
        topology,
        PATIENCE,
        f"{passed():,}",
        f"{durable:,}",
        extra=log_fields(topology, plan.component, plan.task),
    )


def place_in(calls: Iterable[asyncio.Task[Any]], threads: Iterable[int], method: str) -> str:
    """The place of the first of these calls and threads that is in user code; if none is, the name of the method."""
    # Looked for only when the timer is due: by then user code may be in another line than when the task was asked.
    stacks = chain(
        (users_of(frames_of(each)) for each in calls), (users_of(thread_frames(each)) for each in threads)
    )
    return next((stack_line(stack) for stack in stacks if stack), method)


R = TypeVar("R")


class Watched(Coroutine[Any, Any, R]):
    """A coroutine whose every step is timed; ``held`` gets the seconds of those that took too long."""

    __slots__ = ("_coroutine", "_held", "_longest", "_time")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, R],
        time: Callable[[], float],
        longest: float,
        held: Callable[[float], None],
    ) -> None:
        self._coroutine = coroutine
        self._time = time
        self._longest = longest
        self._held = held

    def send(self, value: Any, /) -> Any:
        """As a coroutine does."""
        # Its steps are timed and not the whole: between two of them the loop is free.
        began = self._time()
        try:
            return self._coroutine.send(value)
        finally:
            self._took(self._time() - began)

    def throw(self, *error: Any) -> Any:
        """As a coroutine does."""
        began = self._time()
        try:
            return self._coroutine.throw(*error)
        finally:
            self._took(self._time() - began)

    def close(self) -> None:
        """As a coroutine does."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, R]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        # What asyncio shows of a task (cr_frame, cr_code, ...) is that of the coroutine.
        return getattr(self._coroutine, name)

    def _took(self, seconds: float) -> None:
        if seconds > self._longest:
            self._held(seconds)
