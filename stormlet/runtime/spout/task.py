"""The spout tasks: settle outcomes, ask the source while there is room, flush, sleep.

``next_tuple``, ``ack`` and ``fail`` run one after another in the task's own coroutine (law S1). While an
async source is awaited, what needs no user code goes on beside it; for the rest an async ``next_tuple`` is
cancelled at its await and called again (law S7).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from stormlet.core.ids import IdSource
from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.tuples import Lineage
from stormlet.errors import TopologyStopping
from stormlet.model.components import TaskContext
from stormlet.model.plan import TaskPlan
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.acker.task import AckerTask
from stormlet.runtime.context import Engine
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.slices import Pace
from stormlet.runtime.spout.feed import Asking, Feed, SourceWait
from stormlet.runtime.spout.host import HostEmits
from stormlet.runtime.spout.messages import lineage_now
from stormlet.runtime.spout.tracker import Tracker
from stormlet.runtime.task import Task
from stormlet.runtime.usercode import as_exception
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet


class SpoutTask(Task):
    """One task of a spout."""

    feed: Feed
    """Set before the task starts."""

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        context: TaskContext,
        outcomes: deque[OpenTree],
        number: int,
        outbox: Outbox,
        ids: IdSource,
        ackers: Sequence[AckerTask],
        dead_letters: DeadLetters,
    ) -> None:
        super().__init__(plan, engine, context.config)
        self.context = context
        self.outbox = outbox
        self.outlets: dict[str, Outlet] = {}
        self.active = False
        self.stopping = False
        self.pausing = False
        """True while it emits nothing more until everything is settled."""
        self._pausing_for_own = False
        self.woken = False
        """True if the user has asked for ``next_tuple`` since it was last called (law S4)."""
        self.tracker = Tracker(self, outcomes, number, ids, ackers, dead_letters, context.config)
        self.host = HostEmits(self, self.tracker)
        self.ready: asyncio.Future[None] = engine.loop.create_future()
        """Done when ``open`` has returned."""
        self._pace = Pace()
        self._told_pace = Pace()
        self._has_slice = False
        """True while its slice goes on: it is not used up, and nothing was awaited in it."""
        self._source_wait = SourceWait(self, outbox)
        self.from_source = self._source_wait.from_source
        self._switched = False
        self._told_active: bool = False
        self._opened = False
        self._nap: asyncio.TimerHandle | None = None

    # What the rest of the topology asks and says.

    @property
    def outcomes(self) -> deque[OpenTree]:
        """The queue to which ackers append verdicts."""
        return self.tracker.outcomes

    @property
    def ended(self) -> bool:
        """True if the source can yield no more (law S5)."""
        return self.stopping or self.feed.ended

    @property
    def still(self) -> bool:
        """True if it has ended, or is paused only by ``max_spout_pending``, or until everything is settled (law B8)."""
        return self.ended or self._paused

    @property
    def _paused(self) -> bool:
        return self.pausing or self.tracker.room <= 0

    @property
    def may_ask(self) -> bool:
        """True if there is room for another message, here and in every queue that it may reach (law S3)."""
        outbox = self.outbox
        return not self._paused and outbox.has_room and outbox.full_consumer() is None

    def attend_soon(self) -> None:
        """Outcomes were appended, or something became due: see to it, even while the source is awaited."""
        if self._source_wait.asking is Asking.NOTHING:
            self.wake()
        else:
            self.loop.call_soon(self.guarded, self._attend_beside)

    def take_verdicts(self) -> None:
        """Verdicts were appended to the outcomes: what the host awaits hears them at once, as no user code runs by
        that; the rest is attended to soon."""
        tracker = self.tracker
        try:
            tracker.settle_awaited()
        except Exception as error:  # in the name of an acker, which has no part in it
            self.engine.failed(self.plan, error)
        if tracker.outcomes:
            self.attend_soon()

    def released(self) -> None:
        """A message was settled for good: the host or a pause may have waited for that."""
        if self._pausing_for_own and not self.tracker.pending:
            self.resume()
        self.host.look_again()

    def switch(self, active: bool) -> None:
        """Activate or deactivate (law C1)."""
        self.active = active
        self._switched = True
        self._interrupt_or_wake()

    def pause(self, *, own: bool) -> None:
        """Ask for no more tuples until everything is settled, or until its ``own`` messages are."""
        self.pausing, self._pausing_for_own = True, own
        if own and not self.tracker.pending:
            self.resume()

    def resume(self) -> None:
        """Everything is settled that it has paused for."""
        self.pausing = self._pausing_for_own = False
        self.wake()

    def stop_source(self) -> None:
        """Drain: the source ends now (law C3)."""
        self.stopping = True
        self.released()
        self._interrupt_or_wake()

    def statistics(self) -> TaskStatistics:
        """Counts since the start."""
        return msgspec.structs.replace(self.tracker.statistics(), restarts=self.restarts.count)

    def lineage(self, origin: object = None, attempt: int = 1) -> Lineage:
        """The lineage that a message emitted now hands down."""
        return lineage_now(self.engine.context, origin, attempt)

    # The life of the task.

    def flush_outbox(self) -> None:
        self.outbox.leave()

    async def start(self) -> None:
        self.doing = "open"
        await self._user(self.feed.open(self.context))
        self._opened = True
        self.ready.set_result(None)

    async def run(self) -> None:
        while True:
            self.check_cancelled()
            await self._step()

    async def _step(self) -> None:
        """Do the most urgent thing there is."""
        if self.tracker.has_work:
            await self._attend()
        elif self._switched:
            self._switched = False
            await self._tell_switch()
        elif self.stopping and not self.feed.ended:
            self.doing = "close"
            await self._calling(self.feed.end)
        elif self.feed.ended or self.feed.passive or not self.active or self._paused:
            await self._rest()
        elif (full := self.outbox.full_consumer()) is not None:
            full.call_when_room(self.attend_soon)
            await self._rest()
        else:
            await self._ask()

    async def _tell_switch(self) -> None:
        if self.active is not self._told_active:  # it may have been switched there and back
            self._told_active = self.active
            self.doing = "activate" if self.active else "deactivate"
            await self._calling(partial(self.feed.switch, self.active))

    async def _attend(self) -> None:
        await self._begin_slice()
        before = self.tracker.counts.settled
        pause = self.tracker.attend(self.feed.settle, self._told_pace.chunk)
        if pause is not None:
            await self.told_outcome(pause)
        await self._end_chunk(self._told_pace, max(1, self.tracker.counts.settled - before))

    async def told_outcome(self, pause: Awaitable[None]) -> None:
        """Await a user's ``ack`` or ``fail``."""
        try:
            await self._user(pause)
        except TopologyStopping as error:
            if not self.stopping:
                self.blame(error)
                raise
        except Exception as error:
            self.blame(error)
            raise

    async def _ask(self) -> None:
        """Ask the feed for a chunk of tuples."""
        await self._begin_slice()
        if self.stopping or not self.active or not self.may_ask or self.tracker.has_work:
            return  # it changed while this task waited for its turn
        tracker = self.tracker
        before = tracker.emitted
        self.doing = "next_tuple"
        self.woken = False
        pause = self.feed.ask(min(self._pace.chunk, tracker.room))
        if pause is not None:
            self._has_slice = False
            await pause
        if self._nap is not None:
            await self._rest()
        else:
            await self._end_chunk(self._pace, max(1, tracker.emitted - before))

    async def _begin_slice(self) -> None:
        if not self._has_slice:
            self._has_slice = self.slices.begin()
        if not self._has_slice:
            await self._next_slice()
        self.outbox.enter()

    async def _next_slice(self) -> None:
        self._has_slice = False
        self.outbox.leave()
        await self.slices.turn()
        self._has_slice = True

    async def _end_chunk(self, pace: Pace, done: int) -> None:
        if self.slices.spent(pace, done):
            await self._next_slice()

    async def _rest(self) -> None:
        self._has_slice = False
        self.outbox.leave()
        if not self.tracker.has_work:
            self._attend_when_room()
            await self.sleep()
        self._stop_nap()

    def nap(self, seconds: float) -> None:
        """The source has nothing now: ask it again after so long, or when woken (law S4)."""
        self._nap = self.loop.call_later(seconds, self.guarded, self.wake)

    # While the source is awaited.

    def _attend_beside(self) -> None:
        if self._source_wait.asking is Asking.NOTHING:
            self.wake()
        elif self._source_wait.asking is Asking.NEXT_TUPLE and self.tracker.outcomes and self.feed.settle:
            self._source_wait.interrupt()
        else:
            try:
                self.tracker.attend(self.feed.settle)
            except (Exception, asyncio.CancelledError) as error:
                self.die(as_exception(error))
            self._attend_when_room()
            if self.tracker.outcomes:
                self.attend_soon()

    def _attend_when_room(self) -> None:
        # Replays that are due may wait for room in a queue that the tuples of others keep full.
        if not self.outbox.has_room:
            self.outbox.crowded[0].call_when_room(self.attend_soon)

    def _interrupt_or_wake(self) -> None:
        asking = self._source_wait.asking
        if asking is Asking.NOTHING or (asking is Asking.GENERATOR and not self.stopping):
            self.wake()
        elif (
            asyncio.current_task(self.loop) is self.coroutine
        ):  # its own code asks for it, and is not at an await
            self.loop.call_soon(self.guarded, self._interrupt_if_switched)
        else:
            self._source_wait.interrupt()

    def _interrupt_if_switched(self) -> None:
        if self._switched or self.stopping:
            self._interrupt_or_wake()

    async def _calling(self, method: Callable[[], Awaitable[None] | None]) -> None:
        """Call user code, of which the task may die."""
        try:
            await self._user(method())
        except Exception as error:
            self.blame(error)
            raise

    async def _user(self, result: Awaitable[None] | None) -> None:
        if result is not None:
            self._has_slice = False
            self.outbox.suspend()
            try:
                await self.checked(result)
            finally:
                self.outbox.enter()

    @property
    def may_restart(self) -> bool:
        return self.feed.restartable

    @property
    def way_out(self) -> str:
        return self.feed.way_out

    @property
    def survives_kills(self) -> bool:
        return self.may_restart and self.feed.survives_kills

    def lose(self, error: Exception) -> None:
        """Have what the instance knows by message id fail; what the engine keeps goes on."""
        self._stop_nap()
        self._has_slice = False
        self.outbox.leave()
        if self.feed.dies:
            self.tracker.lose(Failure(FailureKind.TASK_LOST, reason=f"{self.name} died", exception=error))

    async def let_go(self) -> None:
        if self.feed.dies:
            await self._close()

    async def renew(self) -> None:
        self.doing = "the constructor"
        feed = self.feed.renewed()
        if feed is self.feed:
            return
        self.feed = feed
        self.pausing = False
        self.doing = "open"
        await self._user(feed.open(self.context))
        self._opened = True
        self._told_active = False
        self._switched = self.active

    async def stop(self) -> None:
        self._stop_nap()
        self.outbox.leave()
        self.doing = "dead_letters"
        try:
            await self.tracker.close()
        finally:
            await self._close()

    def settle_left_over(self) -> None:
        """It has ended: count what has no outcome (law N1)."""
        self.tracker.settle_left_over(self.feed.unsent)

    def _stop_nap(self) -> None:
        if self._nap is not None:
            self._nap.cancel()
            self._nap = None

    async def _close(self) -> None:
        if not self._opened:
            return
        self._opened = False
        self.doing = "close"
        try:
            await self._user(self.feed.close())
        except asyncio.CancelledError as error:
            self._close_failed(self.survived(error))
        except Exception as error:
            self._close_failed(error)
        finally:
            self.outbox.leave()

    def _close_failed(self, error: Exception) -> None:
        self.engine.failures.raised(self.plan, "close", error)
        if self.leaving and self.feed.resumes:  # the next run would not know how far this one has come
            self.crashed(error)
