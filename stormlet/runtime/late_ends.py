"""Tells who holds up the end of a topology, or the restart of a task: user code that goes on when it is cancelled, is
slow to close, or to be prepared."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Final, Protocol

from stormlet.core.calls import Call, stack_line
from stormlet.core.log_fields import log_fields
from stormlet.core.plan import TaskPlan
from stormlet.runtime.cancellation import all_ended
from stormlet.runtime.explaining.stacks import frames_of, thread_frames, users_of

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
        """What it lives in."""
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
    """What is done inside stands between the death of a task and its next life; the log has what takes long."""
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
    """Where its user code is: that of the first call that is in any."""
    calls = [task.coroutine, *task.concurrent_calls]
    stacks: Iterable[tuple[Call, ...]] = chain(
        (users_of(frames_of(each)) for each in calls if each is not None),
        (users_of(thread_frames(ident)) for ident in task.threads()),
    )
    return next((stack_line(stack) for stack in stacks if stack), task.doing)
