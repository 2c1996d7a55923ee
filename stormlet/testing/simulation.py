"""A test on simulated time: its hands, the task that all its code runs in, its loop, and the topologies that it leaves.

A test and its async fixtures share one task, so that what a fixture has entered (a topology, a task group, a context
variable) holds in the test and is left by the task that has entered it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from stormlet.model.checks.numbers import check_finite
from stormlet.runtime.run.observers import OBSERVE
from stormlet.testing.leaks import Leak
from stormlet.testing.livelock import Livelock
from stormlet.testing.loop import NEVER, Deadlock, SimulatedLoop, describe_task, pending_tasks
from stormlet.testing.watched_run import WatchedRun


class Simulation:
    """Simulated time, seen from the test that runs on it; the fixture ``sim`` is one.

    Raises :class:`RuntimeError` outside a :class:`~stormlet.testing.SimulatedLoop`.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, SimulatedLoop):
            raise RuntimeError(
                "this event loop has no simulated time: mark the test with @pytest.mark.simulated_time, "
                "or start it with stormlet.testing.run_simulated(...)"
            )
        self._loop = loop

    @property
    def now(self) -> float:
        """Simulated seconds since the test began, its fixtures included."""
        return self._loop.time()

    @property
    def seed(self) -> int:
        """The seed from which the topologies of this test take their randomness (law L16)."""
        return self._loop.seed

    def held(self) -> AbstractContextManager[None]:
        """Time stands still in this block, for as long as it takes: ``with sim.held(): await service.answer()``.

        An ``asyncio.sleep`` of the task that holds it would never end, and raises :class:`RuntimeError`.
        """
        return self._loop.held()

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Let so much time pass, and everything happen that is due by then, as :meth:`settled` says.

        Raises :class:`ValueError` for a negative time and for what is no finite number, and :class:`RuntimeError` in
        :meth:`held`.
        """
        for name, given in (("days", days), ("hours", hours), ("minutes", minutes), ("seconds", seconds)):
            check_finite("sim.advance", name, given)
        by = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        if by < 0:
            raise ValueError(f"time does not go back: {by:g} s")
        self._check_not_held("advance")
        await self._until(self.now + by)
        await self.settled()

    async def settled(self) -> None:
        """Let everything happen that takes no time: return when each topology is quiescent, or waits for the
        clock or for this test. Raises :class:`RuntimeError` in :meth:`held`."""
        self._check_not_held("settled")
        await self._loop.idle()

    def _check_not_held(self, method: str) -> None:
        if self._loop.is_held_by(asyncio.current_task()):
            raise RuntimeError(f"sim.{method} {NEVER}")

    async def _until(self, moment: float) -> None:
        there: asyncio.Future[None] = self._loop.create_future()
        alarm = self._loop.call_at(moment, there.set_result, None)
        try:
            await there
        finally:
            alarm.cancel()


T = TypeVar("T")

LAST_MOMENT = 1.0
"""Real seconds that threads get to end after the test."""


ROUNDS_TO_END = 100
"""Rounds of the loop that other tasks have to end in, without time passing: cancelled ones need a few."""


class SimulatedTest:
    """Runs a test and its async fixtures in one task of one loop."""

    def __init__(self, name: str, seed: int) -> None:
        self._name = name
        self._runner = asyncio.Runner(loop_factory=partial(SimulatedLoop, seed))
        self._task: asyncio.Task[None] | None = None
        self._pieces = asyncio.Queue[tuple[Awaitable[Any], asyncio.Future[Any]]]()
        self._closing = False
        self._runs: list[WatchedRun] = []
        self._threads_before = set(threading.enumerate())

    def run(self, piece: Awaitable[T]) -> T:
        """Run a piece of the test; raises what it raises, with a note of what the topologies know of it."""
        try:
            return self._run(piece)
        except asyncio.CancelledError as error:
            for run in self._runs:
                if run.crash is not None:
                    error.add_note(f"cancelled, because {run.crash}")
            raise
        except Deadlock as error:
            for run in self._runs:
                for line in (*run.unsettled(), *run.stuck()):
                    error.add_note(f"topology {run.name!r}: {line}")
            raise
        except Livelock as error:
            raise error.knowing(line for run in self._runs for line in run.endless()) from None

    def _run(self, piece: Awaitable[T]) -> T:
        loop = self._runner.get_loop()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work(), name=self._name)
        outcome: asyncio.Future[T] = loop.create_future()
        self._pieces.put_nowait((piece, outcome))
        try:
            return loop.run_until_complete(outcome)
        except (KeyboardInterrupt, SystemExit):
            if self._task.done() and not self._task.cancelled():
                self._task.exception()  # has been raised: asyncio need not log it
            raise

    async def _work(self) -> None:
        OBSERVE.set(self._watch)
        while not self._closing:
            piece, outcome = await self._pieces.get()
            try:
                result = await piece
            except (KeyboardInterrupt, SystemExit):
                raise  # of the task itself, which ends the loop: as the outcome of a future they would not
            except BaseException as error:
                if self._closing:
                    raise
                outcome.set_exception(error)
            else:
                outcome.set_result(result)

    def _watch(self) -> WatchedRun:
        run = WatchedRun()
        self._runs.append(run)
        return run

    def simulation(self) -> Simulation:
        """The simulated time of the test."""
        return self.run(_simulation())

    def begin(self, fixture: AsyncGenerator[T, None], name: str) -> T:
        """Run an async generator fixture up to its ``yield``."""
        return self.run(_first(fixture, name))

    def end(self, fixture: AsyncGenerator[object, None], name: str) -> None:
        """Run it from there to its end."""
        self.run(_rest(fixture, name))

    def leaks(self) -> list[Leak]:
        """The leaks, once the test and its fixtures are over."""
        others = [] if self._task is None else self._run(self._others())
        in_runs = [leak for run in self._runs for leak in run.leaks]
        return [*in_runs, *(Leak("tasks", f"task {line}") for line in others)]

    async def _others(self) -> list[str]:
        """A line for each other task that does not end by itself, without time passing."""
        loop = asyncio.get_running_loop()
        for _ in range(ROUNDS_TO_END):
            if len(pending_tasks(loop)) == 1:
                break
            await asyncio.sleep(0)
        return [describe_task(task) for task in pending_tasks(loop) if task is not self._task]

    def close(self) -> list[Leak]:
        """Cancel every task and close the loop; return what threads are left."""
        self._closing = True
        self._runner.close()
        return [Leak("threads", f"thread {thread.name}") for thread in self._threads_left()]

    def _threads_left(self) -> list[threading.Thread]:
        # Daemons are left out: they say themselves that nobody waits for them.
        new = [each for each in threading.enumerate() if each not in self._threads_before and not each.daemon]
        deadline = monotonic() + LAST_MOMENT
        for thread in new:
            thread.join(max(0.0, deadline - monotonic()))
        return [thread for thread in new if thread.is_alive()]


async def _simulation() -> Simulation:
    return Simulation()


async def _first(fixture: AsyncGenerator[T, None], name: str) -> T:
    try:
        return await anext(fixture)
    except StopAsyncIteration:
        raise ValueError(f"fixture {name!r} did not yield a value") from None


async def _rest(fixture: AsyncGenerator[object, None], name: str) -> None:
    try:
        await anext(fixture)
    except StopAsyncIteration:
        return
    await fixture.aclose()
    raise ValueError(f"fixture {name!r} yielded more than once")
