"""Notices that nothing moves by itself any more, and takes the next step (law B8, C2, S5).

Theory of operation
-------------------
Tasks, concurrent calls and handovers of dead letters count as *activity* while they can still move something. A task
counts from the moment it is woken, not from the moment it runs, so that no message is ever between two tasks and
counted by none.

When the count falls to zero, the last one to end says so, in the middle of its own work. In a busy run that happens
often and means nothing, so all that is done at once is to look if any spout would still emit. If none would, the
conductor's own coroutine is woken. By its turn something may have begun again; then it waits for the next time.
Something may also be in an outbox, and leave in a next turn of the loop; then it looks again after that.

If nothing moves for certain, it takes a survey, and :func:`stormlet.core.progress.next_step` decides on it: have bolts
flush, upstream first; have them finish; let spouts go on that had paused; or declare the run finished. Each bolt task
remembers the progress at which it was asked last, and is not asked again before it has made more: so this comes to an
end. Bolts without a ``finish`` are not asked for it: a survey of all tasks for each of them would take the square of
their number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from stormlet.core.progress import BoltState, EpochState, Step, Survey, next_step
from stormlet.errors import StillHeld
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.epochs.keeper import EpochKeeper
from stormlet.runtime.slices import Activity
from stormlet.runtime.slow_ends import PATIENCE, log_endless_calls
from stormlet.runtime.tasks import Tasks


class Conductor:
    """Acts on every moment in which nothing moves by itself."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        activity: Activity,
        tasks: Tasks,
        order: Sequence[Sequence[str]],
        topology: str = "",
        *,
        finishes: bool = True,
        epochs: EpochKeeper | None = None,
    ) -> None:
        """``order`` has the components upstream first; with ``finishes=False`` bolts are flushed and never finished, as
        more will come later. ``topology`` is its name, if the log is to say what holds up its end; ``epochs`` is there
        where messages belong to epochs."""
        self._loop = loop
        self._activity = activity
        self._tasks = tasks
        self._spouts = tasks.all_spouts
        self._order = order
        self._topology = topology
        self._finishes = finishes
        self._epochs = epochs
        self._bell = asyncio.Event()
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._look_again: asyncio.TimerHandle | None = None
        self._watches_idle = not getattr(loop, "simulated_time", False)
        """True if calls are watched while nothing moves: on simulated time such a timer would hide a deadlock."""
        activity.call_when_quiet(self._wake)

    async def run(self) -> None:
        """Look whenever nothing has moved for a moment."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            # Between the bell and now the loop has run others, one of which may have been woken.
            if self._activity.busy:
                continue
            if _unflushed(self._tasks):
                self._loop.call_soon(self._bell.set)  # what leaves then may wake a task (law S5)
            else:
                self._step()

    async def quiescent(self) -> None:
        """Wait until the topology is quiescent (law S5)."""
        # A future for each: several may wait for the end, and each may be cancelled.
        waiter = self._loop.create_future()
        # By waiter, so that a wait that the host gives up, as by a timeout, leaves nothing behind.
        self._waiting[waiter] = None
        self._bell.set()
        if self._topology and self._look_again is None:
            self._watch_calls(-1)
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)
            if not self._waiting and self._look_again is not None:
                self._look_again.cancel()
                self._look_again = None

    def look(self) -> None:
        """Look at the next turn of the loop, as something has happened that moves no task."""
        self._bell.set()

    def give_up(self, error: BaseException | None) -> None:
        """The topology has ended: nobody waits any longer."""
        for waiter in self._waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
        self._waiting.clear()

    def _watch_calls(self, progress: int) -> None:
        """Look in a while if there was progress since."""
        self._look_again = self._loop.call_later(PATIENCE, self._look_at_calls, progress)

    def _look_at_calls(self, progress: int) -> None:
        self._look_again = None
        spouts, bolts = self._spouts, self._tasks.all_bolts
        now = sum(task.tracker.counts.settled for task in spouts) + sum(task.progress for task in bolts)
        moves = now != progress or any(acker.may_expire for acker in self._tasks.ackers)
        is_over = all(task.ended and not task.tracker.pending for task in spouts)
        if not moves and is_over and any(task.calls() or task.is_asked for task in bolts):
            log_endless_calls(self._topology, self._tasks)
        elif moves or self._watches_idle:
            self._watch_calls(now)

    def _wake(self) -> None:
        # In the middle of a run it is often quiet for a moment; only still spouts make it worth a look.
        if self._epochs is not None:
            self._epochs.quiet()
        for spout in self._spouts:
            if not spout.still:
                return
        self._bell.set()

    def _step(self) -> None:
        tasks = self._tasks
        # The decision is a function of a record, which tests can try without a run; what it needs is looked up at
        # once, so that nothing moves meanwhile.
        survey = _survey(tasks, self._epochs, finishes=self._finishes)
        step, components = next_step(survey, self._order)
        if step is Step.DONE:
            self.give_up(None)
        if step is Step.RESUME:
            _resume(tasks)
        if step is Step.END_EPOCH and self._epochs is not None:
            self._epochs.end()
        for component in components:
            for task in tasks.bolts[component]:
                if step is Step.FINISH and _unfinished(task):
                    # Noted before it is called: a finish that emits to its own bolt must come again.
                    task.finished_after = task.executed
                    task.ask("finish")
                elif step is Step.FLUSH and _flushable(task):
                    # Likewise; one that settles something has made progress, and may do more next time.
                    task.flushed_after = task.progress
                    task.ask("flush")


def _unflushed(tasks: Tasks) -> bool:
    spouts = any(task.outbox.armed for task in tasks.all_spouts)
    return spouts or any(task.outbox.armed for task in tasks.all_bolts)


def _resume(tasks: Tasks) -> None:
    for bolt in tasks.all_bolts:
        if bolt.holds_inputs:  # their trees are over, so that nothing would ever end the wait
            bolt.crash(StillHeld("it still holds inputs, whose trees have failed; settle them there"))
            return
    for spout in tasks.all_spouts:
        if spout.switches.pausing:
            spout.resume()


def _survey(tasks: Tasks, epochs: EpochKeeper | None, *, finishes: bool) -> Survey:
    spouts = tasks.all_spouts
    return Survey(
        spouts_still=all(task.still for task in spouts),
        spouts_ended=all(task.ended for task in spouts),
        replays_waiting=any(len(task.tracker.replays) for task in spouts),
        pending=sum(task.tracker.pending for task in spouts) + (0 if epochs is None else epochs.pending),
        bolts={
            component: BoltState(
                flushable=any(_flushable(task) for task in each),
                unfinished=finishes and any(_unfinished(task) for task in each),
            )
            for component, each in tasks.bolts.items()
        },
        pausing=any(task.switches.pausing and not task.ended for task in spouts),
        epoch=EpochState.NONE if epochs is None else epochs.state,
    )


def _flushable(task: BoltTask) -> bool:
    # A bolt that keeps what it holds is asked once and not for ever: it has made no progress.
    return task.holds_inputs and task.flushed_after < task.progress


def _unfinished(task: BoltTask) -> bool:
    # The one that is to die is no longer the one that has finished: its next instance has to.
    return not task.has_finished or task.dying
