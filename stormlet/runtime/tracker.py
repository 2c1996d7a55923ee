"""The messages of one spout task: emitting them as roots of new trees, settling their outcomes, replaying
them.

There are two kinds. Those of a ``Spout`` class are known by their message id alone and get the user's ``ack``
or ``fail`` (law S1). Those of generators, iterables and the host are kept as a ``Message`` and replayed by
the engine (law S6, C4).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import itemgetter
from typing import Protocol

from stormlet.core.configuration import Configuration
from stormlet.core.ids import IdSource, shard_of
from stormlet.core.ledger import OpenTree
from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.core.plan import TaskPlan
from stormlet.core.replay import ReplayPolicy
from stormlet.core.statistics import TaskStatistics
from stormlet.core.tuples import Lineage
from stormlet.errors import TopologyStopping
from stormlet.runtime.ackers import AckerTask
from stormlet.runtime.cancellation import check_stray
from stormlet.runtime.collectors import undeclared
from stormlet.runtime.dead_letters import DeadLetters
from stormlet.runtime.engine import Engine
from stormlet.runtime.failure_log import UNKNOWN
from stormlet.runtime.messages import Buried, HostMessage, Message, SpoutMessage
from stormlet.runtime.outbox import Outbox
from stormlet.runtime.outlets import Outlet

OVERFLOW = Failure(FailureKind.OVERFLOW)
UNLIMITED = 1 << 60
NOTHING = object()
OUTCOMES_PER_CHUNK = 256
OLDEST_SAMPLE = 60.0
"""Seconds after which another message is measured, while somebody asks for statistics."""

Settle = Callable[[object, Failure | None], Awaitable[None] | None]
"""Tells a ``Spout`` class the outcome of a message id."""


class Owner(Protocol):
    """The spout task, as its tracker sees it."""

    plan: TaskPlan
    engine: Engine
    outbox: Outbox
    outlets: dict[str, Outlet]
    doing: str
    stopping: bool

    def attend_soon(self) -> None:
        """Have :meth:`Tracker.attend` called soon."""
        ...

    def released(self) -> None:
        """A message was settled for good: there is room for another one."""
        ...


@dataclass(slots=True)
class Counts:
    """What became of messages and attempts."""

    acked: int = 0
    failed: int = 0
    dead_letters: int = 0
    left_over: int = 0
    replayed: int = 0
    overflowed: int = 0
    complete_seconds: float = 0.0
    complete_samples: int = 0

    @property
    def settled(self) -> int:
        """How many outcomes were told."""
        return self.acked + self.failed


class Tracker:
    """The account of the messages of one spout task."""

    def __init__(
        self,
        owner: Owner,
        number: int,
        ids: IdSource,
        ackers: Sequence[AckerTask],
        dead_letters: DeadLetters,
        config: Configuration,
    ) -> None:
        self.outcomes: deque[tuple[object, Failure | None]] = deque()
        """Messages whose outcome is known and that were not told yet, each with its failure or None."""
        self.pending = 0
        """Messages without a final outcome, those that wait for a replay included (law S3)."""
        self.emitted = 0
        """How many emits there were, to tell an idle ``next_tuple``."""
        self.counts = Counts()
        self._owner = owner
        self._engine = owner.engine
        self._observer = owner.engine.observer
        self._loop = owner.engine.loop
        self._outbox = owner.outbox
        self._number = number
        self._next_id = ids.next_id
        self._ackers = ackers
        self._dead_letters = dead_letters
        self._most_pending = config.max_spout_pending
        self._policy = ReplayPolicy(config.max_attempts, config.replay_delay, config.replay_delay_max)
        self._random = owner.engine.random(owner.plan, "replays")
        self._replays: list[tuple[float, int, Message]] = []
        self._scheduled = 0
        self._due: deque[Message] = deque()
        self._replay_timer: asyncio.TimerHandle | None = None
        self._burying: dict[asyncio.Task[None], DeadLetter] = {}
        self._quiet: asyncio.Future[None] | None = None
        self._sampled: object = NOTHING
        self._sampled_at = 0.0

    @property
    def room(self) -> int:
        """How many more messages may be pending (law S3)."""
        return UNLIMITED if self._most_pending is None else self._most_pending - self.pending

    @property
    def replays_waiting(self) -> bool:
        """Whether messages wait to be emitted again."""
        return bool(self._replays or self._due)

    @property
    def has_work(self) -> bool:
        """Whether :meth:`attend` has something to do now."""
        return bool(self.outcomes or (self._due and self._outbox.has_room))

    def statistics(self) -> TaskStatistics:
        """Counts since the start."""
        self._forget_old_sample()
        counts, outlets = self.counts, self._owner.outlets.values()
        return TaskStatistics(
            emitted=sum(outlet.emitted for outlet in outlets),
            transferred=sum(outlet.transferred for outlet in outlets),
            acked=counts.acked,
            failed=counts.failed,
            pending=self.pending,
            replayed=counts.replayed,
            dead_letters=counts.dead_letters,
            left_over=counts.left_over,
            overflowed=counts.overflowed,
            complete_seconds=counts.complete_seconds,
            complete_samples=counts.complete_samples,
        )

    # Emitting.

    def emit(
        self, value: object, message_id: object, stream: str, task: int | None, lineage: Lineage
    ) -> tuple[int, ...]:
        """An emit of a ``Spout`` class."""
        outlet = self._outlet(stream, task)
        self.emitted += 1
        if message_id is None:
            outlet.deliver(value, 0, lineage)
        else:
            self._track(outlet, value, lineage, message_id)
            self.pending += 1
            if self._observer is not None:
                self._observer.tracked(self._owner.plan, message_id, value)
        if not self._outbox.armed:
            self._outbox.arm()
        return outlet.reached

    def emit_message(self, message: Message) -> tuple[int, ...]:
        """The first emit of a message that the engine keeps."""
        self.emitted += 1
        reached = self._send(message)
        self.pending += 1
        if self._observer is not None:
            self._observer.tracked(self._owner.plan, message, message.value)
        return reached

    def _send(self, message: Message) -> tuple[int, ...]:
        outlet = self._outlet(message.stream, message.task)
        self._track(outlet, message.value, message.lineage, message)
        if not self._outbox.armed:
            self._outbox.arm()
        return outlet.reached

    def _track(self, outlet: Outlet, value: object, lineage: Lineage, message: object) -> None:
        """Deliver as the root of a new tree. Outcomes that are known at once wait with the others (law
        L17)."""
        if not self._ackers:
            outlet.deliver(value, 0, lineage)
            self.outcomes.append((message, None))  # law L9
            return
        root = self._next_id()
        acker = self._ackers[shard_of(root, len(self._ackers))]
        if acker.full:
            self.counts.overflowed += 1
            outlet.reached = ()
            self.outcomes.append((message, OVERFLOW))  # law L13
            return
        if type(message) is HostMessage and message.collected is not None:
            self._collect(message, message.collected, root)
        try:
            checksum = outlet.deliver(value, root, lineage)
        except BaseException:
            if type(message) is HostMessage and message.collected is not None:
                message.collected.pop(root, None)
            raise
        if outlet.reached:
            self._outbox.inits[root] = OpenTree(checksum, self._number, message)
            acker.load += 1
            if self._sampled is NOTHING:
                self._sampled, self._sampled_at = message, self._engine.clock()
        else:
            self.outcomes.append((message, None))  # law L11

    def _collect(self, message: HostMessage, collected: dict[int, list[object]], root: int) -> None:
        collected.pop(message.root, None)
        message.root = root
        message.tree.values = collected[root] = []

    def _outlet(self, stream: str, task: int | None) -> Outlet:
        outlet = self._owner.outlets.get(stream)
        if outlet is None:
            raise undeclared(self._owner.outlets, stream, self._owner.plan)
        return outlet if task is None else outlet.at(task)

    # Settling.

    def attend(self, settle: Settle, most: int = OUTCOMES_PER_CHUNK) -> Awaitable[None] | None:
        """Settle at most so many outcomes that wait, and emit replays that are due. A user's async ``ack`` or
        ``fail`` must be awaited before the next call. What user code emits meanwhile is left for the next
        call, so that it cannot go on for ever."""
        for _ in range(min(len(self.outcomes), most)):
            message, failure = self.outcomes.popleft()
            if message is self._sampled:
                self._sample_ends(failure)
            pause = self._settle(message, failure, settle)
            if pause is not None:
                return pause
        while self._due and self._outbox.has_room:
            self.counts.replayed += 1
            self._send(self._due.popleft())
        return None

    def _forget_old_sample(self) -> None:
        # A message that is never settled would be the last one that is measured.
        if self._sampled is not NOTHING and self._engine.clock() - self._sampled_at > OLDEST_SAMPLE:
            self._sampled = NOTHING

    def _sample_ends(self, failure: Failure | None) -> None:
        self._sampled = NOTHING
        if failure is None:
            self.counts.complete_seconds += self._engine.clock() - self._sampled_at
            self.counts.complete_samples += 1

    def _settle(self, message: object, failure: Failure | None, settle: Settle) -> Awaitable[None] | None:
        if self._observer is not None:
            self._observe(message, failure)
        if failure is None:
            self.counts.acked += 1
        elif type(message) is Buried:
            return self._tell(message.message_id, failure, settle)
        else:
            self.counts.failed += 1
        if type(message) is Message:
            self._settle_kept(message, failure)
        elif type(message) is HostMessage:
            self._settle_for_host(message, failure)
        elif type(message) is not SpoutMessage:
            self._note(failure, message)
            return self._tell(message, failure, settle)
        elif failure is None:
            return self._tell(message.message_id, None, settle)
        else:
            self._settle_kept(message, failure)
        return None

    def _observe(self, message: object, failure: Failure | None) -> None:
        if self._observer is not None and type(message) is not Buried:  # whose outcome was told before
            self._observer.settled(self._owner.plan, message, failure)

    def _note(self, failure: Failure | None, message_id: object) -> None:
        if failure is not None:
            self.counts.left_over += failure.kind is FailureKind.SHUTDOWN
            self._log(failure, message_id)

    def _tell(self, message_id: object, failure: Failure | None, settle: Settle) -> Awaitable[None] | None:
        """Tell a ``Spout`` class an outcome."""
        self._owner.doing = "ack" if failure is None else "fail"
        self._release()
        try:
            return settle(message_id, failure)
        except TopologyStopping:
            if not self._owner.stopping:
                raise
        return None

    def _settle_kept(self, message: Message, failure: Failure | None) -> None:
        """The outcome of an attempt at a message that the engine keeps (law S6)."""
        if failure is None:
            self._release()
            return
        message.failed(failure, counts=self._policy.counts(failure))
        self._log(failure, message.message_id, message.value)
        if failure.kind is FailureKind.SHUTDOWN or self._policy.gives_up(failure, message.attempts):
            self._give_up(message, failure)
        else:
            self._replay_later(message)

    def _log(self, failure: Failure, message_id: object, value: object = UNKNOWN) -> None:
        # An exception was told when it was raised; left-overs are counted at the end.
        if failure.exception is None and failure.kind is not FailureKind.SHUTDOWN:
            self._engine.failures.failed(self._owner.plan, failure, message_id, value)

    def _settle_for_host(self, message: HostMessage, failure: Failure | None) -> None:
        """The outcome of an attempt that the host waits for; each one counts (law C4)."""
        if message.collected is not None:
            message.collected.pop(message.root, None)
        if failure is not None:
            message.failed(failure, counts=True)
            left_over = failure.kind is FailureKind.SHUTDOWN
            self.counts.left_over += left_over
            if not left_over and not self._policy.gives_up(failure, message.attempts, message.max_attempts):
                self._replay_later(message)
                return
        self._release()
        message.tree.settle(failure, message.history)

    def _release(self) -> None:
        """A message is settled for good."""
        self.pending -= 1
        self._owner.released()
        if not self.pending and self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)

    def _give_up(self, message: Message, failure: Failure) -> None:
        left_over = failure.kind is FailureKind.SHUTDOWN
        self.counts.left_over += left_over
        self.counts.dead_letters += not left_over
        letter = DeadLetter(
            self._owner.plan.component,
            message.value,
            message.message_id,
            message.attempts,
            failure,
            message.lineage.origin,
            message.history,
            message.stream,
        )
        self._owner.doing = "dead_letters"
        dead_letters, plan = self._dead_letters, self._owner.plan
        pause = dead_letters.hand_over(letter) if left_over else dead_letters.bury(plan, letter)
        if pause is None:
            self._given_up(message, failure)
            return
        burying = self._loop.create_task(
            self._bury(pause, message, failure), name=f"{self._owner.plan.name} dead_letters"
        )
        self._burying[burying] = letter
        self._engine.activity.begin()
        burying.add_done_callback(self._buried)

    async def bury(self, letter: DeadLetter) -> None:
        """Give a message of a ``Spout`` class to the dead letters."""
        self.counts.dead_letters += 1
        pause = self._dead_letters.bury(self._owner.plan, letter)
        if pause is not None:
            await pause

    async def _bury(self, pause: Awaitable[None], message: Message, failure: Failure) -> None:
        try:
            await pause
        except asyncio.CancelledError as error:
            check_stray(error)
            raise
        self._given_up(message, failure)

    def _given_up(self, message: Message, failure: Failure) -> None:
        """The dead letters have it."""
        if type(message) is SpoutMessage:
            self.outcomes.append((Buried(message.message_id), failure))
            self._owner.attend_soon()
        else:
            self._release()

    def _buried(self, burying: asyncio.Task[None]) -> None:
        letter = self._burying.pop(burying)
        self._engine.activity.end()
        if burying.cancelled():
            self._engine.failures.unkept(self._owner.plan, letter)
        elif (error := burying.exception()) is not None:
            self._engine.crashed(self._owner, error)
        self._owner.attend_soon()

    # Replays.

    def _replay_later(self, message: Message) -> None:
        pause = self._policy.pause(len(message.history), self._random)
        self._scheduled += 1
        heappush(self._replays, (self._loop.time() + pause, self._scheduled, message))
        self._wait_for_replay()

    def _wait_for_replay(self) -> None:
        if self._replay_timer is not None:
            self._replay_timer.cancel()
            self._replay_timer = None
        if self._replays:
            self._replay_timer = self._loop.call_at(self._replays[0][0], self._replays_due)

    def _replays_due(self) -> None:
        now = self._loop.time()
        while self._replays and self._replays[0][0] <= now:
            self._due.append(heappop(self._replays)[2])
        self._replay_timer = None
        self._wait_for_replay()
        self._owner.attend_soon()

    def abandon(self, failure: Failure) -> None:
        """Fail what waits for a replay (law C3)."""
        waiting = [*self._due, *(message for _, _, message in sorted(self._replays, key=itemgetter(0, 1)))]
        self._due.clear()
        self._replays.clear()
        self.outcomes.extend((message, failure) for message in waiting)
        self._owner.attend_soon()

    async def when_quiet(self) -> None:
        """Wait until every message of this task is settled."""
        if self.pending:
            self._quiet = self._loop.create_future()
            await self._quiet

    def settle_left_over(self) -> None:
        """The task has ended: settle what can be settled without it, and count the rest."""
        for message, failure in self.outcomes:
            self._observe(message, failure)
            self.pending -= 1
            if type(message) is Buried:  # its spout was not told any more
                continue
            self.counts.acked += failure is None
            self.counts.failed += failure is not None
            self.counts.left_over += failure is not None
            if type(message) is HostMessage:
                if failure is not None:
                    message.failed(failure, counts=True)
                message.tree.settle(failure, message.history)
        self.outcomes.clear()

    def close(self) -> None:
        """The task ends: no more replays, no more burials."""
        if self._replay_timer is not None:
            self._replay_timer.cancel()
        for burying in self._burying:
            burying.cancel()
