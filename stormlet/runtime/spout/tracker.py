"""The account of the messages of one spout task: emitting them as roots of new trees, settling their outcomes.

Theory of operation
-------------------
There are two kinds of messages. Those of a ``Spout`` class are known by their message id alone, and the user's ``ack``
or ``fail`` is called with it (law S1). Those of generators, iterables and the host are kept as a ``Message`` and
replayed by the engine (law S6, C4).

The tracker calls no user code but groupings, and knows no task. It is given outcomes by the ackers, and
:meth:`Tracker.settle` gives back those that a ``Spout`` class must hear of; its feed calls that code. The task looks
afterwards for those who wait until there is room, or until everything is settled.

Conservation (law N1). ``pending`` is the account of the messages that have no final outcome. A message leaves it in
the statement beside the one that counts its outcome, with no call between the two, and nowhere else. So whatever
raises while an outcome is dealt with leaves the message pending, wherever it is by then; the topology crashes (law
N2), and what is pending when the run ends is left over. No code has to put a message back for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from stormlet.core.ids import IdSource, next_id, shard_of
from stormlet.core.ledger import AckerLoad
from stormlet.core.outcomes import DeadLetter, Failure, FailureKind
from stormlet.core.retries import ReplayPolicy
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Lineage
from stormlet.model.components import SourceEpoch
from stormlet.model.plan import TaskPlan
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.context import MessageObserver
from stormlet.runtime.failure_log import UNKNOWN, FailureLog
from stormlet.runtime.spout.complete_latency import CompleteLatency
from stormlet.runtime.spout.hand_overs import HandOvers
from stormlet.runtime.spout.messages import GivenUp, HostMessage, Message, SpoutMessage
from stormlet.runtime.spout.replays import Replays
from stormlet.runtime.spout.traced_messages import TracedMessages
from stormlet.runtime.usercode import UserCode
from stormlet.runtime.wire.collector import undeclared
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet

OVERFLOW = Failure(FailureKind.OVERFLOW)
SHUTDOWN = Failure(FailureKind.SHUTDOWN)
UNLIMITED = 1 << 60
OUTCOMES_PER_CHUNK = 256


class Counts:
    """Counts of messages and attempts, by what became of them."""

    __slots__ = (
        "acked",
        "dead_letters",
        "failed",
        "given_back",
        "left_over",
        "messages",
        "overflowed",
        "replayed",
        "withdrawn",
    )

    def __init__(self) -> None:
        self.messages = 0
        """Tracked messages emitted, each once whatever its attempts; each is pending, or one of the next five."""
        self.acked = 0
        self.given_back = 0
        self.dead_letters = 0
        self.withdrawn = 0
        self.left_over = 0
        self.failed = 0
        """Attempts."""
        self.replayed = 0
        self.overflowed = 0

    @property
    def settled(self) -> int:
        """The number of outcomes delivered; a failure of a withdrawn message is two."""
        return self.acked + self.failed + self.withdrawn


class Tracker:
    """The account of the messages of one spout task."""

    def __init__(
        self,
        plan: TaskPlan,
        number: int,
        outbox: Outbox,
        outlets: dict[str, Outlet],
        outcomes: deque[OpenTree],
        *,
        ids: IdSource,
        loads: Sequence[AckerLoad],
        most_pending: int | None,
        policy: ReplayPolicy,
        replays: Replays,
        hand_overs: HandOvers,
        user: UserCode,
        log: FailureLog,
        clock: Callable[[], float],
        observer: MessageObserver | None,
        traced: TracedMessages | None = None,
    ) -> None:
        """``number`` is the index by which open trees name the spout task, ``loads`` are those of the ackers."""
        self.outcomes = outcomes
        """Messages whose outcome is known and not settled yet."""
        self.pending = 0
        """Messages without a final outcome, those that wait for a replay included (law S3)."""
        self.emitted = 0
        """The number of emits, which shows if ``next_tuple`` was idle."""
        self.counts = Counts()
        self.buries = True
        """True if messages that are given up go to the dead letters."""
        self.keeps_all = False
        """True if every message is kept, whatever its spout would do with it (law X5, X7)."""
        self.observer = observer
        """Looks on at the messages; may be changed at any time."""
        self.traced = traced
        """The messages that are traced, if some may be."""
        self.replays = replays
        """Messages that wait to be emitted again."""
        self._due = replays.due
        self.hand_overs = hand_overs
        """Messages that are being handed to the dead letters."""
        self._plan = plan
        self._number = number
        self._outbox = outbox
        self._outlets = outlets
        self._ids = iter(ids)
        self._loads = list(loads)
        self._most_pending = most_pending
        self._policy = policy
        self._user = user
        self._log = log
        self._awaited: dict[HostMessage, None] = {}
        self._withdrawn: dict[object, None] = {}
        self._latency = CompleteLatency(clock)

    @property
    def room(self) -> int:
        """The number of messages that may still become pending (law S3)."""
        return self._room_beside(self.pending)

    def _room_beside(self, pending: int) -> int:
        return UNLIMITED if self._most_pending is None else self._most_pending - pending

    @property
    def is_limited(self) -> bool:
        """True if as many messages are pending as ``max_spout_pending`` says."""
        return self._room_beside(self.pending) <= 0

    @property
    def has_outcomes(self) -> bool:
        """True if a ``Spout`` class may have to hear of something."""
        return bool(self.outcomes)

    def has_work(self) -> bool:
        """Return True if an outcome can be settled or a replay emitted now."""
        return bool(self.outcomes or (self._due and self._outbox.has_room))

    def statistics(self) -> TaskStatistics:
        """Counts since the start."""
        counts, latency, outlets = self.counts, self._latency, self._outlets.values()
        if not self.keeps_all:  # within epochs each message has its outcome at the end
            latency.forget_old()
        return TaskStatistics(
            emitted=sum(outlet.emitted for outlet in outlets),
            transferred=sum(outlet.transferred for outlet in outlets),
            messages=counts.messages,
            acked=counts.acked,
            given_back=counts.given_back,
            withdrawn=counts.withdrawn,
            failed=counts.failed,
            pending=self.pending,
            replayed=counts.replayed,
            dead_letters=counts.dead_letters,
            giving_up=len(self.hand_overs),
            letter_seconds=self.hand_overs.seconds,
            left_over=counts.left_over,
            overflowed=counts.overflowed,
            complete_seconds=latency.times.total,
            complete_samples=latency.times.count,
            complete_times=latency.times.copy(),
        )

    @property
    def withheld(self) -> int:
        """Messages that are settled, of which nobody has heard; here there are none."""
        return 0

    @property
    def acked_attempts(self) -> int:
        """Attempts that were acked."""
        return self.counts.acked

    @property
    def kept_messages(self) -> Sequence[Message]:
        """Messages of epochs that are not sealed, in the order of their first emission; here there are none."""
        return ()

    @property
    def is_awaited(self) -> bool:
        """True if the host waits for a message of this task."""
        return bool(self._awaited)

    def end_epoch(self) -> None:
        """End the open epoch (law X1); here there is none."""

    def begin_epoch(self, number: int, line: str) -> SourceEpoch:
        """Begin an epoch that the source has cut (law X8); here there are none."""
        raise RuntimeError(f"{self._plan.name} cannot begin an epoch, as messages belong to none here")

    # Emitting.

    def emit(
        self, value: object, stream: str, task: int | None, lineage: Lineage, tree: OpenTree | None
    ) -> tuple[int, ...]:
        """Deliver a value, as the root of this tree unless it is tracked by nobody (law L10)."""
        outlet = self._outlet(stream, task)
        self.emitted += 1
        if not self._outbox.armed:
            self._outbox.arm()
        if tree is None:
            outlet.deliver(value, 0, lineage)
        else:
            self._track(outlet, value, lineage, tree)
            self.pending += 1
            self.counts.messages += 1
        return outlet.reached

    def emit_many(self, stream: str, messages: Iterable[tuple[object, Lineage, OpenTree]]) -> None:
        """Deliver values, each as the root of a tree."""
        outlet = self._outlet(stream, None)
        before = self.pending
        if not self._outbox.armed:
            self._outbox.arm()
        try:
            for value, lineage, tree in messages:
                self._track(outlet, value, lineage, tree)
                self.pending += 1
        finally:
            self.emitted += self.pending - before
            self.counts.messages += self.pending - before

    def emit_for_host(self, message: HostMessage) -> None:
        """The first emit of a message that the host awaits (law C4)."""
        self._awaited[message] = None
        try:
            self.emit(message.value, message.stream, message.task, message.lineage, message)
        except BaseException:
            del self._awaited[message]
            raise

    def _track(self, outlet: Outlet, value: object, lineage: Lineage, tree: OpenTree) -> None:
        """Deliver as the root of a new tree. Outcomes that are known at once wait with the others (law L17). Nothing
        is called once the tree is noted: it is either tracked, or this raises."""
        if self.observer is not None:
            self.observer.tracked(self._plan, tree, value)
        if self.traced is not None:
            lineage = self.traced.begin(tree, outlet.source.stream, lineage)
        # Without ackers the outcome is known now. It waits with the others all the same, as user code must not be
        # called inside an emit (law L17).
        if not self._loads:
            outlet.deliver(value, 0, lineage)
            self.outcomes.append(tree)  # law L9
            return
        root = next_id(self._ids)
        load = self._loads[shard_of(root, len(self._loads))]
        # Decided here and not by the acker, which would have to be asked first.
        if load.trees >= load.limit:
            self._overflow(outlet, tree)
            return
        if type(tree) is HostMessage:
            tree.collect_under(root)
        else:
            tree.root = root
        tree.checksum = outlet.deliver(value, root, lineage)
        if outlet.reached:
            tree.spout = self._number
            # One message at a time is measured: the clock costs as much as a tenth of an acked tuple.
            if self._latency.tree is None:
                self._latency.begin(tree)
            self._outbox.inits.append(tree)
            load.trees += 1
        else:
            self.outcomes.append(tree)  # law L11

    def _overflow(self, outlet: Outlet, tree: OpenTree) -> None:
        """The acker has too many trees (law L13)."""
        outlet.reached = ()
        tree.failure = OVERFLOW
        self.outcomes.append(tree)
        self.counts.overflowed += 1

    def _outlet(self, stream: str, task: int | None) -> Outlet:
        outlet = self._outlets.get(stream)
        if outlet is None:
            raise undeclared(self._outlets, stream, self._plan)
        return outlet if task is None else outlet.at(task)

    # Settling.

    def waiting(self, most: int) -> int:
        """Return the number of outcomes that wait now, or ``most`` if they are more. What user code emits while they
        are settled is left for the next time, so that it cannot go on for ever."""
        return min(len(self.outcomes), most)

    def settle_next(self) -> OpenTree | None:
        """Settle the outcome that waits first, if any does yet; return it if a ``Spout`` class must hear of it."""
        if not self.outcomes:  # those of the host were settled meanwhile
            return None
        tree = self.outcomes.popleft()
        return tree if self._settle(tree) else None

    def settle_awaited(self) -> None:
        """Settle what was acked and the host awaits, up to the first outcome of another kind (law C4)."""
        outcomes = self.outcomes
        for _ in range(min(len(outcomes), OUTCOMES_PER_CHUNK)):
            # Looked at before it is taken: what follows the first of another kind must keep its order.
            tree = outcomes[0]
            if type(tree) is not HostMessage or tree.failure is not None:
                break
            self._settle(outcomes.popleft())

    def _settle(self, tree: OpenTree) -> bool:
        """Deal with an outcome. Returns True if a ``Spout`` class is to hear of it."""
        self._see(tree)
        if self._withdrawn and tree.message_id in self._withdrawn:
            self._conclude_withdrawn(tree)
            return False
        return self._conclude(tree)

    def _see(self, tree: OpenTree) -> None:
        """The outcome of an attempt has come."""
        if tree is self._latency.tree:
            self._latency.end()
        if self.observer is not None:
            self._observe(tree)
        if self.traced is not None:
            self.traced.settled(tree)

    def _conclude(self, tree: OpenTree) -> bool:
        if tree.failure is not None:
            return self._settle_failed(tree, tree.failure)
        if type(tree) is HostMessage:
            self._end_for_host(tree, None)
        self.counts.acked += 1
        self.pending -= 1
        return type(tree) is not Message and type(tree) is not HostMessage

    def _observe(self, tree: OpenTree) -> None:
        if self.observer is not None and type(tree) is not GivenUp:  # whose outcome was seen before
            self.observer.settled(self._plan, tree)

    def _settle_failed(self, tree: OpenTree, failure: Failure) -> bool:
        if type(tree) is GivenUp:
            self._count_given_up(failure)
            return True
        if type(tree) is HostMessage:
            self._settle_for_host(tree, failure)
        elif isinstance(tree, Message):
            self._settle_kept(tree, failure)
        else:
            self._note_failure(failure, tree.message_id)
            self._count_given_back(failure)
            self.counts.failed += 1
            return True
        self.counts.failed += 1
        return False

    def _count_given_up(self, failure: Failure) -> None:
        """A message that was given up has its final outcome."""
        if failure.kind is FailureKind.SHUTDOWN:
            self.counts.left_over += 1
        elif self.buries:
            self.counts.dead_letters += 1
        else:
            self.counts.given_back += 1
        self.pending -= 1

    def _count_given_back(self, failure: Failure) -> None:
        """A message has failed for good, and its ``Spout`` class or the host has it from there on."""
        if failure.kind is FailureKind.SHUTDOWN:
            self.counts.left_over += 1
        else:
            self.counts.given_back += 1
        self.pending -= 1

    def _settle_kept(self, message: Message, failure: Failure) -> None:
        """An attempt at a message that the engine keeps has failed (law S6)."""
        message.failed(failure, counts=self._policy.counts(failure))
        self._note_failure(failure, message.message_id, message.value)
        if failure.kind is FailureKind.SHUTDOWN or self._policy.gives_up(failure, message.attempts):
            self._give_up(message, failure)
        else:
            self.replays.add(message)

    def withdraw(self, message_ids: Iterable[object]) -> None:
        """These messages are not their spout's any more: none is replayed or given up, or heard of (law S9)."""
        ids: dict[object, None] = dict.fromkeys(message_ids)
        waiting = self.replays.take(ids)
        self.counts.withdrawn += len(waiting)
        self.pending -= len(waiting)
        for message in waiting:  # of one id there may be several: a dead instance's, and the next one's
            ids.pop(message.message_id, None)
        # The rest have an outcome later: their trees go on.
        self._withdrawn.update(ids)

    def _conclude_withdrawn(self, tree: OpenTree) -> None:
        del self._withdrawn[tree.message_id]
        if type(tree) is GivenUp:  # the dead letters had it before
            self._count_given_up(tree.failure or SHUTDOWN)
            return
        self.counts.failed += tree.failure is not None
        self.counts.withdrawn += 1
        self.pending -= 1

    def _note_failure(self, failure: Failure, message_id: object, value: object = UNKNOWN) -> None:
        # An exception was logged when it was raised; left-overs are counted at the end.
        if failure.exception is None and failure.kind is not FailureKind.SHUTDOWN:
            self._log.failed(self._plan, failure, message_id, value)

    def _settle_for_host(self, message: HostMessage, failure: Failure) -> None:
        """An attempt that the host waits for has failed (law C4)."""
        message.failed(failure, counts=self._policy.counts_for_host(failure))
        given_up = self._policy.gives_up(failure, message.attempts, message.max_attempts)
        if not given_up and failure.kind is not FailureKind.SHUTDOWN:
            message.collect_no_more()
            self.replays.add(message)
            return
        self._end_for_host(message, failure)
        self._count_given_back(failure)

    def _end_for_host(self, message: HostMessage, failure: Failure | None) -> None:
        """Settle the tree that the host got for a message."""
        message.collect_no_more()
        message.tree.settle(failure, message.history)
        self._awaited.pop(message, None)

    def _give_up(self, message: Message, failure: Failure) -> None:
        """Hand the message to the dead letters; an asynchronous sink appends the outcome when it has it."""
        # What a stop leaves over is handed to the sink in any case, as nothing else would keep it.
        is_letter = self.buries or failure.kind is FailureKind.SHUTDOWN
        if is_letter and not self.hand_overs.give_up(message, failure):
            return
        if type(message) is SpoutMessage:  # the spout must hear of it
            self.outcomes.append(GivenUp(message_id=message.message_id, failure=failure))
        else:
            self._count_given_up(failure)

    async def dead_letter(self, letter: DeadLetter) -> None:
        """Hand over what a ``Spout`` class gives up; it counts as a message of its own."""
        await self.hand_overs.hand_over(letter)
        self.counts.messages += 1
        self.counts.dead_letters += 1

    # Replaying.

    def replay(self) -> None:
        """Emit the replays that are due, while there is room."""
        due = self._due
        while due and self._outbox.has_room:
            self._replay(due.popleft(), due)

    def _replay(self, message: Message, waiting: deque[Message]) -> None:
        """Emit once more. What user code raises, such as a key function, leaves the message due: the restarted
        task emits it, or the end fails it with what else is left (law S6, C3)."""
        user = self._user
        before, user.method = user.method, "replay"
        try:
            if not self._outbox.armed:
                self._outbox.arm()
            message.failure = None
            self._track(self._outlet(message.stream, message.task), message.value, message.lineage, message)
        except BaseException as error:
            waiting.appendleft(message)
            user.raised(error)
            raise
        user.method = before  # the source may be suspended in it
        self.counts.replayed += 1

    # The end.

    def abandon(self, failure: Failure) -> None:
        """Fail what waits for a replay (law C3)."""
        waiting = self.replays.take_all()
        for message in waiting:
            message.failure = failure
        self.outcomes.extend(waiting)

    def settle_left_over(self, unsent: int) -> None:
        """The task has ended: settle what can be settled without it, and count the rest, with so many messages that its
        source gave and that were never emitted."""
        while self.outcomes:
            tree = self.outcomes.popleft()
            self._see(tree)
            if self._withdrawn and tree.message_id in self._withdrawn:
                self._conclude_withdrawn(tree)
            elif tree.failure is None:
                self._settle_acked_at_end(tree)
            elif type(tree) is not GivenUp:
                self.counts.failed += 1
            elif self.buries:  # else its spout has not heard of it, and it is not given back
                self._count_given_up(tree.failure)
        self._latency.tree = None
        for message in list(self._awaited):
            failure = message.failure or SHUTDOWN
            message.failed(failure, counts=True)
            self._end_for_host(message, failure)
        self.counts.messages += unsent
        withdrawn = min(len(self._withdrawn), self.pending)
        self.counts.withdrawn += withdrawn
        self.counts.left_over += self.pending - withdrawn + unsent
        self.pending = 0

    def _settle_acked_at_end(self, tree: OpenTree) -> None:
        if type(tree) is HostMessage:
            self._end_for_host(tree, None)
        self.counts.acked += 1
        self.pending -= 1

    async def close(self) -> None:
        """The task ends: no more replays, no more dead letters."""
        self.replays.close()
        await self.hand_overs.close()
