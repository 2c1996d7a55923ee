"""The life of a task: it works, dies, is restarted, and ends; the states are in :mod:`stormlet.core.life`.

Theory of operation
-------------------
A task is one coroutine, from its start to its end. Its instance of user code dies and is made anew; the coroutine
stays.

Three parties may cancel that coroutine: the engine, to have the task die wherever it waits; the end of the run; and
anybody else who gets hold of it. asyncio delivers a cancellation once, and user code may swallow it, or raise
something else instead. So the engine does not rely on it: the state says that a cancellation was requested,
:meth:`Task.checked` looks at it whenever user code gives control back, and raises it again. :meth:`Task.survived`
tells the three apart. A cancellation that neither the engine nor the host has requested is an error like others, of
which the task dies (law N3).

When a death is dealt with, ``uncancel()`` takes back all requests so far: the next one must count as a new one.

What a task dies of decides what follows. Only exceptions of user code are noted by :meth:`Task.blame`, and only these
lead to a restart, at most so many times in a while (law C5). Any other exception is the engine's own fault: another
life would have the same, and a message may be in no account any more, so the topology crashes with everything counted
(law N2). Callbacks, whose exceptions nobody would hear, are called by :meth:`Task.guarded` for the same reason.

A task that has nothing to do sleeps until :meth:`Task.wake`. It counts as active from the wake-up on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from time import monotonic
from typing import Any, TypeVar

from stormlet.core.life import TaskEvent, TaskState, task_state
from stormlet.core.retries import RestartPolicy, Restarts
from stormlet.errors import (
    EndOfStream,
    MistakenFactory,
    NotExactlyOnce,
    StartFailed,
    StrayCancellation,
    TaskKilled,
    TopologyStopping,
)
from stormlet.model.configuration import Configuration
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.runtime.context import Engine
from stormlet.runtime.slow_code import Watched, restarting
from stormlet.runtime.usercode import check_stray, is_stray, stray

FINAL = (MistakenFactory, NotExactlyOnce)
"""Errors that a restart cannot cure."""
OTHERS_DOING = (TaskKilled, StrayCancellation)
"""Causes of death that are no exception of the task's own code."""

AT_WORK = (TaskState.WORKING, TaskState.DYING, TaskState.CANCELLED, TaskState.ENDING)
CANCELLED_BY_ENGINE = (TaskState.CANCELLED, TaskState.ENDING)
GONE = (TaskState.LEAVING, TaskState.ENDED)

R = TypeVar("R")


class Task:
    """One coroutine of the topology: an acker, a spout or a bolt task."""

    def __init__(self, plan: TaskPlan, engine: Engine, config: Configuration) -> None:
        self.plan = plan
        self.name = plan.name
        self.engine = engine
        self.loop = engine.loop
        self.activity = engine.activity
        self.slices = engine.slices
        self.doing = "start"
        """The user's method that runs now, or ran last; a crash is reported with it (law C5)."""
        self.state = TaskState.NEW
        """The state of its life; :meth:`change` alone moves it."""
        self._cancelled_by_engine = False
        """Follows from the state, and is read whenever user code gives control back."""
        self.restarts = Restarts(_policy(config))
        self._bell: asyncio.Future[None] | None = None
        self._coroutine: asyncio.Task[None] | None = None
        self._fatal: Exception | None = None
        self._told: list[Exception] = []
        self._blamed: list[BaseException] = []

    def change(self, event: TaskEvent) -> None:
        """Move it to the next state. Raises :class:`~stormlet.core.life.IllegalTransition` if there is none."""
        self.state = task_state(self.state, event)
        self._cancelled_by_engine = self.state in CANCELLED_BY_ENGINE

    @property
    def working(self) -> bool:
        """True while it has an instance at work."""
        return self.state in AT_WORK

    @property
    def restarting(self) -> bool:
        """True after it has died, until its next instance is at work."""
        return self.state is TaskState.REVIVING

    @property
    def mortal(self) -> bool:
        """True if :meth:`die` would have it die now, and another instance come after it."""
        return self.state is TaskState.WORKING and self.survives_kills

    @property
    def leaving(self) -> bool:
        """True from when its ``cleanup`` or ``close`` runs, which must not be cancelled again."""
        return self.state in GONE

    @property
    def coroutine(self) -> asyncio.Task[None] | None:
        """The coroutine that it lives in; None before its start."""
        return self._coroutine

    @property
    def concurrent_calls(self) -> Sequence[asyncio.Task[None]]:
        """The coroutines of calls that run beside that, and beside each other (law B3)."""
        return ()

    def threads(self) -> Sequence[int]:
        """The idents of the threads that run its user code now."""
        return ()

    def wake(self) -> None:
        """Have the task look for work; does nothing if it is not asleep."""
        bell = self._bell
        if bell is not None and not bell.done():
            bell.set_result(None)
            self.activity.begin()

    @property
    def _asleep(self) -> bool:
        return self._bell is not None and not self._bell.done()

    async def sleep(self) -> None:
        """Wait for :meth:`wake`. The caller must have looked for work without awaiting since."""
        self.check_cancelled()
        self._bell = bell = self.loop.create_future()
        self.activity.end()
        try:
            await bell
        finally:
            if bell.cancelled():
                self.activity.begin()
            self._bell = None

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a coroutine of this task; in debug mode it is watched, if it runs user code."""
        if self.engine.longest_step is not None and self.plan.component != ACKER:
            coroutine = Watched(coroutine, monotonic, self.engine.longest_step, self._held)
        return self.loop.create_task(coroutine, name=name)

    def _held(self, seconds: float) -> None:
        self.engine.failures.held(self.plan, self.doing, seconds)

    async def live(self) -> None:
        """The life of the task, from its start until it is cancelled. What user code raises in it has it die and
        be restarted, and in the end crashes the topology (law C5)."""
        self._coroutine = asyncio.current_task()
        self.activity.begin()
        try:
            await self.start()
            await self._live_on()
        except BaseException as error:
            self._report(error)
        finally:
            self.change(TaskEvent.OVER)
            self.activity.end()

    async def _live_on(self) -> None:
        try:
            while True:
                await self._revive(await self._death())
        except BaseException as error:
            self._report(error)  # before stop() has user code do something else
        finally:
            self.change(TaskEvent.LEAVE)
            self._uncancel()
            await self.stop()

    def die(self, error: Exception) -> None:
        """Have the task die of this wherever it waits, as if its own code had raised it there."""
        if self.state is not TaskState.WORKING:  # one that is dead, or about to die, can be killed no more
            self._log(error)
            return
        self.change(TaskEvent.DIE)
        self._fatal = error
        if asyncio.current_task() is self._coroutine:
            # Cancelled now, it would outlive an exception of this very step.
            self.loop.call_soon(self.guarded, self._cancel_for, error)
        else:
            self._cancel_for(error)

    def _cancel_for(self, error: Exception) -> None:
        if self._fatal is error and self.state is TaskState.DYING and self._coroutine is not None:
            self.change(TaskEvent.CANCEL)
            self._coroutine.cancel()

    async def checked(self, result: Awaitable[R]) -> R:
        """Await user code. A cancellation by the engine comes out whatever that code makes of it, and a stray one as
        :class:`~stormlet.errors.StrayCancellation`."""
        try:
            value = await result
        except asyncio.CancelledError as error:
            self.check_cancelled()
            check_stray(error)
            raise
        except Exception as error:
            self.check_cancelled(error)
            raise
        self.check_cancelled()
        return value

    def survived(self, error: asyncio.CancelledError) -> StrayCancellation:
        """The death by a cancellation that the engine did not ask for (law N3). Raises it again if the engine did, or
        if the host itself is being cancelled, and all its tasks may be; nothing cuts short what comes after that."""
        if not self.leaving and (self.state is TaskState.ENDING or self.engine.host_leaves()):
            raise error
        if is_stray():
            return stray(error)
        self._uncancel()
        death = StrayCancellation("somebody else has cancelled the task")
        death.__cause__ = error
        return death

    def _uncancel(self) -> None:
        """Every cancellation so far has been heard; one that user code lets out from now on is its own."""
        while self._coroutine is not None and self._coroutine.uncancel():
            pass

    def blame(self, error: BaseException) -> None:
        """Note that user code raised this: then the task may be restarted. What the engine itself raises crashes the
        topology (law N2)."""
        self._blamed.append(error)

    def guarded(self, step: Callable[..., object], *arguments: object) -> None:
        """Take a step of the engine in a callback, where nobody would hear what it raises (law N2)."""
        try:
            step(*arguments)
        except (Exception, asyncio.CancelledError) as error:
            self.engine.failed(self.plan, error)

    def check_cancelled(self, answer: Exception | None = None) -> None:
        """Raise :class:`asyncio.CancelledError` if the engine has cancelled the running coroutine and user code has
        swallowed that, or raised ``answer`` instead: it comes only once, and what goes on would never end."""
        if not self._is_cancelled():
            return
        if answer is not None and not isinstance(answer, EndOfStream | TopologyStopping):
            self.engine.failures.raised(self.plan, self.doing, answer)
        raise asyncio.CancelledError

    def _is_cancelled(self) -> bool:
        return self._cancelled_by_engine

    def told(self, error: Exception) -> None:
        """The log has this already."""
        self._told.append(error)

    def was_told(self, error: Exception) -> bool:
        """True if the log has the error that the running instance dies of, or that one of its calls ended with."""
        return _is_among(self._told, error)

    def _log(self, error: Exception) -> None:
        if not isinstance(error, TaskKilled) and not self.was_told(error):
            self.engine.failures.raised(self.plan, self.doing, error)

    async def _death(self) -> Exception:
        """Work until the task dies, and return what of."""
        self.check_cancelled()  # the end may have come while it was made, and user code have swallowed that
        self.change(TaskEvent.BEGIN)
        try:
            await self.checked(self.run())
        except Exception as error:
            self._take_fatal()
            self._uncancel()
            return error
        except asyncio.CancelledError as error:
            fatal = self._take_fatal() or self.survived(error)
            self._uncancel()
            return fatal
        raise AssertionError("a task works until it is cancelled")

    def _take_fatal(self) -> Exception | None:
        fatal, self._fatal = self._fatal, None
        if self.state is TaskState.ENDING:
            raise asyncio.CancelledError
        self.change(TaskEvent.DIED)
        return fatal

    async def _revive(self, error: Exception) -> None:
        """Let go of what has died, and begin anew after a pause; raises what it died of if that is too often."""
        pause = self._pause_after(error)
        self.lose(error)
        await self._timely(self.let_go())
        while True:
            self._told.clear()
            self._blamed.clear()
            self.flush_outbox()
            try:
                await asyncio.sleep(pause)
                await self._timely(self.renew())
            except asyncio.CancelledError as again:
                pause = self._pause_after(self.survived(again))
            except Exception as again:
                self.blame(cause := _cause(again))
                pause = self._pause_after(cause)
            else:
                return

    async def _timely(self, step: Awaitable[None]) -> None:
        """User code may hang in it, and nothing else would tell."""
        with restarting(self.engine.plan.description.name, self):
            await step

    def _pause_after(self, error: Exception) -> float:
        if not self._is_blamed(error):
            self.engine.failed(self.plan, error)
            raise error
        pause = self._allowed_pause(error)
        if pause is None:
            raise error
        self._log(error)
        self.engine.failures.restarts(self.plan, error, pause, self.restarts)
        return pause

    def _is_blamed(self, error: Exception) -> bool:
        """Something other than the engine itself is to blame."""
        return isinstance(error, OTHERS_DOING) or _is_among(self._blamed, error)

    def _allowed_pause(self, error: Exception) -> float | None:
        if not self.may_restart or isinstance(error, FINAL):
            return None
        if isinstance(error, TaskKilled):
            return self.restarts.pause_after_kill()
        return self.restarts.pause(self.loop.time())

    def _report(self, error: BaseException) -> None:
        """A task must never end unnoticed (law N3); what ends the process, or this task on purpose, goes on its
        way."""
        if isinstance(error, asyncio.CancelledError):
            if self.leaving:
                raise error
            error = self.survived(error)
        self.engine.crashed(self, error)
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise error

    def flush_outbox(self) -> None:
        """Send what is unsent, and be done with the slice: while a task is dead nothing may wait in it (law F1)."""

    async def start(self) -> None:
        """Before the work: ``prepare`` or ``open``."""

    async def run(self) -> None:
        """The work, until the task is cancelled."""
        raise NotImplementedError

    @property
    def may_restart(self) -> bool:
        """True if it may be restarted at all where it has died."""
        return True

    @property
    def way_out(self) -> str:
        """The reason it may not be restarted, and the way to let it be, in words; empty if there is nothing to say."""
        return ""

    @property
    def survives_kills(self) -> bool:
        """True if it may be restarted after :meth:`die`, whatever it is waiting for then."""
        return self.may_restart

    def lose(self, error: Exception) -> None:
        """It has died: send what is unsent, and fail what was with the dead instance."""

    async def let_go(self) -> None:
        """Have the dead instance clean up."""

    async def renew(self) -> None:
        """Make another instance, and have it prepared."""

    async def stop(self) -> None:
        """After the work, if ``start`` has returned: ``cleanup`` or ``close``."""


def _policy(config: Configuration) -> RestartPolicy:
    return RestartPolicy(
        config.max_restarts, config.restart_window, config.restart_delay, config.restart_delay_max
    )


def _cause(error: Exception) -> Exception:
    """The exception that a constructor has raised."""
    cause = error.__cause__
    return cause if isinstance(error, StartFailed) and isinstance(cause, Exception) else error


def _is_among(errors: Sequence[BaseException], error: Exception) -> bool:
    """Says if it is one of these. Where a StopIteration would leave a coroutine, Python raises another error."""
    cause = error.__cause__ if type(error) is RuntimeError else None
    raised = cause if isinstance(cause, StopIteration) else error
    return any(each is error or each is raised for each in errors)
