"""The life of one task: its state, its coroutine, and the cancellations that arrive there.

Theory of operation
-------------------
Three parties may cancel the coroutine of a task: the engine, to have the task die wherever it waits; the end of the
run; and anybody else who gets hold of it. asyncio delivers a cancellation once, and user code may swallow it, or raise
something else instead. So the engine does not rely on it: the state says that a cancellation was requested,
:meth:`Life.checked` looks at it whenever user code gives control back, and raises it again. :meth:`Life.survived`
distinguishes the three. A cancellation that neither the engine nor the host has requested is an error like others, of
which the task dies (law N3).

When a death is dealt with, ``uncancel()`` takes back all requests so far: the next one must count as a new one.

Concurrent calls of a bolt (law B3) run in coroutines of their own. They are not cancelled with that of the task, but
together, when its instance ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from stormlet.core.life import TaskEvent, TaskState, task_state
from stormlet.errors import EndOfStream, StrayCancellation, TopologyStopping
from stormlet.runtime.usercode import checked, is_stray, stray

CANCELLED_BY_ENGINE = (TaskState.CANCELLED, TaskState.ENDING)
GONE = (TaskState.LEAVING, TaskState.ENDED)

R = TypeVar("R")


class Life:
    """The state of one task, by the table of :mod:`stormlet.core.life`, and its coroutine."""

    __slots__ = (
        "_cancelled",
        "_host_leaves",
        "_log_answer",
        "calls_cancelled",
        "coroutine",
        "has_calls",
        "state",
    )

    def __init__(self, host_leaves: Callable[[], bool], log_answer: Callable[[Exception], None]) -> None:
        """``log_answer`` logs what user code raises in answer to a cancellation."""
        self.state = TaskState.NEW
        """Moved by :meth:`change` alone."""
        self.coroutine: asyncio.Task[None] | None = None
        """The coroutine that the task lives in; None before its start."""
        self.has_calls = False
        """True if user code runs in coroutines of its own, beside that of the task."""
        self.calls_cancelled = False
        """True while these are cancelled, with the instance that they work for."""
        self._host_leaves = host_leaves
        self._log_answer = log_answer
        self._cancelled = False

    def change(self, event: TaskEvent) -> None:
        """Move to the next state. Raises :class:`~stormlet.core.life.IllegalTransition` if there is none."""
        self.state = task_state(self.state, event)
        # Read whenever user code gives control back, so it is kept beside the state.
        self._cancelled = self.state in CANCELLED_BY_ENGINE

    @property
    def leaving(self) -> bool:
        """True from when ``cleanup`` or ``close`` runs, which must not be cancelled again."""
        return self.state in GONE

    def cancel(self) -> None:
        """Have the coroutine unwind from wherever it waits."""
        assert self.coroutine is not None, "the task has not started"
        self.coroutine.cancel()

    def uncancel(self) -> None:
        """Take back every cancellation so far; one that user code lets out from now on is its own."""
        while self.coroutine is not None and self.coroutine.uncancel():
            pass

    @property
    def is_cancelled(self) -> bool:
        """True if the engine has cancelled the running coroutine."""
        if self.has_calls and asyncio.current_task() is not self.coroutine:
            return self.calls_cancelled  # a call must be among the calls until what it was handed is failed
        return self._cancelled

    def check_cancelled(self, answer: Exception | None = None) -> None:
        """Raise :class:`asyncio.CancelledError` if the engine has cancelled the running coroutine and user code has
        swallowed that, or raised ``answer`` instead: it comes only once, and what goes on would never end."""
        if not self.is_cancelled:
            return
        if answer is not None and not isinstance(answer, EndOfStream | TopologyStopping):
            self._log_answer(answer)
        raise asyncio.CancelledError

    def checked(self, result: Awaitable[R]) -> Coroutine[Any, Any, R]:
        """Await user code; see :func:`~stormlet.runtime.usercode.checked`."""
        return checked(result, self.check_cancelled)

    def survived(self, error: asyncio.CancelledError) -> StrayCancellation:
        """Return the death by a cancellation that the engine did not ask for (law N3). Raises it again if the engine
        did, or if the host itself is being cancelled, and all its tasks may be; nothing cuts short what comes after
        that."""
        if not self.leaving and (self.state is TaskState.ENDING or self._host_leaves()):
            raise error
        # Nobody has cancelled this coroutine: the error came out of something that user code awaited.
        if is_stray():
            return stray(error)
        self.uncancel()
        death = StrayCancellation("somebody else has cancelled the task")
        death.__cause__ = error
        return death
