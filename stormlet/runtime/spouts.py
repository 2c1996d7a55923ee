"""The spout tasks: ask the feed while there is room, track what it emits, and settle the outcomes.

A spout has two kinds of messages. Those of a ``Spout`` class are known by their message id alone and get ``ack`` or ``fail`` (law S1).
Those of generators, iterables and the host are kept as a ``Message`` and replayed by the engine (law S6, C4).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Sequence
from contextvars import Context, copy_context
from enum import Enum
from heapq import heappop, heappush
from operator import itemgetter
from typing import Protocol, TypeVar

from stormlet.core.components import TaskContext
from stormlet.core.ids import IdSource, shard_of
from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.core.plan import TaskPlan
from stormlet.core.replay import ReplayPolicy
from stormlet.core.statistics import TaskStatistics
from stormlet.core.tuples import PLAIN, Lineage
from stormlet.errors import TopologyStopping
from stormlet.runtime.ackers import AckerTask
from stormlet.runtime.collectors import undeclared
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.engine import Engine
from stormlet.runtime.messages import HostTree, Message
from stormlet.runtime.outbox import Outbox
from stormlet.runtime.outlets import Outlet
from stormlet.runtime.slices import Pace
from stormlet.runtime.task import Task

R = TypeVar("R")

logger = logging.getLogger(__name__)

OVERFLOW = Failure(FailureKind.OVERFLOW)
MANY = 1 << 60
OUTCOMES_PER_CHUNK = 256

class Asking(Enum):
    """What the spout task is suspended in, if it waits for its source."""

    NOTHING = 0
    NEXT_TUPLE = 1
    """An async ``next_tuple``: cancelled when an outcome must be delivered (law S7)."""
    GENERATOR = 2
    """An async generator: cancelled only at drain (law S7)."""


class Feed(Protocol):
    """Where a spout task gets its tuples from."""

    @property
    def ended(self) -> bool:
        """Whether there will be no more."""
        ...

    @property
    def passive(self) -> bool:
        """Whether it never yields by itself: the host feeds the spout."""
        ...

    def open(self, context: TaskContext) -> Awaitable[None] | None:
        """Before anything else."""
        ...

    def switch(self, active: bool) -> Awaitable[None] | None:
        """The topology was activated or deactivated."""
        ...

    def ask(self, most: int) -> Awaitable[None] | None:
        """Emit at most so many tuples, or fewer; an awaitable must be awaited before the next call."""
        ...

    def settle(self, message_id: object, failure: Failure | None) -> Awaitable[None] | None:
        """The outcome of a message of a ``Spout`` class."""
        ...

    def hears_outcomes(self) -> bool:
        """Whether user code wants to know of outcomes."""
        ...

    def end(self) -> Awaitable[None] | None:
        """There shall be no more tuples: the topology drains."""
        ...

    def close(self) -> Awaitable[None] | None:
        """After everything else."""
        ...


class SpoutTask(Task):
    """One task of a spout."""

    feed: Feed
    """Set before the task starts."""

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        context: TaskContext,
        number: int,
        outbox: Outbox,
        outlets: dict[str, Outlet],
        ids: IdSource,
        ackers: Sequence[AckerTask],
        dead_letters: DeadLetters,
        replay_policy: ReplayPolicy,
    ) -> None:
        super().__init__(plan, engine)
        self.context = context
        self.outbox = outbox
        self.outlets = outlets
        self.outcomes: deque[tuple[object, Failure | None]] = deque()
        """Messages whose outcome is known and that were not told yet, each with its failure or None."""
        self.pending = 0
        """Messages without a final outcome (law S3)."""
        self.active = False
        self.stopping = False
        self.emitted = 0
        """How many emits there were, to tell an idle ``next_tuple``."""
        self.ready: asyncio.Future[None] = engine.loop.create_future()
        """Done when ``open`` has returned."""
        self._number = number
        self._next_id = ids.next_id
        self._ackers = ackers
        self._dead_letters = dead_letters
        self._policy = replay_policy
        self._random = engine.random(plan, "replays")
        self._most_pending = context.config.max_spout_pending
        self._pace = Pace()
        self._asking = Asking.NOTHING
        self._interrupted = False
        self._switched = False
        self._own_task: asyncio.Task[None] | None = None
        self._nap: asyncio.TimerHandle | None = None
        self._host_turn = asyncio.Lock()
        self._host: asyncio.Future[None] | None = None
        self._quiet: asyncio.Future[None] | None = None
        self._burying: dict[asyncio.Task[None], None] = {}
        self._replays: list[tuple[float, int, Message]] = []
        self._due: deque[Message] = deque()
        self._replay_timer: asyncio.TimerHandle | None = None
        self._counts = _Counts()

    # What the rest of the topology asks and says.

    @property
    def ended(self) -> bool:
        """Whether the source can yield no more (law S5)."""
        return self.stopping or self.feed.ended

    @property
    def room(self) -> int:
        """How many more messages may be pending (law S3)."""
        return MANY if self._most_pending is None else self._most_pending - self.pending

    @property
    def still(self) -> bool:
        """Whether it has ended, or is paused only by ``max_spout_pending`` (law B8)."""
        return self.ended or self.room <= 0

    @property
    def replays_waiting(self) -> bool:
        """Whether messages wait to be emitted again."""
        return bool(self._replays or self._due)

    @property
    def quiet(self) -> bool:
        """Whether nothing is left to do for any message of this task (law S5)."""
        return self.ended and not self.pending and not self.outcomes

    def attend_soon(self) -> None:
        """Outcomes were appended, or something became due: see to it, even while the source is awaited."""
        if self._asking is Asking.NOTHING:
            self.wake()
        else:
            self.loop.call_soon(self._attend_beside)

    def switch(self, active: bool) -> Awaitable[None] | None:
        """The topology was activated or deactivated."""
        ...

    def ask(self, most: int) -> Awaitable[None] | None:
        """Emit at most so many tuples, or fewer; an awaitable must be awaited before the next call."""
        ...

    def settle(self, message_id: object, failure: Failure | None) -> Awaitable[None] | None:
        """The outcome of a message of a ``Spout`` class."""
        ...

    def hears_outcomes(self) -> bool:
        """Whether user code wants to know of outcomes."""
        ...

    def end(self) -> Awaitable[None] | None:
        """There shall be no more tuples: the topology drains."""
        ...

    def close(self) -> Awaitable[None] | None:
        """After everything else."""
        ...


class SpoutTask(Task):
    """One task of a spout."""

    feed: Feed
    """Set before the task starts."""

    def __init__(
        self,
        plan: TaskPlan,
        engine: Engine,
        context: TaskContext,
        number: int,
        outbox: Outbox,
        outlets: dict[str, Outlet],
        ids: IdSource,
        ackers: Sequence[AckerTask],
        dead_letters: DeadLetters,
        replay_policy: ReplayPolicy,
    ) -> None:
        super().__init__(plan, engine)
        self.context = context
        self.outbox = outbox
        self.outlets = outlets
        self.outcomes: deque[tuple[object, Failure | None]] = deque()
        """Messages whose outcome is known and that were not told yet, each with its failure or None."""
        self.pending = 0
        """Messages without a final outcome (law S3)."""
        self.active = False
        self.stopping = False
        self.emitted = 0
        """How many emits there were, to tell an idle ``next_tuple``."""
        self.ready: asyncio.Future[None] = engine.loop.create_future()
        """Done when ``open`` has returned."""
        self._number = number
        self._next_id = ids.next_id
        self._ackers = ackers
        self._dead_letters = dead_letters
        self._policy = replay_policy
        self._random = engine.random(plan, "replays")
        self._most_pending = context.config.max_spout_pending
        self._pace = Pace()
        self._asking = Asking.NOTHING
        self._interrupted = False
        self._switched = False
        self._own_task: asyncio.Task[None] | None = None
        self._nap: asyncio.TimerHandle | None = None
        self._host_turn = asyncio.Lock()
        self._host: asyncio.Future[None] | None = None
        self._quiet: asyncio.Future[None] | None = None
        self._burying: dict[asyncio.Task[None], None] = {}
        self._replays: list[tuple[float, int, Message]] = []
        self._due: deque[Message] = deque()
        self._replay_timer: asyncio.TimerHandle | None = None
        self._counts = _Counts()

    # What the rest of the topology asks and says.

    @property
    def ended(self) -> bool:
        """Whether the source can yield no more (law S5)."""
        return self.stopping or self.feed.ended

    @property
    def room(self) -> int:
        """How many more messages may be pending (law S3)."""
        return MANY if self._most_pending is None else self._most_pending - self.pending

    @property
    def still(self) -> bool:
        """Whether it has ended, or is paused only by ``max_spout_pending`` (law B8)."""
        return self.ended or self.room <= 0

    @property
    def replays_waiting(self) -> bool:
        """Whether messages wait to be emitted again."""
        return bool(self._replays or self._due)

    @property
    def quiet(self) -> bool:
        """Whether nothing is left to do for any message of this task (law S5)."""
        return self.ended and not self.pending and not self.outcomes

    def attend_soon(self) -> None:
        """Outcomes were appended, or something became due: see to it, even while the source is awaited."""
        if self._asking is Asking.NOTHING:
            self.wake()
        elif self._asking is Asking.NEXT_TUPLE and (self.acked or self.failed) and self.feed.hears_outcomes():
            self._interrupt()
        else:
            self.loop.call_soon(self._attend_beside)

    def switch(self, active: bool) -> None:
        """Activate or deactivate (law C1)."""
        self.active = active
        self._switched = True
        self._interrupt_or_wake()

    def stop_source(self) -> None:
        """Drain: the source ends now (law C3)."""
        self.stopping = True
        self._let_host_in()
        self._interrupt_or_wake()

    def statistics(self) -> TaskStatistics:
        """Counts since the start."""
        counts = self._counts
        return TaskStatistics(
            emitted=sum(outlet.emitted for outlet in self.outlets.values()),
            transferred=sum(outlet.transferred for outlet in self.outlets.values()),
            acked=counts.acked,
            failed=counts.failed,
            pending=self.pending,
            replayed=counts.replayed,
            dead_letters=counts.dead_letters,
            left_over=counts.left_over,
        )

    # Emitting.

    def emit(
        self, value: object, message_id: object, stream: str, task: int | None, origin: object, context: Context | None
    ) -> tuple[int, ...]:
        """An emit of a ``Spout`` class."""
        outlet = self._outlet(stream, task)
        lineage = PLAIN if origin is None and context is None else Lineage(1, origin, context)
        self.emitted += 1
        if message_id is None:
            outlet.deliver(value, 0, lineage)
        else:
            self._track(outlet, value, lineage, message_id)
            self.pending += 1
        if not self.outbox.armed:
            self.outbox.arm()
        return outlet.reached

    def emit_message(self, message: Message) -> None:
        """The first emit of a message that the engine keeps."""
        self.emitted += 1
        self._send(message)
        self.pending += 1

    def emit_for_host(self, message: Message) -> None:
        """``running.emit``."""
        self.emit_message(message)
        if self.outcomes:
            self.attend_soon()

    async def room_for_host(self) -> None:
        """Wait until the host may emit, in the order of asking; raises :class:`TopologyStopping` when the topology drains (law C4)."""
        async with self._host_turn:
            while not self.stopping and (self.room <= 0 or not self.outbox.has_room):
                self._host = self.loop.create_future()
                if self.outbox.crowded:
                    self.outbox.flush()
                    self.outbox.crowded[0].call_when_room(self._let_host_in)
                await self._host
            if self.stopping:
                raise TopologyStopping("the topology is draining or stopped and takes no new messages")

    def own_context(self) -> Context | None:
        """The context variables that a tuple emitted now carries along, or None if they are the topology's (law B10)."""
        context = copy_context()
        return None if context == self.engine.context else context

    def _send(self, message: Message) -> None:
        self._track(self._outlet(message.stream, message.task), message.value, message.lineage(), message)
        if not self.outbox.armed:
            self.outbox.arm()

    def _track(self, outlet: Outlet, value: object, lineage: Lineage, message: object) -> None:
        """Deliver as the root of a new tree. Outcomes that are known at once wait in ``acked`` and ``failed`` (law L17)."""
        if not self._ackers:
            outlet.deliver(value, 0, lineage)
            self.outcomes.append((message, None))  # law L9
            return
        root = self._next_id()
        acker = self._ackers[shard_of(root, len(self._ackers))]
        if acker.full:
            outlet.reached = ()
            self.outcomes.append((message, OVERFLOW))  # law L13
            return
        if type(message) is Message and message.tree is not None:
            self._collect(message, message.tree, root)
        checksum = outlet.deliver(value, root, lineage)
        if outlet.reached:
            self.outbox.inits[root] = OpenTree(checksum, self._number, message)
            acker.load += 1
        else:
            self.outcomes.append((message, None))  # law L11

    def _collect(self, message: Message, wanted: HostTree, root: int) -> None:
        if wanted.collects:
            self.engine.collected.pop(message.root, None)
            wanted.tree.values = []
            self.engine.collected[root] = wanted.tree.values
            message.root = root

    def _outlet(self, stream: str, task: int | None) -> Outlet:
        outlet = self.outlets.get(stream)
        if outlet is None:
            raise undeclared(self.outlets, stream, self.plan)
        return outlet if task is None else outlet.at(task)

    # Settling.

    def _attend(self) -> Awaitable[None] | None:
        """Settle outcomes that wait and emit replays that are due. A user's async ``ack`` or ``fail`` must be awaited before the next
        call. What user code emits meanwhile is left for the next call, so that it cannot go on for ever."""
        for _ in range(min(len(self.outcomes), OUTCOMES_PER_CHUNK)):
            message, failure = self.outcomes.popleft()
            if failure is None:
                self._counts.acked += 1
            else:
                self._counts.failed += 1
            if type(message) is Message:
                self._settle(message, failure)
            else:
                pause = self._tell(message, failure)
                if pause is not None:
                    return pause
        while self._due and self.outbox.has_room:
            self._counts.replayed += 1
            self._send(self._due.popleft())
        return None

    def _attend_beside(self) -> None:
        """The same while the source is awaited: what needs no user code is done here; for the rest an async ``next_tuple`` is
        cancelled at its await (law S7)."""
        if self._asking is Asking.NEXT_TUPLE and self.outcomes and self.feed.hears_outcomes():
            self._interrupt()
        elif self._asking is not Asking.NOTHING:
            try:
                self._attend()
            except Exception as error:
                self.engine.crashed(self, error)
            if self.outcomes:
                self.attend_soon()

    def _tell(self, message_id: object, failure: Failure | None) -> Awaitable[None] | None:
        self.doing = "ack" if failure is None else "fail"
        if failure is not None and failure.kind is FailureKind.SHUTDOWN:
            self._counts.left_over += 1
        self._release()
        try:
            return self.feed.settle(message_id, failure)
        except TopologyStopping:
            if not self.stopping:
                raise
        return None

    def _settle(self, message: Message, failure: Failure | None) -> None:
        host = message.tree
        if host is not None and host.collects:
            self.engine.collected.pop(message.root, None)
        if failure is None:
            self._release()
            if host is not None:
                host.tree.settle(None)
            return
        message.history += (failure,)
        if host is not None or self._policy.counts(failure):
            message.attempts += 1
        if failure.kind is FailureKind.SHUTDOWN:
            self._counts.left_over += 1
            self._give_up(message, failure)
        elif self._policy.gives_up(failure, message.attempts, None if host is None else host.attempts):
            self._give_up(message, failure)
        else:
            self._replay_later(message)

    def _release(self) -> None:
        """A message is settled for good."""
        self.pending -= 1
        if self._host is not None:
            self._let_host_in()
        if not self.pending and self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)

    def _give_up(self, message: Message, failure: Failure) -> None:
        if message.tree is not None:
            self._release()
            message.tree.tree.settle(failure)
            return
        left_over = failure.kind is FailureKind.SHUTDOWN
        self._counts.dead_letters += not left_over
        letter = DeadLetter(
            self.plan.component, message.value, message.message_id, message.attempts, failure, message.origin, message.history
        )
        self.doing = "dead_letters"
        pause = self._dead_letters.hand_over(letter) if left_over else self._dead_letters.bury(letter)
        if pause is None:
            self._release()
        else:
            burying = self.loop.create_task(self._bury(pause), name=f"{self.name} dead_letters")
            self._burying[burying] = None
            self.activity.begin()
            burying.add_done_callback(self._buried)

    async def _bury(self, pause: Awaitable[None]) -> None:
        await pause
        self._release()

    def _buried(self, burying: asyncio.Task[None]) -> None:
        del self._burying[burying]
        self.activity.end()
        if not burying.cancelled() and (error := burying.exception()) is not None:
            self.engine.crashed(self, error)
        self.attend_soon()

    # Replays.

    def _replay_later(self, message: Message) -> None:
        pause = self._policy.pause(len(message.history), self._random)
        self._counts.scheduled += 1
        heappush(self._replays, (self.loop.time() + pause, self._counts.scheduled, message))
        self._wait_for_replay()

    def _wait_for_replay(self) -> None:
        if self._replay_timer is not None:
            self._replay_timer.cancel()
            self._replay_timer = None
        if self._replays:
            self._replay_timer = self.loop.call_at(self._replays[0][0], self._replays_due)

    def _replays_due(self) -> None:
        now = self.loop.time()
        while self._replays and self._replays[0][0] <= now:
            self._due.append(heappop(self._replays)[2])
        self._replay_timer = None
        self._wait_for_replay()
        self.attend_soon()

    def abandon(self, failure: Failure) -> None:
        """Fail what waits for a replay (law C3)."""
        waiting = [*self._due, *(message for _, _, message in sorted(self._replays, key=itemgetter(0, 1)))]
        self._due.clear()
        self._replays.clear()
        self.outcomes.extend((message, failure) for message in waiting)
        self.attend_soon()

    async def when_quiet(self) -> None:
        """Wait until every message of this task is settled."""
        if self.pending:
            self._quiet = self.loop.create_future()
            await self._quiet

    def settle_left_over(self) -> None:
        """The task has ended: settle what can be settled without it, and count the rest."""
        for message, failure in self.outcomes:
            self._counts.acked += failure is None
            self._counts.failed += failure is not None
            self._counts.left_over += failure is not None
            self.pending -= 1
            if type(message) is Message and message.tree is not None:
                message.tree.tree.settle(failure)
        self.outcomes.clear()

    # The life of the task.

    async def run(self) -> None:
        self._own_task = asyncio.current_task()
        self.doing = "open"
        await self._user(self.feed.open(self.context))
        self.ready.set_result(None)
        try:
            while True:
                await self._step()
        finally:
            await self._stop()

    async def _step(self) -> None:
        """Do the most urgent thing there is."""
        if self.outcomes or (self._due and self.outbox.has_room):
            await self._attend_in_slice()
        elif self._switched:
            self._switched = False
            self.doing = "activate" if self.active else "deactivate"
            await self._user(self.feed.switch(self.active))
        elif self.stopping and not self.feed.ended:
            self.doing = "close"
            await self._user(self.feed.end())
        elif self.feed.ended or self.feed.passive or not self.active or self.room <= 0:
            await self._rest()
        elif not self.outbox.has_room:
            self.outbox.leave()
            self.outbox.crowded[0].call_when_room(self.wake)
            await self.sleep()
        else:
            await self._ask()

    async def _attend_in_slice(self) -> None:
        await self._begin_slice()
        before = len(self.outcomes)
        pause = self._attend()
        if pause is not None:
            try:
                await self._user(pause)
            except TopologyStopping:
                if not self.stopping:
                    raise
        await self._end_chunk(max(1, before - len(self.outcomes)))

    async def _ask(self) -> None:
        """Ask the feed for a chunk of tuples."""
        await self._begin_slice()
        before = self.emitted
        self.doing = "next_tuple"
        pause = self.feed.ask(min(self._pace.chunk, self.room))
        if pause is not None:
            await pause
        if self._nap is not None:
            await self._rest()
        else:
            await self._end_chunk(self.emitted - before)

    async def _begin_slice(self) -> None:
        if not self.slices.begin():
            self.outbox.leave()
            await self.slices.turn()
        self.outbox.enter()

    async def _end_chunk(self, done: int) -> None:
        if self.slices.spent(self._pace, done):
            self.outbox.leave()
            await self.slices.turn()

    async def _rest(self) -> None:
        self.outbox.leave()
        if not self.outcomes:
            await self.sleep()
        if self._nap is not None:
            self._nap.cancel()
            self._nap = None

    def nap(self, seconds: float) -> None:
        """The source has nothing now: ask it again after so long, or when woken (law S4)."""
        self._nap = self.loop.call_later(seconds, self.wake)

    async def from_source(self, what: Asking, source: Awaitable[R]) -> R | None:
        """Await the source: its wait is no activity, and the outcomes of others go on meanwhile. None if it was interrupted."""
        self._asking = what
        self.outbox.suspend()
        self.activity.end()
        cancelled = False
        try:
            return await source
        except asyncio.CancelledError:
            cancelled = True
            if not self._interrupted:
                raise
        finally:
            self._asking = Asking.NOTHING
            self.activity.begin()
            self.outbox.enter()
            self._end_interrupt(cancelled)
        return None

    def _end_interrupt(self, cancelled: bool) -> None:
        if self._interrupted:
            self._interrupted = False
            if self._task().uncancel() > 0 and cancelled:
                raise asyncio.CancelledError

    def _interrupt(self) -> None:
        if not self._interrupted:
            self._interrupted = True
            self._task().cancel()

    def _interrupt_or_wake(self) -> None:
        if self._asking is Asking.NEXT_TUPLE or (self._asking is Asking.GENERATOR and self.stopping):
            self._interrupt()
        else:
            self.wake()

    def _task(self) -> asyncio.Task[None]:
        assert self._own_task is not None, "the spout task has not started"
        return self._own_task

    async def _tell_async(self, pause: Awaitable[None]) -> None:
        try:
            await self._user(pause)
        except TopologyStopping:
            if not self.stopping:
                raise

    async def _user(self, result: Awaitable[None] | None) -> None:
        if result is not None:
            self.outbox.suspend()
            try:
                await result
            finally:
                self.outbox.enter()

    def _let_host_in(self) -> None:
        if self._host is not None and not self._host.done():
            self._host.set_result(None)

    async def _stop(self) -> None:
        if self._replay_timer is not None:
            self._replay_timer.cancel()
        if self._nap is not None:
            self._nap.cancel()
        for burying in self._burying:
            burying.cancel()
        self.outbox.leave()
        try:
            self.doing = "close"
            await self._user(self.feed.close())
        except Exception as error:
            logger.error("close of %s raised %r", self.name, error, exc_info=error)


class _Counts:
    __slots__ = ("acked", "dead_letters", "failed", "left_over", "replayed", "scheduled")

    def __init__(self) -> None:
        self.acked = 0
        self.failed = 0
        self.dead_letters = 0
        self.left_over = 0
        self.replayed = 0
        self.scheduled = 0
