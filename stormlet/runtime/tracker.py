"""The messages of one spout task: emitting them as roots of new trees, settling their outcomes, replaying
them.

There are two kinds. Those of a ``Spout`` class are known by their message id alone and get the user's ``ack``
or ``fail`` (law S1). Those of generators, iterables and the host are kept as a ``Message`` and replayed by
the engine (law S6, C4).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
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
from stormlet.core.restarts import Restarts
from stormlet.core.statistics import TaskStatistics
from stormlet.core.tuples import Lineage
from stormlet.errors import TopologyStopping
from stormlet.runtime.ackers import AckerTask, DeadSpout
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
    restarts: Restarts
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
        self.outcomes = owner.engine.parts.outcomes(owner.plan)
        """Messages whose outcome is known and was not told yet."""
        self.pending = 0
        """Messages without a final outcome, those that wait for a replay included (law S3)."""
        self.emitted = 0
        """How many emits there were, to tell an idle ``next_tuple``."""
        self.counts = Counts()
        self.buries = True
        """Whether messages that are given up go to the dead letters."""
        self.observer = owner.engine.observer
        """Looks on at the messages, if anybody does; may be changed at any time."""
        self._owner = owner
        self._engine = owner.engine
        self._loop = owner.engine.loop
        self._outbox = owner.outbox
        self._number = number
        self._ids = iter(ids)
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
        self._sampled: OpenTree | None = None
        self._sampled_at = 0.0

    @property
    def room(self) -> int:
        """How many more messages may be pending (law S3)."""
        return UNLIMITED if self._most_pending is None else self._most_pending - self.pending

    @property
    def replays_waiting(self) -> int:
        """How many messages wait to be emitted again."""
        return len(self._replays) + len(self._due)

    @property
    def burying(self) -> int:
        """How many messages are being handed to the dead letters."""
        return len(self._burying)

    @property
    def waiting(self) -> Iterator[tuple[float, Message]]:
        """The messages that wait to be emitted again, and when they are due by the loop's clock."""
        yield from ((0.0, message) for message in self._due)
        yield from ((when, message) for when, _, message in sorted(self._replays, key=itemgetter(0, 1)))

    @property
    def burials(self) -> Mapping[asyncio.Task[None], DeadLetter]:
        """The letters that are being handed to the dead letters, by what does so."""
        return self._burying

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
        self, value: object, stream: str, task: int | None, lineage: Lineage, tree: OpenTree | None
    ) -> tuple[int, ...]:
        """Deliver a value, as the root of this tree unless it is tracked by nobody (law L10)."""
        outlet = self._outlet(stream, task)
        self.emitted += 1
        if tree is None:
            outlet.deliver(value, 0, lineage)
        else:
            self._track(outlet, value, lineage, tree)
            self.pending += 1
        if not self._outbox.armed:
            self._outbox.arm()
        return outlet.reached

    def emit_many(self, stream: str, messages: Iterable[tuple[object, Lineage, OpenTree]]) -> None:
        """Deliver values, each as the root of a tree."""
        outlet = self._outlet(stream, None)
        before = self.pending
        try:
            for value, lineage, tree in messages:
                self._track(outlet, value, lineage, tree)
                self.pending += 1
        finally:
            self.emitted += self.pending - before
            if not self._outbox.armed:
                self._outbox.arm()

    def emit_message(self, message: Message) -> None:
        """The first emit of a message that the engine keeps."""
        self.emit(message.value, message.stream, message.task, message.lineage, message)

    def _track(self, outlet: Outlet, value: object, lineage: Lineage, tree: OpenTree) -> None:
        """Deliver as the root of a new tree. Outcomes that are known at once wait with the others (law
        L17)."""
        if self.observer is not None:
            self.observer.tracked(self._owner.plan, tree, value)
        if not self._ackers:
            outlet.deliver(value, 0, lineage)
            self.outcomes.append(tree)  # law L9
            return
        root = next(self._ids)
        acker = self._ackers[shard_of(root, len(self._ackers))]
        if acker.load > acker.limit:
            self._overflow(outlet, tree)
            return
        if type(tree) is HostMessage:
            tree.collect_under(root)
        tree.checksum = outlet.deliver(value, root, lineage)
        if outlet.reached:
            tree.spout = self._number
            self._outbox.inits[root] = tree
            acker.load += 1
            if self._sampled is None:
                self._sampled, self._sampled_at = tree, self._engine.clock()
        else:
            self.outcomes.append(tree)  # law L11

    def _overflow(self, outlet: Outlet, tree: OpenTree) -> None:
        """The acker has too many trees (law L13)."""
        self.counts.overflowed += 1
        outlet.reached = ()
        tree.failure = OVERFLOW
        self.outcomes.append(tree)

    def _outlet(self, stream: str, task: int | None) -> Outlet:
        outlet = self._owner.outlets.get(stream)
        if outlet is None:
            raise undeclared(self._owner.outlets, stream, self._owner.plan)
        return outlet if task is None else outlet.at(task)

    # Settling.

    def attend(self, settle: Settle | None, most: int = OUTCOMES_PER_CHUNK) -> Awaitable[None] | None:
        """Settle at most so many outcomes that wait, and emit replays that are due. A user's async ``ack`` or
        ``fail`` must be awaited before the next call. What user code emits meanwhile is left for the next
        call, so that it cannot go on for ever."""
        try:
            for _ in range(min(len(self.outcomes), most)):
                pause = self._settle(self.outcomes.popleft(), settle)
                if pause is not None:
                    return pause
        finally:
            self._released()
        while self._due and self._outbox.has_room:
            self.counts.replayed += 1
            self._replay(self._due.popleft())
        return None

    def _forget_old_sample(self) -> None:
        # A message that is never settled would be the last one that is measured.
        if self._sampled is not None and self._engine.clock() - self._sampled_at > OLDEST_SAMPLE:
            self._sampled = None

    def _sample_ends(self, failure: Failure | None) -> None:
        self._sampled = None
        if failure is None:
            self.counts.complete_seconds += self._engine.clock() - self._sampled_at
            self.counts.complete_samples += 1

    def _settle(self, tree: OpenTree, settle: Settle | None) -> Awaitable[None] | None:
        if tree is self._sampled:
            self._sample_ends(tree.failure)
        if self.observer is not None:
            self._observe(tree)
        if tree.failure is not None:
            return self._settle_failed(tree, tree.failure, settle)
        self.counts.acked += 1
        if type(tree) is HostMessage:
            self._settle_for_host(tree, None)
        elif type(tree) is Message or settle is None:
            self.pending -= 1
        else:
            return self._tell(tree.message_id, None, settle)
        return None

    def _observe(self, tree: OpenTree) -> None:
        if self.observer is not None and type(tree) is not Buried:  # whose outcome was seen before
            self.observer.settled(self._owner.plan, tree)

    def _settle_failed(
        self, tree: OpenTree, failure: Failure, settle: Settle | None
    ) -> Awaitable[None] | None:
        if type(tree) is Buried:
            return self._tell(tree.message_id, failure, settle)
        self.counts.failed += 1
        if type(tree) is HostMessage:
            self._settle_for_host(tree, failure)
        elif isinstance(tree, Message):
            self._settle_kept(tree, failure)
        else:
            self.counts.left_over += failure.kind is FailureKind.SHUTDOWN
            self._log(failure, tree.message_id)
            return self._tell(tree.message_id, failure, settle)
        return None

    def _tell(
        self, message_id: object, failure: Failure | None, settle: Settle | None
    ) -> Awaitable[None] | None:
        """Tell a ``Spout`` class an outcome, if it wants to know."""
        self.pending -= 1
        if settle is None:
            return None
        self._owner.doing = "ack" if failure is None else "fail"
        try:
            return settle(message_id, failure)
        except TopologyStopping:
            if not self._owner.stopping:
                raise
        return None

    def _settle_kept(self, message: Message, failure: Failure) -> None:
        """An attempt at a message that the engine keeps has failed (law S6)."""
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
        message.collect_no_more()
        if failure is not None:
            message.failed(failure, counts=True)
            left_over = failure.kind is FailureKind.SHUTDOWN
            self.counts.left_over += left_over
            if not left_over and not self._policy.gives_up(failure, message.attempts, message.max_attempts):
                self._replay_later(message)
                return
        self.pending -= 1
        message.tree.settle(failure, message.history)

    def _released(self) -> None:
        """Messages may have been settled for good: tell those who wait for that."""
        self._owner.released()
        if not self.pending and self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)

    def _give_up(self, message: Message, failure: Failure) -> None:
        left_over = failure.kind is FailureKind.SHUTDOWN
        self.counts.left_over += left_over
        if not self.buries and not left_over:
            self._given_up(message, failure)
            return
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
        try:
            pause = dead_letters.hand_over(letter) if left_over else dead_letters.bury(plan, letter)
        except Exception as error:  # a restart would not bring the message back
            self._engine.crashed(self._owner, error)
            return
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
            self.outcomes.append(Buried(message_id=message.message_id, failure=failure))
            self._owner.attend_soon()
        else:
            self.pending -= 1
            self._released()

    def _buried(self, burying: asyncio.Task[None]) -> None:
        letter = self._burying.pop(burying)
        self._engine.activity.end()
        if burying.cancelled():
            self._engine.failures.unkept(self._owner.plan, letter)
        elif (error := burying.exception()) is not None:
            self._engine.crashed(self._owner, error)
        self._owner.attend_soon()

    # Replays.

    def _replay(self, message: Message) -> None:
        message.failure = None
        self._track(self._outlet(message.stream, message.task), message.value, message.lineage, message)
        if not self._outbox.armed:
            self._outbox.arm()

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

    def lose(self, failure: Failure) -> None:
        """The instance of a ``Spout`` class has died: fail what it knows by message id (law L14)."""
        for acker in self._ackers:
            acker.fail_of_soon(DeadSpout(self._number, failure))

    def abandon(self, failure: Failure) -> None:
        """Fail what waits for a replay (law C3)."""
        waiting = [message for _, message in self.waiting]
        self._due.clear()
        self._replays.clear()
        for message in waiting:
            message.failure = failure
        self.outcomes.extend(waiting)
        self._owner.attend_soon()

    async def when_quiet(self) -> None:
        """Wait until every message of this task is settled."""
        if self.pending:
            self._quiet = self._loop.create_future()
            await self._quiet

    def settle_left_over(self) -> None:
        """The task has ended: settle what can be settled without it, and count the rest."""
        for tree in self.outcomes:
            self._observe(tree)
            self.pending -= 1
            if type(tree) is Buried:  # its spout was not told any more
                continue
            failure = tree.failure
            self.counts.acked += failure is None
            self.counts.failed += failure is not None
            self.counts.left_over += failure is not None
            if type(tree) is HostMessage:
                if failure is not None:
                    tree.failed(failure, counts=True)
                tree.tree.settle(failure, tree.history)
        self.outcomes.clear()
        self._sampled = None

    def close(self) -> None:
        """The task ends: no more replays, no more burials."""
        if self._replay_timer is not None:
            self._replay_timer.cancel()
        for burying in self._burying:
            burying.cancel()
