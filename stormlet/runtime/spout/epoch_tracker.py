"""The account of a spout task whose messages belong to epochs (law X1 to X7).

Theory of operation
-------------------
A tree that is settled says nothing to anybody yet. Its message is *withheld*: it leaves ``pending``, as nothing of it
is under way any more, and waits for the end of its epoch. The keeper of the epochs then does one of two things:

- It has the message *emitted again*, because the attempt was spoilt. The message joins the backlog, from which it is
  emitted as soon as there is room.
- It has the message *told*, because its epoch is durable. From there on it is settled like any other message: its spout
  hears of it, the host's tree gets its outcome, the dead letters get what was given up.

A message that fails before it has reached state is replayed as everywhere else (law X6). That is decided here, by what
the open epoch says of its root.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.core.state.redeliveries import Given, Redeliveries
from stormlet.core.trees import OpenTree
from stormlet.core.tuples import Lineage
from stormlet.errors import InvalidEmit
from stormlet.model.components import SourceEpoch
from stormlet.report.statistics import TaskStatistics
from stormlet.runtime.epoch import OpenEpoch
from stormlet.runtime.spout.messages import GivenAgain, HostMessage, Message
from stormlet.runtime.spout.tracker import Tracker


class EpochTracker(Tracker):
    """The account of the messages of one spout task, which belong to epochs."""

    def __init__(self, epoch: OpenEpoch, *arguments: Any, **options: Any) -> None:
        Tracker.__init__(self, *arguments, **options)  # compiled, there is no super()
        self.pending = 0
        self.keeps_all = True
        self._epoch = epoch
        self._messages: list[OpenTree] = epoch.messages
        self._withheld = 0
        self._acked_attempts = 0
        self._backlog: deque[Message] = deque()
        self._durable: deque[Message] = deque()
        self.redeliveries: Redeliveries | None = None
        """Messages that a broker may give again, if the spout is one that redelivers (law X8)."""

    @property
    def room(self) -> int:
        """The number of messages that may still become pending, and that the open epoch still takes."""
        return min(self._room_beside(self.pending), self._epoch.room_for(self._number))

    @property
    def has_outcomes(self) -> bool:
        """True if a ``Spout`` class may have to hear of something."""
        return bool(self._durable or self.outcomes)

    def has_work(self) -> bool:
        """Return True if an outcome can be settled or told, or a message emitted again now."""
        if self._durable or Tracker.has_work(self):
            return True
        return bool(self._backlog) and self._room_beside(self.pending) > 0 and self._outbox.has_room

    def statistics(self) -> TaskStatistics:
        """Counts since the start; what is withheld is pending for those who look from outside."""
        counts = Tracker.statistics(self)
        return msgspec.structs.replace(counts, pending=self.pending + self._withheld)

    @property
    def withheld(self) -> int:
        """Messages that are settled, of which nobody has heard."""
        return self._withheld

    @property
    def acked_attempts(self) -> int:
        """Attempts that were acked; those of a message are several if its epoch was spoilt."""
        return self._acked_attempts

    @property
    def kept_messages(self) -> Sequence[Message]:
        """Messages of this task that belong to the open epoch or a later one, in the order of their first emission."""
        number = self._number
        return [message for message in self._epoch.account if message.spout == number]

    @property
    def has_told(self) -> bool:
        """True if nobody waits for the outcome of a message of a durable epoch, nor the dead letters for a message."""
        return not self._durable and not self.pending

    # Emitting.

    def emit(
        self, value: object, stream: str, task: int | None, lineage: Lineage, tree: OpenTree | None
    ) -> tuple[int, ...]:
        """Deliver a value, as the root of this tree, which belongs to the open epoch."""
        if self.redeliveries is not None and tree is not None and type(tree) is not HostMessage:
            return self._emit_once(self.redeliveries, value, stream, task, lineage, tree)
        return self._emit(value, stream, task, lineage, tree)

    def _emit(
        self, value: object, stream: str, task: int | None, lineage: Lineage, tree: OpenTree | None
    ) -> tuple[int, ...]:
        reached = Tracker.emit(self, value, stream, task, lineage, tree)
        if tree is not None:
            self._add(tree)
        return reached

    def emit_many(self, stream: str, messages: Iterable[tuple[object, Lineage, OpenTree]]) -> None:
        """Deliver values, each as the root of a tree."""
        for value, lineage, tree in messages:
            self.emit(value, stream, None, lineage, tree)

    def _emit_once(
        self,
        redeliveries: Redeliveries,
        value: object,
        stream: str,
        task: int | None,
        lineage: Lineage,
        tree: OpenTree,
    ) -> tuple[int, ...]:
        """Deliver a value unless it comes again (law X8)."""
        index, message_id = self._plan.index, tree.message_id
        if message_id is None:
            raise InvalidEmit(
                f"{self._plan.name} redelivers, and emits without message_id=; nothing else names a message"
            )
        given = redeliveries.give(index, message_id, value)
        if given is Given.FIRST:
            try:
                return self._emit(value, stream, task, lineage, tree)
            except BaseException:
                redeliveries.take_back(message_id)
                raise
        self.emitted += 1  # or its source would seem to be idle
        if given is Given.DURABLE:
            self.ack_again(message_id, value)
        return ()

    def ack_again(self, message_id: object, value: object) -> None:
        """A message that is durable has come again: its spout is to ack it (law X8)."""
        tree = GivenAgain(message_id=message_id)
        if self.observer is not None:
            self.observer.tracked(self._plan, tree, value)
        self.outcomes.append(tree)
        self.counts.messages += 1
        self.pending += 1
        self._acked_attempts += 1

    def _add(self, tree: OpenTree) -> None:
        tree.spout = self._number  # by which it finds its way back, whether it has reached a task or not
        self._messages.append(tree)
        if len(self._messages) == 1:
            self._epoch.happened()

    # The outcome of an attempt.

    def _settle(self, tree: OpenTree) -> bool:
        if not isinstance(tree, Message):  # what was given up, and was handed over since
            return Tracker._settle(self, tree)
        if tree.failure is not None:
            self._see(tree)
        else:
            self._acked_attempts += 1
        if tree.failure is None or not self._is_replayed(tree, tree.failure):
            self.pending -= 1
            self._withheld += 1
        return False

    def settle_awaited(self) -> None:
        """Nothing is settled for the host before its epoch is durable (law X3)."""

    def _is_replayed(self, message: Message, failure: Failure) -> bool:
        """An attempt at a message has failed. Returns True if it is to be emitted again alone (law X6)."""
        self.counts.failed += 1
        if failure.kind is FailureKind.SHUTDOWN:
            self._epoch.abandon()
            return False
        message.failed(failure, counts=self._counts(message, failure))
        self._note_failure(failure, message.message_id, message.value)
        gives_up = self._gives_up(message, failure)
        if gives_up and not self.buries and not isinstance(message, HostMessage):
            return self._give_back_for(message, failure)
        if self._epoch.failed(message, message.root, given_up=gives_up):
            self._replay_later(message)
            return True
        return False

    def _give_back_for(self, message: Message, failure: Failure) -> bool:
        """A message is given up whose source wants the whole epoch again (law X8)."""
        cut = self._epoch.cut
        self._epoch.attempt.bury(message.root)
        if cut is not None:
            cut.give_back(failure, message.message_id)
        return False

    def _counts(self, message: Message, failure: Failure) -> bool:
        of_host = isinstance(message, HostMessage)
        return self._policy.counts_for_host(failure) if of_host else self._policy.counts(failure)

    def _gives_up(self, message: Message, failure: Failure) -> bool:
        most = message.max_attempts if isinstance(message, HostMessage) else None
        return self._policy.gives_up(failure, message.attempts, most)

    def _replay_later(self, message: Message) -> None:
        if isinstance(message, HostMessage):
            message.collect_no_more()
        self.replays.add(message)

    # The end of an attempt.

    def withdraw(self, message_ids: Iterable[object]) -> None:
        """Nothing: a message belongs to its epoch, which is done as a whole (law X6)."""

    def forget_attempt(self) -> None:
        """The attempt is spoilt: nothing more of it is emitted (law X6)."""
        waiting = len(self.replays.take_all())
        self._backlog.clear()
        self.pending -= waiting
        self._withheld += waiting

    def emit_again(self, messages: Sequence[Message], *, later: bool) -> None:
        """Emit these withheld messages in the attempt that begins, as soon as there is room, or ``later``, after the
        pause of a replay (law X7)."""
        if not later:
            self._backlog.extend(messages)
            return
        self._withheld -= len(messages)
        self.pending += len(messages)
        for message in messages:
            self._replay_later(message)

    def replay(self) -> None:
        """Emit the replays that are due and the backlog, while there is room."""
        Tracker.replay(self)
        backlog = self._backlog
        while backlog and self._room_beside(self.pending) > 0 and self._outbox.has_room:
            self._replay(backlog.popleft(), backlog)
            self._withheld -= 1
            self.pending += 1

    @property
    def backlog(self) -> int:
        """The number of messages that are to be emitted again as soon as there is room."""
        return len(self._backlog)

    # The end of an epoch.

    def begin_epoch(self, number: int, line: str) -> SourceEpoch:
        """Begin what the source has cut."""
        return self._epoch.begin_cut(self._number, number, line)

    def give_back(self, messages: Sequence[Message], failure: Failure) -> None:
        """The source has these withheld messages again."""
        self._withheld -= len(messages)
        self.pending += len(messages)
        for message in messages:
            self._latency.forget(message)
            self._count_given_back(failure)

    def end_epoch(self) -> None:
        """Have the open epoch end as soon as everything is settled, if it has messages."""
        if self._messages:
            self._epoch.closing = True

    def tell(self, messages: Sequence[Message]) -> None:
        """The epoch of these messages is durable: they are settled for good (law X3)."""
        acked, unseen = 0, self.observer is None and self.traced is None
        latency = self._latency
        for message in messages:
            # Most have nobody to hear of them, and nothing else to be done for them.
            if unseen and type(message) is Message and message.failure is None:
                acked += 1
                if message is latency.tree:
                    latency.end()
            else:
                self._durable.append(message)
        latency.pass_over(len(messages))
        self._withheld -= acked
        self.counts.acked += acked

    def waiting(self, most: int) -> int:
        """Return the number of outcomes and of messages of durable epochs that wait now, or ``most`` for each of the
        two if they are more."""
        return Tracker.waiting(self, most) + min(len(self._durable), most)

    def settle_next(self) -> OpenTree | None:
        """Settle the outcome that waits first, or else tell the first message of durable epochs; return it if a
        ``Spout`` class must hear of it."""
        if self.outcomes or not self._durable:
            return Tracker.settle_next(self)
        message = self._durable.popleft()
        return message if self._settle_durable(message) else None

    def _settle_durable(self, message: Message) -> bool:
        """Settle a message for good. Returns True if a ``Spout`` class is to hear of it."""
        self._withheld -= 1
        self.pending += 1
        if message.failure is None:
            self._see(message)
            return self._conclude(message)
        if isinstance(message, HostMessage):
            self._end_for_host(message, message.failure)
            self._count_given_back(message.failure)
        else:
            self._give_up(message, message.failure)
        return False

    # The end of the run.

    def abandon(self, failure: Failure) -> None:
        """Fail what waits for a replay, and commit nothing any more (law C3)."""
        self._epoch.abandon()
        self._backlog.clear()
        Tracker.abandon(self, failure)

    def settle_left_over(self, unsent: int) -> None:
        """The task has ended: count what is durable and was not told, and leave over the rest."""
        while self._durable:
            self._tell_at_end(self._durable.popleft())
        given_up = [tree for tree in self.outcomes if not isinstance(tree, Message)]
        self.counts.failed += sum(
            tree.failure is not None for tree in self.outcomes if isinstance(tree, Message)
        )
        self.outcomes.clear()
        self.outcomes.extend(given_up)
        self.pending += self._withheld
        self._withheld = 0
        Tracker.settle_left_over(self, unsent)

    def _tell_at_end(self, message: Message) -> None:
        self._withheld -= 1
        self.pending += 1
        if message.failure is None:
            self._see(message)
            self._settle_acked_at_end(message)
        elif isinstance(message, HostMessage):
            self._end_for_host(message, message.failure)
            self._count_given_back(message.failure)
