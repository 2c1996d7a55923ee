"""The spout tasks: settle outcomes, ask the source while there is room, flush, sleep.

``next_tuple``, ``ack`` and ``fail`` run one after another in the task's own coroutine (law S1). While an
async source is awaited, what needs no user code goes on beside it; for the rest an async ``next_tuple`` is
cancelled at its await and called again (law S7).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from stormlet.core.ids import IdSource
from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.retries import ReplayPolicy
from stormlet.core.state.redeliveries import Redeliveries
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Lineage
from stormlet.model.components import TaskContext
from stormlet.model.plan import TaskPlan
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.acker.bookkeeper import Verdicts
from stormlet.runtime.acker.task import AckerTask, DeadSpout
from stormlet.runtime.context import Engine
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.occupation import BLOCKED, IDLE, LIMITED
from stormlet.runtime.slices import Pace
from stormlet.runtime.spout.context import Asking, FeedContext, SourceWait
from stormlet.runtime.spout.epoch_tracker import EpochTracker
from stormlet.runtime.spout.feeds import Feed
from stormlet.runtime.spout.hand_overs import HandOvers
from stormlet.runtime.spout.host import HostEmits
from stormlet.runtime.spout.messages import lineage_now
from stormlet.runtime.spout.replays import Replays
from stormlet.runtime.spout.switches import Switches
from stormlet.runtime.spout.traced_messages import TracedMessages
from stormlet.runtime.spout.tracker import OUTCOMES_PER_CHUNK, Tracker
from stormlet.runtime.task import Task
from stormlet.runtime.usercode import as_exception
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet


class SpoutTask(Task):
    """One task of a spout."""

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        context: TaskContext,
        verdicts: Verdicts,
        number: int,
        outbox: Outbox,
        outlets: dict[str, Outlet],
        ackers: Sequence[AckerTask],
        dead_letters: DeadLetters,
        make_feed: Callable[[FeedContext], Feed],
        redeliveries: Redeliveries | None = None,
    ) -> None:
        """``number`` is the index by which open trees name it."""
        super().__init__(plan, engine, context.config, outbox)
        self.context = context
        self.outbox = outbox
        self.outlets = outlets
        self.switches = switches = Switches()
        self.outcomes = verdicts.trees
        """Messages whose outcome is known and not settled yet."""
        verdicts.notify = self._verdicts_came
        self._number = number
        self._ackers = ackers
        self.tracker = self._make_tracker(dead_letters)
        self.host = HostEmits(self.name, self.loop, self.tracker, outbox, switches)
        self.ready: asyncio.Future[None] = engine.loop.create_future()
        """Done when ``open`` has returned."""
        self._pace = Pace()
        self._settling_pace = Pace()
        self._has_slice = False
        """True while its slice goes on: it is not used up, and nothing was awaited in it."""
        self._wait = SourceWait(self.life, self.user, outbox, self.activity)
        self._feed_context = FeedContext(
            topology=engine.plan.description.name,
            plan=plan,
            variables=engine.context,
            life=self.life,
            user=self.user,
            switches=switches,
            tracker=self.tracker,
            outbox=outbox,
            wait=self._wait,
            threads_of_next_instance=self.host.threads_of_next_instance,
            wake=self.wake,
            attend_soon=self.attend_soon,
            last_durable=dict(context.resume),
            redeliveries=redeliveries,
        )
        if redeliveries is not None and isinstance(self.tracker, EpochTracker):
            self.tracker.redeliveries = redeliveries
            redeliveries.join(plan.index, self._ack_again)
        self._switched = False
        self._active_for_user = False
        """The last of ``activate`` and ``deactivate`` that user code was called with."""
        self._opened = False
        self._nap: asyncio.TimerHandle | None = None
        self._settled: asyncio.Future[None] | None = None
        self.feed = make_feed(self._feed_context)

    def _make_tracker(self, dead_letters: DeadLetters) -> Tracker:
        plan, engine, config = self.plan, self.engine, self.context.config
        policy = ReplayPolicy(config.max_attempts, config.replay_delay, config.replay_delay_max)
        random = engine.random(plan, "replays")
        make = Tracker if engine.epoch is None else partial(EpochTracker, engine.epoch)
        return make(
            plan,
            self._number,
            self.outbox,
            self.outlets,
            self.outcomes,
            ids=IdSource(engine.random(plan, "roots")),
            loads=[acker.load for acker in self._ackers],
            most_pending=config.max_spout_pending,
            policy=policy,
            replays=Replays(self.loop, policy, random, self.attend_soon, self.guarded),
            hand_overs=HandOvers(plan, engine, self.user, dead_letters, self._given_up),
            user=self.user,
            log=engine.failures,
            clock=engine.clock,
            observer=engine.observer,
            traced=None if engine.tracing is None else TracedMessages(engine.tracing, plan),
        )

    # Seen by the rest of the topology.

    @property
    def ended(self) -> bool:
        """True if the source can yield no more (law S5)."""
        return self.switches.stopping or self.feed.ended

    @property
    def still(self) -> bool:
        """True if it has ended, or is paused only by ``max_spout_pending``, or until everything is settled (law B8)."""
        return self.ended or self._feed_context.paused

    def attend_soon(self) -> None:
        """Outcomes were appended, or something became due: see to it, even while the source is awaited."""
        if self._wait.asking is Asking.NOTHING:
            self.wake()
        else:
            self.loop.call_soon(self.guarded, self._attend_beside)

    def _verdicts_came(self) -> None:
        """Settle at once what was acked and the host awaits, as no user code runs by that; the rest soon."""
        # Without a turn of this task: for a lone message of the host that would be most of its latency.
        was_full = self.tracker.room <= 0
        try:
            self.tracker.settle_awaited()
            self._look_after_waiters()
        except Exception as error:  # in the name of an acker, which has no part in it
            self.engine.failed(self.plan, error)
        if self.outcomes or was_full:  # it may rest until there is room, and nothing else would wake it
            self.attend_soon()

    def _ack_again(self, message_id: object, value: object) -> None:
        if isinstance(self.tracker, EpochTracker):
            self.tracker.ack_again(message_id, value)
            self.attend_soon()

    def _given_up(self, outcome: OpenTree) -> None:
        self.outcomes.append(outcome)
        self.attend_soon()

    def _look_after_waiters(self) -> None:
        """Messages may have been settled for good: the host waits for room, a pause or the end for all of them."""
        if not self.tracker.pending:
            if self.switches.pausing_for_own:
                self.resume()
            if self._settled is not None and not self._settled.done():
                self._settled.set_result(None)
        self.host.look_again()

    def switch(self, active: bool) -> None:
        """Activate or deactivate (law C1)."""
        self.switches.active = active
        self._switched = True
        self._interrupt_or_wake()

    def resume(self) -> None:
        """Everything is settled that it has paused for."""
        self.switches.resume()
        self.wake()

    def room_came(self) -> None:
        """Another epoch has begun, which takes messages."""
        self._look_after_waiters()
        self.wake()

    def stop_source(self) -> None:
        """Drain: the source ends now (law C3)."""
        self.switches.stopping = True
        self._look_after_waiters()
        self._interrupt_or_wake()

    def abandon(self, failure: Failure) -> None:
        """Fail what waits for a replay (law C3)."""
        self.tracker.abandon(failure)
        self.attend_soon()

    async def when_settled(self) -> None:
        """Wait until every message of this task is settled."""
        if self.tracker.pending:
            self._settled = self.loop.create_future()
            await self._settled

    def statistics(self) -> TaskStatistics:
        """Counts since the start."""
        counts = msgspec.structs.replace(self.tracker.statistics(), restarts=self.restarts.count)
        return self.with_shares(counts)

    def lineage(self, origin: object = None, attempt: int = 1) -> Lineage:
        """The lineage that a message emitted now hands down."""
        return lineage_now(self.engine.context, origin, attempt)

    # The life of the task.

    def flush_outbox(self) -> None:
        self.outbox.leave()

    async def start(self) -> None:
        self.user.method = "open"
        await self._open(self.context)
        self.ready.set_result(None)

    async def run(self) -> None:
        while True:
            self.life.check_cancelled()
            await self._step()

    async def _step(self) -> None:
        """Do the most urgent thing there is."""
        if self.tracker.has_work():
            await self._attend()
        elif self._switched:
            self._switched = False
            await self._call_switch()
        elif self.switches.stopping and not self.feed.ended:
            self.user.method = "drain" if self.feed.dies else "close"
            await self._calling(self.feed.end)
        elif self.feed.ended or self.feed.passive or not self.switches.active or self.switches.pausing:
            await self._rest()
        elif self._feed_context.paused:
            await self._rest(LIMITED if self.tracker.is_limited else IDLE)
        elif (full := self.outbox.full_consumer()) is not None:
            full.call_when_room(self.attend_soon)
            with self.outbox.waiting_for(full):
                await self._rest(BLOCKED)
        else:
            await self._ask()

    async def _call_switch(self) -> None:
        active = self.switches.active
        if active is not self._active_for_user:  # it may have been switched there and back
            self._active_for_user = active
            self.user.method = "activate" if active else "deactivate"
            await self._calling(partial(self.feed.switch, active))

    async def _attend(self) -> None:
        if not self._has_slice:
            await self._begin_slice()
        before = self.tracker.counts.settled
        pause = self._settle(self._settling_pace.chunk)
        if pause is not None:
            self._has_slice = False
            await pause
        if self._is_spent(self._settling_pace, self.tracker.counts.settled - before):
            await self._next_slice()

    def _settle(self, most: int) -> Awaitable[None] | None:
        """Settle outcomes, and emit replays that are due. A user's async ``ack`` or ``fail`` must be awaited before
        the next call."""
        try:
            pause = self.feed.settle(most)
        finally:
            self._look_after_waiters()
        if pause is None:
            self.tracker.replay()
        return pause

    async def _ask(self) -> None:
        """Ask the feed for a chunk of tuples."""
        tracker, feed = self.tracker, self.feed
        if not self._has_slice:
            await self._begin_slice()
            if self.ended or not self.switches.active or not self._feed_context.may_ask or tracker.has_work():
                return  # it changed while this task waited for its turn
        elif not self.outbox.has_room:
            return
        before, settled = tracker.emitted, tracker.counts.settled
        self.user.method = "next_tuple"
        self.switches.woken = False
        feed.nap = 0.0
        try:
            pause = feed.ask(min(self._pace.chunk, tracker.room))
        finally:
            if tracker.counts.settled != settled:  # outcomes that were known at once (law L17)
                self._look_after_waiters()
        if pause is not None:
            self._has_slice = False
            await pause
        if feed.nap:
            self._nap = self.loop.call_later(feed.nap, self.guarded, self.wake)
            await self._rest()
        elif self._is_spent(self._pace, tracker.emitted - before):
            await self._next_slice()

    async def _begin_slice(self) -> None:
        self._has_slice = self.slices.begin()
        if self._has_slice:
            self.outbox.enter()
        else:
            await self._next_slice()

    async def _next_slice(self) -> None:
        self._has_slice = False
        self.outbox.leave()
        await self.slices.turn()
        self._has_slice = True
        self.outbox.enter()

    def _is_spent(self, pace: Pace, done: int) -> bool:
        return self.slices.spent(pace, max(1, done))

    async def _rest(self, doing: int = IDLE) -> None:
        self._has_slice = False
        self.outbox.leave()
        if not self.tracker.has_work():
            self._attend_when_room()
            self.occupation.switch(doing)
            try:
                await self.sleep()
            finally:
                self.occupation.switch(IDLE)
        self._stop_nap()

    # While the source is awaited.

    def _attend_beside(self) -> None:
        asking = self._wait.asking
        if asking is Asking.NOTHING:
            self.wake()
        elif asking is Asking.NEXT_TUPLE and self.tracker.has_outcomes and self.feed.hears_outcomes:
            self._wait.interrupt()
        else:
            try:
                self._settle(OUTCOMES_PER_CHUNK)
            except (Exception, asyncio.CancelledError) as error:
                self.die(as_exception(error))
            self._attend_when_room()
            if self.tracker.has_outcomes:
                self.attend_soon()

    def _attend_when_room(self) -> None:
        # Replays that are due may wait for room in a queue that the tuples of others keep full.
        if not self.outbox.has_room:
            # One is enough: when it has room, the others are looked at again.
            self.outbox.crowded[0].call_when_room(self.attend_soon)

    def _interrupt_or_wake(self) -> None:
        asking = self._wait.asking
        if asking is Asking.NOTHING or (asking is Asking.GENERATOR and not self.switches.stopping):
            self.wake()
        elif asyncio.current_task(self.loop) is self.coroutine:
            # Its own code asks for it, and is not at an await.
            self.loop.call_soon(self.guarded, self._interrupt_if_switched)
        else:
            self._wait.interrupt()

    def _interrupt_if_switched(self) -> None:
        if self._switched or self.switches.stopping:
            self._interrupt_or_wake()

    async def _calling(self, method: Callable[[], Awaitable[None] | None]) -> None:
        """Call user code, of which the task may die."""
        try:
            await self._user(method())
        except Exception as error:
            self.user.raised(error)
            raise

    async def _user(self, result: Awaitable[None] | None) -> None:
        if result is not None:
            self._has_slice = False
            await self._wait.for_user_code(result)

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
        """Fail what the instance knows by message id (law L14); what the engine keeps goes on."""
        self._stop_nap()
        self._has_slice = False
        self.outbox.leave()
        if self.feed.dies:
            failure = Failure(FailureKind.TASK_LOST, reason=f"{self.name} died", exception=error)
            for acker in self._ackers:
                acker.fail_of_soon(DeadSpout(self._number, failure))

    async def let_go(self) -> None:
        if self.feed.dies:
            await self._close()

    async def renew(self) -> None:
        self.user.method = "the constructor"
        old, feed = self.feed, self.feed.renewed()
        if feed is old:
            return
        self.feed = feed
        # What is emitted and not durable is the engine's to emit again: the new instance goes on after it (law X8).
        context = replace(self.context, resume=old.position_now(self.tracker.kept_messages))
        self.switches.pausing = False
        self.user.method = "open"
        await self._open(context)
        # The new instance has not been activated yet.
        self._active_for_user = False
        self._switched = self.switches.active

    async def _open(self, context: TaskContext) -> None:
        try:
            await self._user(self.feed.open(context))
        except BaseException:
            self.feed.refuse_threads()  # no close follows
            raise
        self._opened = True

    async def stop(self) -> None:
        self._stop_nap()
        self.outbox.leave()
        self.user.method = "dead_letters"
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
        self.user.method = "close"
        try:
            await self._user(self.feed.close())
        except asyncio.CancelledError as error:
            self._close_failed(self.life.survived(error))
        except Exception as error:
            self._close_failed(error)
        finally:
            self.outbox.leave()

    def _close_failed(self, error: Exception) -> None:
        self.engine.failures.raised(self.plan, "close", error)
        if self.life.leaving and self.feed.resumes:  # the next run would not know how far this one has come
            self.crash(error)
