"""The places of user code in suspended coroutines and running threads.

A coroutine that waits shows what it awaits, and so on down to the future. Four things hide it, and are looked
through: the awaitables of async generators (``async for``), those of compiled coroutines, another task that is
awaited, also by ``gather`` or ``wait_for``, and :func:`~stormlet.runtime.usercode.Within`.
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
    Sequence,
)
from contextlib import contextmanager
from itertools import chain, dropwhile
from pathlib import PurePath
from types import FrameType
from typing import Any, Final, Protocol, TypeVar, cast

from stormlet.core.tracebacks import Call, call_of, is_ours, stack_line
from stormlet.model.plan import TaskPlan
from stormlet.report.log_fields import log_fields
from stormlet.runtime.usercode import Within, all_ended

THREADS: Final = (threading.__file__, concurrent.futures.thread.__file__)
"""In a thread, the frames of these lead there."""
ASYNCIO: Final = PurePath(asyncio.__file__).parent
"""The folder of asyncio: the engine itself waits in its files, when it has called no user code."""
SUSPENDABLE: Final[tuple[type[Any], ...]] = (AsyncGenerator, Coroutine)
"""Compiled ones among them."""
TASKS: Final[tuple[type[Any], ...]] = (asyncio.Task,)
LONGEST: Final = 50
"""The number of frames followed at most: a chain that awaits itself has no end."""


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
        own = list(suspended_frames(waiting.get_coro()))
        frames.extend(own)
        waiting = _awaited_by(waiting, own[-1] if own else None)
    return frames[:LONGEST]


def suspended_frames(awaited: object) -> Iterator[FrameType]:
    """The frames from a coroutine or generator down to the future that it waits for; compiled ones have the same
    attributes."""
    while awaited is not None:
        frame: FrameType | None = _first(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            yield frame
        shown = _first(awaited, "cr_await", "gi_yieldfrom", "ag_await")
        awaited = shown if shown is not None or frame is not None else _hidden(awaited)


def users_of(frames: Iterable[FrameType]) -> tuple[Call, ...]:
    """The calls of user code among these frames, outermost first, with what it has called."""
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
    return _suspendable(gc.get_referents(awaited))


def _suspendable(referents: Collection[object]) -> object:
    for each in referents:
        if isinstance(each, SUSPENDABLE):
            return cast("object", each)
        if type(each).__name__ == "async_generator_asend":  # what anext() with a default awaits
            return _suspendable(gc.get_referents(each))
    return None


def _awaited_by(task: asyncio.Task[Any], innermost: FrameType | None) -> asyncio.Future[Any] | None:
    """The future that a task waits for; of those of a ``gather``, the first that is not done."""
    waiting: asyncio.Future[Any] | None = getattr(task, "_fut_waiter", None)
    if isinstance(waiting, asyncio.Task):
        return waiting
    children: Iterable[asyncio.Future[Any]] = getattr(waiting, "_children", ())
    return next((each for each in (*children, *_tasks_of_asyncio(innermost)) if not each.done()), waiting)


def _tasks_of_asyncio(frame: FrameType | None) -> Iterable[asyncio.Task[Any]]:
    """The tasks that a function of asyncio has in hand: before Python 3.12 ``wait_for`` makes one, and awaits a plain
    future meanwhile."""
    if frame is None or not _is_of_asyncio(frame):
        return ()
    held: Iterable[object] = frame.f_locals.values()
    return (cast("asyncio.Task[Any]", each) for each in held if isinstance(each, TASKS))


def _is_of_asyncio(frame: FrameType) -> bool:
    return PurePath(frame.f_code.co_filename).is_relative_to(ASYNCIO)


def _first(owner: object, *names: str) -> Any:
    return next((found for name in names if (found := getattr(owner, name, None)) is not None), None)


logger = logging.getLogger(__name__)

PATIENCE: Final = 5.0
"""Seconds after which those that have not ended are told, once."""
MOST_TOLD: Final = 3


class Late(Protocol):
    """A task, and where its user code may be."""

    plan: TaskPlan
    name: str
    doing: str

    @property
    def coroutine(self) -> asyncio.Task[None] | None:
        """The coroutine that it lives in."""
        ...

    @property
    def concurrent_calls(self) -> Sequence[asyncio.Task[None]]:
        """The coroutines of calls that run beside that."""
        ...

    def threads(self) -> Sequence[int]:
        """The idents of the threads that run user code of it."""
        ...


async def wait_for_end(topology: str, running: Mapping[asyncio.Task[None], Late]) -> None:
    """Wait until all of them have ended, however long that takes; the log has who takes long."""
    notice = asyncio.get_running_loop().call_later(PATIENCE, _tell_late, topology, running)
    await all_ended(running)
    notice.cancel()


def _tell_late(topology: str, running: Mapping[asyncio.Task[None], Late]) -> None:
    _tell(topology, [task for each, task in running.items() if not each.done()])


@contextmanager
def restarting(topology: str, task: Late) -> Generator[None]:
    """A block between the death of a task and its next life; the log has what takes long in it."""
    notice = asyncio.get_running_loop().call_later(PATIENCE, _tell_restart, topology, task)
    try:
        yield
    finally:
        notice.cancel()


def _tell_restart(topology: str, task: Late) -> None:
    logger.warning(
        "%s of topology %r is not restarted yet: for %g s it has been in %s",
        task.name,
        topology,
        PATIENCE,
        _place(task),
        extra=log_fields(topology, task.plan.component, task.plan.task),
    )


def _tell(topology: str, late: list[Late]) -> None:
    for task in late[:MOST_TOLD]:
        logger.warning(
            "topology %r cannot end: %s still runs %g s after it was asked to end, in %s",
            topology,
            task.name,
            PATIENCE,
            _place(task),
            extra=log_fields(topology, task.plan.component, task.plan.task),
        )
    if len(late) > MOST_TOLD:
        logger.warning("topology %r waits for %d more tasks", topology, len(late) - MOST_TOLD)


def _place(task: Late) -> str:
    """The place of its user code: that of the first call that is in any."""
    calls = [task.coroutine, *task.concurrent_calls]
    stacks: Iterable[tuple[Call, ...]] = chain(
        (users_of(frames_of(each)) for each in calls if each is not None),
        (users_of(thread_frames(ident)) for ident in task.threads()),
    )
    return next((stack_line(stack) for stack in stacks if stack), task.doing)


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
