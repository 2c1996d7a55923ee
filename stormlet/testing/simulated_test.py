"""One test on simulated time: its loop, its topologies, and what it leaves behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable
from time import monotonic
from typing import TypeVar

from stormlet.runtime.run.observers import OBSERVE
from stormlet.testing.leaks import Leak
from stormlet.testing.livelock import Livelock
from stormlet.testing.loop import Deadlock
from stormlet.testing.one_task import OneTask
from stormlet.testing.simulation import Simulation
from stormlet.testing.watched_run import WatchedRun

T = TypeVar("T")

LAST_MOMENT = 1.0
"""Real seconds that threads get to end after the test."""


class SimulatedTest:
    """Runs a test and its async fixtures in one task of one loop."""

    def __init__(self, name: str, seed: int) -> None:
        self._runs: list[WatchedRun] = []
        self._task = OneTask(name, seed, self._watch_runs)
        self._threads_before = set(threading.enumerate())

    def run(self, piece: Awaitable[T]) -> T:
        """Run a piece of the test; raises what it raises, with a note of what the topologies know of it."""
        try:
            return self._task.run(piece)
        except asyncio.CancelledError as error:
            for run in self._runs:
                if run.crash is not None:
                    error.add_note(f"cancelled, because {run.crash}")
            raise
        except Deadlock as error:
            for run in self._runs:
                for line in run.unsettled():
                    error.add_note(f"topology {run.name!r}: {line}")
                for explanation in run.stuck():
                    error.add_note(f"topology {run.name!r}: {explanation}")
            raise
        except Livelock as error:
            raise error.knowing(line for run in self._runs for line in run.endless()) from None

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
        """What must not be left behind, once the test and its fixtures are over."""
        in_runs = [leak for run in self._runs for leak in run.leaks]
        return [*in_runs, *(Leak("tasks", f"task {line}") for line in self._task.others())]

    def close(self) -> list[Leak]:
        """Cancel every task and close the loop; return what threads are left."""
        self._task.close()
        return [Leak("threads", f"thread {thread.name}") for thread in self._threads_left()]

    def _watch_runs(self) -> None:
        OBSERVE.set(self._watch)

    def _watch(self) -> WatchedRun:
        run = WatchedRun()
        self._runs.append(run)
        return run

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
