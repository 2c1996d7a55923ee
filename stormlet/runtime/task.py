"""What all tasks share: a name, a doorbell, and an entry in the account of what is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import monotonic
from typing import Any

from stormlet.core.plan import ACKER, TaskPlan
from stormlet.runtime.cancellation import is_stray
from stormlet.runtime.engine import Engine
from stormlet.runtime.watched import Watched


class Task:
    """One coroutine of the topology: an acker, a spout or a bolt task."""

    def __init__(self, plan: TaskPlan, engine: Engine) -> None:
        self.plan = plan
        self.name = plan.name
        self.engine = engine
        self.loop = engine.loop
        self.activity = engine.activity
        self.slices = engine.slices
        self.doing = "start"
        """The user's method that runs now, or ran last; a crash is reported with it (law C5)."""
        self.leaving = False
        """Whether its work is over and its ``cleanup`` or ``close`` runs, which must not be cancelled again."""
        self._bell: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Have the task look for work; does nothing if it is not asleep."""
        bell = self._bell
        if bell is not None and not bell.done():
            self.activity.begin()
            bell.set_result(None)

    async def sleep(self) -> None:
        """Wait for :meth:`wake`. The caller must have looked for work without awaiting since."""
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
        """The life of the task, from its start until it is cancelled; what user code raises in it crashes the
        topology (law C5)."""
        self.activity.begin()
        try:
            await self.start()
            await self._live_on()
        except BaseException as error:
            self._report(error)
        finally:
            self.activity.end()

    async def _live_on(self) -> None:
        try:
            await self.run()
        except BaseException as error:
            self._report(error)  # before stop() has user code do something else
        finally:
            self.leaving = True
            await self.stop()

    def _report(self, error: BaseException) -> None:
        """A task must never end unnoticed; what ends the process, or this task on purpose, goes on its
        way."""
        if isinstance(error, asyncio.CancelledError) and not is_stray():
            raise error
        self.engine.crashed(self, error)
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise error

    async def start(self) -> None:
        """Before the work: ``prepare`` or ``open``."""

    async def run(self) -> None:
        """The work, until the task is cancelled."""
        raise NotImplementedError

    async def stop(self) -> None:
        """After the work, if ``start`` has returned: ``cleanup`` or ``close``."""
