"""A task: one coroutine that works, dies, is revived, and ends.

Theory of operation
-------------------
A task is one coroutine, from its start to its end. Its instance of user code dies and is made anew; the coroutine
stays. Its state and the cancellations that reach it are in :mod:`stormlet.runtime.life`.

What a task dies of decides what follows. Only exceptions that its :class:`~stormlet.runtime.usercode.UserCode` has
noted lead to a restart, at most so many times in a while (law C5). Any other exception is the engine's own fault:
another life would have the same, and a message may be in no account any more, so the topology crashes with everything
counted (law N2). Callbacks, whose exceptions nobody would see, are called by ``guarded`` for the same reason.

A task that has nothing to do sleeps until :meth:`Task.wake`. It counts as active from the wake-up on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from functools import partial
from time import monotonic
from typing import Any

import msgspec

from stormlet.core.life import TaskEvent, TaskState
from stormlet.core.retries import RestartPolicy, Restarts
from stormlet.errors import (
    BrokerGivenUp,
    MistakenFactory,
    NotExactlyOnce,
    StartFailed,
    StateUnusable,
    StrayCancellation,
    TaskKilled,
)
from stormlet.model.configuration import Configuration
from stormlet.model.plan import ACKER, TaskPlan
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.context import CrashSite, Engine
from stormlet.runtime.life import Life
from stormlet.runtime.occupation import Occupation, Steps
from stormlet.runtime.slow_code import CodeInUse, Watched, place_in, restarting
from stormlet.runtime.usercode import UserCode
from stormlet.runtime.wire.outbox import Outbox

FINAL = (BrokerGivenUp, MistakenFactory, NotExactlyOnce, StateUnusable)
"""Errors that a restart cannot cure."""
OTHERS_DOING = (TaskKilled, StrayCancellation)
"""Causes of death that are no exception of the task's own code."""

AT_WORK = (TaskState.WORKING, TaskState.DYING, TaskState.CANCELLED, TaskState.ENDING)


class Task:
    """One coroutine of the topology: an acker, a spout or a bolt task."""

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        config: Configuration,
        outbox: Outbox | None = None,
        places: int = 1,
    ) -> None:
        self.plan = plan
        self.name = plan.name
        self.engine = engine
        self.loop = engine.loop
        self.activity = engine.activity
        self.slices = engine.slices
        self.occupation = Occupation(engine.clock, places)
        if outbox is not None:
            outbox.occupation = self.occupation
        self.user = UserCode()
        self.life = Life(engine.host_leaves, self._log)
        self.guarded = partial(engine.guarded, plan)
        """Takes a step in a callback, where nobody would see what it raises (law N2)."""
        self.restarts = Restarts(_policy(config))
        self._bell: asyncio.Future[None] | None = None
        self._fatal: Exception | None = None

    @property
    def working(self) -> bool:
        """True while it has an instance at work."""
        return self.life.state in AT_WORK

    @property
    def restarting(self) -> bool:
        """True after it has died, until its next instance is at work."""
        return self.life.state is TaskState.REVIVING

    @property
    def mortal(self) -> bool:
        """True if :meth:`die` would have it die now, and another instance come after it."""
        return self.life.state is TaskState.WORKING and self.survives_kills

    @property
    def dying(self) -> bool:
        """True if it was told to die, and has not come to do so."""
        return self.life.state in (TaskState.DYING, TaskState.CANCELLED)

    @property
    def doing(self) -> str:
        """The user's method that runs now, or ran last."""
        return self.user.method

    @property
    def coroutine(self) -> asyncio.Task[None] | None:
        """The coroutine that it lives in; None before its start."""
        return self.life.coroutine

    @property
    def concurrent_calls(self) -> Sequence[asyncio.Task[None]]:
        """The coroutines of calls that run beside that, and beside each other (law B3)."""
        return ()

    def threads(self) -> Sequence[int]:
        """The idents of the threads that run its user code now."""
        return ()

    @property
    def code_in_use(self) -> CodeInUse:
        """The user code of this task, for the log of what takes long."""
        return CodeInUse(self.plan, self._place_of_user_code)

    def _place_of_user_code(self) -> str:
        own = () if self.coroutine is None else (self.coroutine,)
        return place_in((*own, *self.concurrent_calls), self.threads(), self.doing)

    def wake(self) -> None:
        """Have the task look for work; does nothing if it is not asleep."""
        bell = self._bell
        # Woken once, whoever else finds a reason: activity is counted at the wake-up, not when it runs.
        if bell is not None and not bell.done():
            bell.set_result(None)
            self.activity.begin()

    @property
    def _asleep(self) -> bool:
        return self._bell is not None and not self._bell.done()

    async def sleep(self) -> None:
        """Wait for :meth:`wake`. The caller must have looked for work without awaiting since."""
        self.life.check_cancelled()
        self._bell = bell = self.loop.create_future()
        self.activity.end()
        try:
            await bell
        finally:
            if bell.cancelled():
                self.activity.begin()
            self._bell = None

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a coroutine of this task. Its steps are the time in which the task executes; in debug mode it is
        watched as well, if it runs user code."""
        if self.engine.longest_step is not None and self.plan.component != ACKER:
            coroutine = Watched(coroutine, monotonic, self.engine.longest_step, self._held)
        steps: Any = Steps(coroutine, self.occupation)
        task: asyncio.Task[None] = self.loop.create_task(steps, name=name)
        return task

    def _held(self, seconds: float) -> None:
        self.engine.failures.held(self.plan, self.user.method, seconds)

    async def live(self) -> None:
        """The life of the task, from its start until it is cancelled. What user code raises in it has it die and
        be restarted, and in the end crashes the topology (law C5)."""
        self.life.coroutine = asyncio.current_task()
        self.activity.begin()
        try:
            # An exception of start() fails the start of the whole topology (law C1), and so is no reason to restart.
            await self.start()
            await self._live_on()
        except BaseException as error:
            self._report(error)
        finally:
            self.activity.end()
            self.occupation.end()
            self.life.change(TaskEvent.OVER)

    async def _live_on(self) -> None:
        try:
            while True:
                await self._revive(await self._death())
        except BaseException as error:
            self._report(error)  # before stop() has user code do something else
        finally:
            self.life.change(TaskEvent.LEAVE)
            self.life.uncancel()
            await self.stop()

    def die(self, error: Exception) -> None:
        """Have the task die of this wherever it waits, as if its own code had raised it there."""
        life = self.life
        if life.state is not TaskState.WORKING:  # one that is dead, or about to die, can be killed no more
            self._log_death(error)
            return
        life.change(TaskEvent.DIE)
        self._fatal = error
        if asyncio.current_task() is life.coroutine:
            # Cancelled now, it would outlive an exception of this very step.
            self.loop.call_soon(self.guarded, self._cancel_for, error)
        else:
            self._cancel_for(error)

    def _cancel_for(self, error: Exception) -> None:
        if self._fatal is error and self.life.state is TaskState.DYING:
            self.life.change(TaskEvent.CANCEL)
            self.life.cancel()

    def crash(self, error: BaseException) -> None:
        """End the run with an error that no restart can cure (law C5)."""
        restarts = self.restarts.in_words(self.loop.time())
        self.engine.crashed(CrashSite(self.plan, self.user.method, restarts, self.way_out), error)

    def _log(self, error: Exception) -> None:
        self.engine.failures.raised(self.plan, self.user.method, error)

    def _log_death(self, error: Exception) -> None:
        if not isinstance(error, TaskKilled) and not self.user.is_logged(error):
            self._log(error)

    async def _death(self) -> Exception:
        """Work until the task dies, and return what of."""
        life = self.life
        life.check_cancelled()  # the end may have come while it was made, and user code have swallowed that
        life.change(TaskEvent.BEGIN)
        try:
            await life.checked(self.run())
        except Exception as error:
            self._take_fatal()
            life.uncancel()
            return error
        except asyncio.CancelledError as error:
            fatal = self._take_fatal() or life.survived(error)
            life.uncancel()
            return fatal
        raise AssertionError("a task works until it is cancelled")

    def _take_fatal(self) -> Exception | None:
        fatal, self._fatal = self._fatal, None
        if self.life.state is TaskState.ENDING:
            raise asyncio.CancelledError
        self.life.change(TaskEvent.DIED)
        return fatal

    async def _revive(self, error: Exception) -> None:
        """Let go of what has died, and begin anew after a pause; raises what it died of if that is too often."""
        pause = self._pause_after(error)
        self.lose(error)
        await self._timely(self.let_go())
        while True:
            # Before the next instance: what the last one raised is no excuse for it.
            self.user.forget()
            self.flush_outbox()
            try:
                await asyncio.sleep(pause)
                await self._timely(self.renew())
            except asyncio.CancelledError as again:
                pause = self._pause_after(self.life.survived(again))
            except Exception as again:
                self.user.raised(cause := _cause(again))
                pause = self._pause_after(cause)
            else:
                return

    async def _timely(self, step: Awaitable[None]) -> None:
        """Take a step in which user code may hang, which nothing else would report."""
        with restarting(self.engine.plan.description.name, self.code_in_use):
            await step

    def _pause_after(self, error: Exception) -> float:
        if not (isinstance(error, OTHERS_DOING) or self.user.has_raised(error)):
            self.engine.failed(self.plan, error)
            raise error
        pause = self._allowed_pause(error)
        if pause is None:
            raise error
        self._log_death(error)
        self.engine.failures.restarts(self.plan, error, pause, self.restarts)
        return pause

    def _allowed_pause(self, error: Exception) -> float | None:
        if not self.may_restart or isinstance(error, FINAL):
            return None
        # Its code is not to blame, so a kill is no part of a crash loop.
        if isinstance(error, TaskKilled):
            return self.restarts.pause_after_kill()
        return self.restarts.pause(self.loop.time())

    def _report(self, error: BaseException) -> None:
        """A task must never end unnoticed (law N3); what ends the process, or this task on purpose, goes on its
        way."""
        if isinstance(error, asyncio.CancelledError):
            if self.life.leaving:
                raise error
            error = self.life.survived(error)
        self.crash(error)
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise error

    def with_shares(self, counts: TaskStatistics) -> TaskStatistics:
        """Add the shares of the time of this task to its counts."""
        shares = self.occupation
        shares.look()
        return msgspec.structs.replace(
            counts,
            executing_seconds=shares.on_loop + shares.threads,
            awaiting_seconds=shares.awaiting,
            blocked_seconds=shares.blocked,
            limited_seconds=shares.limited,
            uptime=shares.uptime,
        )

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
