"""One task of a simulated loop, in which one piece of code runs after another.

A test and its async fixtures share it, so that what a fixture has entered (a topology, a task group, a context
variable) holds in the test and is left by the task that has entered it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from stormlet.testing.loop import SimulatedLoop, describe_task, pending_tasks

T = TypeVar("T")

ROUNDS_TO_END = 100
"""Rounds of the loop that other tasks have to end in, without time passing: cancelled ones need a few."""


class OneTask:
    """A simulated loop and its main task. ``prepare`` is called first in that task."""

    def __init__(self, name: str, seed: int, prepare: Callable[[], object]) -> None:
        self._name = name
        self._prepare = prepare
        self._runner = asyncio.Runner(loop_factory=partial(SimulatedLoop, seed))
        self._task: asyncio.Task[None] | None = None
        self._pieces = asyncio.Queue[tuple[Awaitable[Any], asyncio.Future[Any]]]()
        self._closing = False

    def run(self, piece: Awaitable[T]) -> T:
        """Await this in the task and give its result; raises what it raises, and
        :class:`~stormlet.testing.Deadlock`."""
        loop = self._runner.get_loop()
        if self._task is None:
            self._task = loop.create_task(self._work(), name=self._name)
        outcome: asyncio.Future[T] = loop.create_future()
        self._pieces.put_nowait((piece, outcome))
        return loop.run_until_complete(outcome)

    def others(self) -> list[str]:
        """A line for each other task that does not end by itself, without time passing."""
        return [] if self._task is None else self.run(self._others())

    def close(self) -> None:
        """Cancel every task and close the loop."""
        self._closing = True
        self._runner.close()

    async def _work(self) -> None:
        self._prepare()
        while not self._closing:
            piece, outcome = await self._pieces.get()
            try:
                result = await piece
            except BaseException as error:
                if self._closing:
                    raise
                outcome.set_exception(error)
            else:
                outcome.set_result(result)

    async def _others(self) -> list[str]:
        loop = asyncio.get_running_loop()
        for _ in range(ROUNDS_TO_END):
            if len(pending_tasks(loop)) == 1:
                break
            await asyncio.sleep(0)
        return [describe_task(task) for task in pending_tasks(loop) if task is not self._task]
