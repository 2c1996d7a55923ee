"""User code that raises where no input answers for it, so that its task is restarted (law C5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from random import Random

from stormlet.errors import KeyFunctionFailed, StormletError
from stormlet.model.plan import TaskPlan
from stormlet.runtime.task import Task
from stormlet.testing.chaos.faults import FaultKind, Injector
from stormlet.testing.chaos.journal import Journal

Call = Callable[[], Awaitable[None] | None]

SPARED = 1
"""Restarts within the window that are left to the user's own exceptions."""


class InjectedError(StormletError):
    """What user code raises because the simulation wants it."""


class EngineError(Exception):
    """What stormlet itself raises because the simulation wants it."""


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
        """Whether code of this task is to raise here and now."""
        task = self._tasks.get(plan.task)
        if task is None or not task.working or not task.may_restart:
            return None
        if task.restarts.within_window(task.loop.time()) + SPARED >= task.restarts.policy.most:
            return None
        return self._injector.strikes(FaultKind.ERROR, plan.name)


async def _raise_after(result: Awaitable[None], error: Exception) -> None:
    await result
    raise error
