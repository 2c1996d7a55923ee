"""Disturbances at any place: kills at any step, and user code that raises where no input answers for it.

A task dies wherever it waits, as by ``running.kill``. A task whose user code has raised is restarted (law C5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import isawaitable
from random import Random
from typing import Any

from stormlet.errors import KeyFunctionFailed, StormletError
from stormlet.model.plan import TaskPlan
from stormlet.runtime.task import Task
from stormlet.testing.chaos.faults import PROCESS, FaultKind, Injector
from stormlet.testing.chaos.journal import Journal
from stormlet.testing.chaos.lives import Crash

AT_ONCE = 0.5
"""The share of killed tasks that die right after the step; the others later, where they have come to by then."""
LATEST = 5.0
"""Seconds."""
WAITING = " where it waits"


class Victim:
    """A task, and the step of its coroutine at which it is to die."""

    __slots__ = ("number", "task")

    def __init__(self, task: Task, number: int) -> None:
        self.task = task
        self.number = number
        """0 for none."""


class Steps:
    """Counts the steps of all tasks of a run, and has some of them die, or the whole process."""

    def __init__(self, injector: Injector, kill: Callable[[Task, str], None]) -> None:
        self.before: dict[asyncio.Task[Any], Callable[[], None]] = {}
        """By coroutine: to be called when it makes its next step."""
        self._injector = injector
        self._kill = kill
        self._victims: dict[int, Victim] = {}
        """By the ``id`` of the coroutine they live in."""
        self._last = 0
        """The step of the process at which it is killed; 0 for none."""

    def count(self, tasks: Iterable[Task]) -> None:
        """Begin: the topology has started."""
        for task in tasks:
            number = self._injector.next_step(FaultKind.KILL, task.name)
            if number:
                self._victims[id(task.coroutine)] = Victim(task, number)

    def count_all(self) -> None:
        """Begin: the process lives, and may be killed."""
        self._last = self._injector.next_step(FaultKind.CRASH, PROCESS)

    def end(self) -> None:
        """The process is dead: nothing more befalls it."""
        self._last = 0
        self._victims.clear()
        self.before.clear()

    def begins(self, coroutine: asyncio.Task[Any]) -> None:
        """A coroutine makes a step now. Raises :class:`Crash` if that is the last one of the process."""
        if self._last:
            self._count_step()
        victim = self._victims.get(id(coroutine))
        if victim is not None:
            name = victim.task.name
            self._injector.steps[name] += 1
            if self._injector.steps[name] == victim.number:
                self._strike(victim)
        if self.before and (look := self.before.get(coroutine)) is not None:
            look()

    def _count_step(self) -> None:
        steps = self._injector.steps
        steps[PROCESS] += 1
        if steps[PROCESS] == self._last:
            if self._injector.strikes_at_step(FaultKind.CRASH, PROCESS) is not None:
                raise Crash
            self._last = 0

    def _strike(self, victim: Victim) -> None:
        random = self._injector.strikes_at_step(FaultKind.KILL, victim.task.name)
        victim.number = self._injector.next_step(FaultKind.KILL, victim.task.name)
        if random is None:
            return
        loop = asyncio.get_running_loop()
        if random.random() < AT_ONCE:
            loop.call_soon(self._kill, victim.task, WAITING)
        else:
            loop.call_later(random.uniform(0.0, LATEST), self._kill, victim.task, WAITING)


Call = Callable[[], Awaitable[None] | None]

SPARED = 1
"""Restarts within the window that are left to the user's own exceptions."""


class InjectedError(StormletError):
    """An error that user code raises because the simulation wants it."""


class EngineError(Exception):
    """An error that stormlet itself raises because the simulation wants it."""


class Raising:
    """Has methods and key functions raise, as often as the restarts of their tasks allow it (``max_restarts``)."""

    def __init__(self, injector: Injector, journal: Journal) -> None:
        self._injector = injector
        self._journal = journal
        self._tasks: Mapping[int, Task] = {}

    def begin(self, tasks: Mapping[int, Task]) -> None:
        """The topology has started, with these tasks by their ids."""
        self._tasks = tasks

    def call(self, plan: TaskPlan, name: str, method: Call) -> Awaitable[None] | None:
        """Call a method of the user, which may raise before it has done anything, or after everything."""
        random = self.strikes(plan)
        if random is None:
            return method()
        self._journal.note("FAULT: {} of {} raises", name, plan.name)
        error = InjectedError(f"{name} of {plan.name} was to raise")
        if random.random() < 0.5:
            raise error
        result = method()
        if isawaitable(result):
            return _raise_after(result, error)
        raise error

    def key(self, plan: TaskPlan, key: Callable[[object], object], value: object) -> object:
        """Call a key function."""
        if self.strikes(plan) is not None:
            self._journal.note("FAULT: a key function of {} raises on {}", plan.name, value)
            raise KeyFunctionFailed(f"the key function of {plan.name} was to raise")
        return key(value)

    def strikes(self, plan: TaskPlan) -> Random | None:
        """True if code of this task is to raise here and now."""
        task = self._tasks.get(plan.task)
        if task is None or not task.working or not task.may_restart:
            return None
        if task.restarts.within_window(task.loop.time()) + SPARED >= task.restarts.policy.most:
            return None
        return self._injector.strikes(FaultKind.ERROR, plan.name)


async def _raise_after(result: Awaitable[None], error: Exception) -> None:
    await result
    raise error
