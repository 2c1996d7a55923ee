"""The life of a run: its start, its end, and what a crash does to it (law C1 to C5).

The end, in numbered steps. A *drain* does all of them; a crash, an exception in the body, or a second stop
request goes straight to 4.

1. Every source ends: no more ``next_tuple``, generators are closed, waiting ``running.emit`` calls raise
``TopologyStopping``. 2. The conductor works through what is there, with ``flush`` and ``finish``, upstream
first, until the topology is quiescent. 3. At the deadline all that is left fails with SHUTDOWN, and the
spouts get these outcomes. 4. Every task is cancelled, spouts first, and its ``close`` or ``cleanup`` is called.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from stormlet.core.life import TaskEvent
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.shortened import counted
from stormlet.errors import StartFailed, StrayCancellation, TopologyCrashed
from stormlet.model.configuration import Configuration
from stormlet.model.plan import ACKER
from stormlet.report.failures import log_fields
from stormlet.report.health import RunState
from stormlet.runtime.epochs.keeper import EpochKeeper
from stormlet.runtime.failure_log import FailureLog
from stormlet.runtime.run.block import Block
from stormlet.runtime.run.conductor import Conductor
from stormlet.runtime.run.observers import Observer
from stormlet.runtime.slow_code import wait_for_end
from stormlet.runtime.slow_ends import log_end_of_drain
from stormlet.runtime.task import Task
from stormlet.runtime.tasks import Tasks
from stormlet.runtime.usercode import all_ended

logger = logging.getLogger(__name__)

SHUTDOWN = Failure(FailureKind.SHUTDOWN)
LEAVING = 1.0
"""Seconds that a host gets to leave the block when it is cancelled together with tasks of the topology."""
LAST_OUTCOMES = 1.0
"""Seconds that spouts get at most to take note of what failed at the deadline."""

Background = Callable[[], Iterable[tuple[str, Coroutine[Any, Any, None]]]]
"""Makes the coroutines beside the tasks, each with its name."""


class Lifecycle:
    """Starts the tasks of one run and ends them."""

    def __init__(
        self,
        name: str,
        configuration: Configuration,
        block: Block,
        tasks: Tasks,
        conductor: Conductor,
        background: Background,
        failures: FailureLog,
        observer: Observer | None,
        epochs: EpochKeeper | None = None,
        *,
        active: bool,
    ) -> None:
        self.ended = False
        """True once its tasks have ended, or are about to."""
        self.at_end: list[Callable[[], None]] = []
        """To be called when all tasks have ended."""
        self._name = name
        self._configuration = configuration
        self._block = block
        self._tasks = tasks
        self._conductor = conductor
        self._background = background
        self._failures = failures
        self._observer = observer
        self._epochs = epochs
        self._active = active
        self._loop = asyncio.get_running_loop()
        self._running: dict[asyncio.Task[None], Task] = {}
        self._helpers: list[asyncio.Task[None]] = []
        self._started = False
        self._draining: asyncio.Task[None] | None = None
        self._is_cut_short = False
        self._ending: asyncio.Task[None] | None = None
        block.crash_known.add_done_callback(self._crash_seen)

    @property
    def state(self) -> RunState:
        """The stage of the run."""
        if self._block.crash is not None:
            return RunState.CRASHED
        if self.ended:
            return RunState.STOPPED
        if self._draining is not None:
            return RunState.DRAINING
        if not self._started:
            return RunState.STARTING
        return RunState.RUNNING if self._active else RunState.INACTIVE

    @property
    def stopping(self) -> bool:
        """True once it has been asked to stop."""
        return self._draining is not None

    @property
    def over(self) -> bool:
        """True once it has ended, or has drained and is about to."""
        return self.ended or self._is_cut_short or (self._draining is not None and self._draining.done())

    def closing(self) -> Iterator[str]:
        """The tasks whose ``close`` or ``cleanup`` has not returned."""
        for running, task in self._running.items():
            if task.life.leaving and not running.done() and task.plan.component != ACKER:
                yield task.name

    def restarting(self) -> Iterator[str]:
        """The tasks that have died and are not at work again yet."""
        return (task.name for task in self._running.values() if task.restarting)

    # The start.

    async def start(self) -> None:
        """Ackers, then bolts, then spouts (law C1). Raises :class:`~stormlet.errors.StartFailed` with what
        user code raised."""
        if not self._tasks.ackers:
            logger.warning(
                "topology %r runs with ackers=0: nothing is tracked, and every message counts as acked",
                self._name,
                extra=log_fields(self._name),
            )
        try:
            # From the end of the stream to its source: what a task emits in its first step must find its consumers
            # prepared (law C1).
            self._spawn(self._tasks.ackers)
            self._spawn(self._tasks.all_bolts)
            await self._ready([task.ready for task in self._tasks.all_bolts])
            self._spawn(self._tasks.all_spouts)
            await self._ready([task.ready for task in self._tasks.all_spouts])
            # Last: a conductor that looked before the spouts were open would find a run in which nothing can move.
            self._start_helpers()
            if self._epochs is not None:
                self._epochs.begin()
        except BaseException:
            await self._end()
            raise
        if self._active:
            self.switch(True)
        self._started = True
        self._block.enter()

    def _start_helpers(self) -> None:
        for name, coroutine in self._background():
            helper = self._loop.create_task(coroutine, name=f"{self._name} {name}")
            self._helpers.append(helper)
            helper.add_done_callback(partial(self._helper_ended, name))

    def _helper_ended(self, name: str, helper: asyncio.Task[None]) -> None:
        """A helper works until the end; without it the topology would stand still (law N3)."""
        if self.ended:
            return
        # What it raises is the engine's own fault. A cancellation may have come to the host and all other tasks as
        # well.
        if not helper.cancelled():
            self._block.engine_failed(name, helper.exception())
        elif not self._block.host_leaves():
            self._block.engine_failed(name, StrayCancellation("somebody else has cancelled it"))

    def _task_ended(self, running: asyncio.Task[None]) -> None:
        """A task lives until the end; one that was cancelled together with the host has ended before, if the host then
        leaves (law N3)."""
        if not running.cancelled():
            running.exception()  # it is the crash already, and need not be logged by asyncio, too
        if self._block.host_leaves():
            # Whoever cancels all tasks of a loop together, as asyncio.run does at Ctrl-C, has meant the host. A
            # host that stays in the block all the same is missing a task.
            self._loop.call_later(LEAVING, self._miss, running)
        else:
            self._miss(running)

    def _miss(self, running: asyncio.Task[None]) -> None:
        if not self.ended:
            self._running[running].crash(StrayCancellation("somebody else has cancelled the task"))

    def _spawn(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            running = task.spawn(task.live(), f"{self._name}/{task.name}")
            self._running[running] = task
            running.add_done_callback(self._task_ended)

    async def _ready(self, ready: Sequence[asyncio.Future[None]]) -> None:
        for each in ready:
            await asyncio.wait([each, self._block.crash_known], return_when=asyncio.FIRST_COMPLETED)
            if (crash := self._block.crash) is not None:
                raise StartFailed(self._name, crash.task, crash.what) from crash.__cause__

    def switch(self, active: bool) -> None:
        """Have the spouts asked for tuples, or no longer."""
        self._active = active
        for task in self._tasks.all_spouts:
            # Only a change: a spout that is switched to the same again would be interrupted for it.
            if task.switches.active is not active:
                task.switch(active)

    # The end.

    def stop(self) -> None:
        """Drain; or cancel, if it drains already (law C3)."""
        if self._draining is None:
            self._draining = self._loop.create_task(self._drain(), name=f"{self._name} drain")
            self._draining.add_done_callback(self._drain_ended)
        else:
            # So that it does not pass for a drain that somebody else has cancelled, which would be a crash.
            self._is_cut_short = True
            self._draining.cancel()
            self._abandon()  # the body may wait for a tree
            self._conductor.give_up(
                self._block.crash
            )  # a drain that has not begun yet cannot say that it is over

    def _drain_ended(self, draining: asyncio.Task[None]) -> None:
        # A drain that was cancelled has settled nothing, and would pass for one that has.
        if draining.cancelled() and not self._is_cut_short:
            self._helper_ended("drain", draining)

    async def leave(self, error: BaseException | None) -> None:
        """The body is over: drain, or cancel if it raised; then raise the crash, if there was one (law
        C5)."""
        self._block.leave()
        try:
            # An exception out of the body cancels instead, as it does in a task group: its author does not wait for
            # a drain.
            if error is None and self._block.crash is None:
                await self._drained()
        finally:
            await self._end()
            if self._observer is not None:
                self._observer.ended(drained=error is None and self._has_drained)
        if self._block.crash is not None:
            raise self._block.crash

    @property
    def _has_drained(self) -> bool:
        draining = self._draining
        return (
            self._block.crash is None
            and draining is not None
            and draining.done()
            and not draining.cancelled()
        )

    async def _drained(self) -> None:
        if self._draining is None:
            self.stop()
        assert self._draining is not None
        await asyncio.wait([self._draining, self._block.crash_known], return_when=asyncio.FIRST_COMPLETED)

    async def _drain(self) -> None:
        """Steps 1 to 3 of the end."""
        for task in self._tasks.all_spouts:
            task.stop_source()
        try:
            async with asyncio.timeout(self._configuration.drain_timeout):
                await self._conductor.quiescent()
        except TimeoutError:
            log_end_of_drain(self._name, self._configuration.drain_timeout or 0.0, self._tasks)
            await self._give_up()
        except TopologyCrashed:
            pass  # whoever leaves the block raises it
        except Exception as error:
            self._block.engine_failed("drain", error)
        finally:
            self._conductor.give_up(self._block.crash)

    async def _give_up(self) -> None:
        self._abandon()
        # User code takes note of these failures and may hang in that; the drain is late already.
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_OUTCOMES):
                for task in self._tasks.all_spouts:
                    await task.when_settled()

    def _abandon(self) -> None:
        for acker in self._tasks.ackers:
            acker.fail_all(SHUTDOWN)
        for task in self._tasks.all_spouts:
            task.abandon(SHUTDOWN)

    async def _end(self) -> None:
        """Step 4 of the end, all of it, also if the host is cancelled meanwhile; a second cancellation leaves it
        to end by itself."""
        try:
            await self._until_ended()
        except asyncio.CancelledError:
            await self._until_ended()
            if not self._block.cancelled_by_crash_alone:
                raise  # else the crash came in the midst of a call of the body's own

    async def _until_ended(self) -> None:
        while True:
            # In a task of its own, which a cancellation of the host does not reach: half an end would leave tasks
            # running.
            ending = self._begin_to_end()
            await asyncio.wait([ending])
            if not ending.cancelled():
                return ending.result()

    def _begin_to_end(self) -> asyncio.Task[None]:
        if self._ending is None or self._ending.cancelled():  # by somebody else, before its first step
            self._ending = self._loop.create_task(self._end_tasks(), name=f"{self._name} end")
            self._ending.add_done_callback(self._end_ended)
        return self._ending

    def _end_ended(self, ending: asyncio.Task[None]) -> None:
        # It was cancelled before its first step, as by whoever cancels all tasks of the loop: begin again (law N1).
        if ending.cancelled():
            self._begin_to_end()

    async def _end_tasks(self) -> None:
        """Step 4. Where it raises it is gone through once more, as each part of it goes on where it was: without the
        rest of it messages would be in no count, and trees without an outcome (law N1)."""
        self.ended = True
        try:
            await self._end_all()
        except Exception as error:
            self._block.engine_failed("end", error)
            await self._end_all()

    async def _end_all(self) -> None:
        for task in self._tasks.all_spouts:
            task.stop_source()
        await self._end_helpers()
        # Producers first: a bolt that ends must not be sent more, and the ackers take the last acks of all.
        for tasks in (self._tasks.all_spouts, self._tasks.all_bolts, self._tasks.ackers):
            await self._end_these(tasks)
        self._abandon()
        if self._epochs is not None:
            await self._epochs.close()
        for task in self._tasks.all_spouts:
            task.settle_left_over()
        self._conductor.give_up(self._block.crash)
        # A future that nobody awaits any more would hold its callbacks, and they the run.
        if not self._block.crash_known.done():
            self._block.crash_known.cancel()
        self._report_left_over()
        while self.at_end:
            self.at_end.pop()()
        self._failures.close()

    async def _end_helpers(self) -> None:
        helpers = [*self._helpers, *([] if self._draining is None else [self._draining])]
        for each in helpers:
            each.cancel()
        await all_ended(helpers)

    async def _end_these(self, tasks: Sequence[Task]) -> None:
        running = [each for each, task in self._running.items() if task in tasks]
        for each in running:
            life = self._running[each].life
            # Its cleanup runs already, of its own accord, and must not be cut short (law C3).
            if not life.leaving:
                life.change(TaskEvent.END)
                each.cancel()
        await wait_for_end(self._name, {each: self._running[each].code_in_use for each in running})

    def _crash_seen(self, known: asyncio.Future[None]) -> None:
        if known.cancelled():
            return
        self._conductor.give_up(self._block.crash)
        if self._block.abandoned:
            self._begin_to_end()

    def _report_left_over(self) -> None:
        for name, spouts in self._tasks.spouts.items():
            count = sum(spout.tracker.counts.left_over for spout in spouts)
            if not count:
                continue
            logger.warning(
                "topology %r stopped before %s of %r had an outcome",
                self._name,
                counted(count, "message"),
                name,
                extra=log_fields(self._name, name),
            )
